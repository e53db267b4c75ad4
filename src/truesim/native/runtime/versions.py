"""Versions of JAX, XLA, NumPy and LLVM with which native kernels have been tested.

Kernels depend on memory layouts that these libraries do not promise to keep: the call frame of XLA's foreign function
interface (FFI) and the header of NumPy's array object. This module is the only place that names the tested versions.
With any other version kernels do not read those layouts: inside JAX they run as plain JAX code, and array addresses
come from `__array_interface__`.
"""

import re
from functools import cache
from pathlib import Path

import jax
import jaxlib.version
import numpy as np

TESTED_JAX = ((0, 10),)
"""Minor versions of JAX; `pyproject.toml` allows exactly these."""
TESTED_LLVMLITE = ((0, 50),)
"""Minor versions of llvmlite; `pyproject.toml` allows exactly these."""
TESTED_XLA_FFI = ((0, 3),)
"""Versions (major, minor) of XLA's FFI: all have the call frame that the handler reads."""
TESTED_NUMPY = (2,)
"""Major versions of NumPy; the header of an array object is part of the binary interface, which these keep."""

_FFI_HEADER = Path("xla", "ffi", "api", "c_api.h")


@cache
def xla_ffi_version() -> tuple[int, int] | None:
    """Version (major, minor) of XLA's FFI, from the header file that jaxlib ships, or None if it cannot be read."""
    try:
        text = (Path(jax.ffi.include_dir()) / _FFI_HEADER).read_text(errors="replace")
    except OSError:
        return None
    found = [re.search(rf"^#define XLA_FFI_API_{part} (\d+)", text, re.MULTILINE) for part in ("MAJOR", "MINOR")]
    if found[0] is None or found[1] is None:
        return None
    return int(found[0][1]), int(found[1][1])


def xla_ffi_refusal() -> str | None:
    """Reason why kernels cannot be called by XLA, or None if its FFI has a tested version."""
    version = xla_ffi_version()
    if version in TESTED_XLA_FFI:
        return None
    have = "an unknown version" if version is None else f"version {_dotted(version)}"
    tested = ", ".join(map(_dotted, TESTED_XLA_FFI))
    return (
        f"jaxlib {jaxlib.version.__version__} has {have} of XLA's foreign function interface, but native kernels "
        f"have been tested with {tested} only; inside JAX they run as plain JAX code instead"
    )


def has_tested_numpy() -> bool:
    """True when NumPy has a tested major version."""
    return int(np.__version__.split(".")[0]) in TESTED_NUMPY


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
