"""Machine and package versions of a measurement."""

import os
import platform
from importlib import metadata
from pathlib import Path

PACKAGES = ("truesim", "jax", "jaxlib", "llvmlite", "mujoco", "mujoco-mjx", "pin", "brax", "pytinydiffsim", "gymnasium")


def machine() -> dict[str, str | int]:
    """Processor, available cores, system and Python version."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def versions() -> dict[str, str | None]:
    """Versions of truesim and its peers; None for a package that is not installed."""
    return {name: _version(name) for name in PACKAGES}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text().splitlines() if listing.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
