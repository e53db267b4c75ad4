"""One measurement, alone in a process: `python -m benchmarks.worker MODULE NAME PATIENCE FILE`.

MODULE holds a table `MEASUREMENTS` of functions that take the patience [s] and return a `Measured`. The result, or the
reason why there is none, is written to FILE as JSON.
"""

import importlib
import json
import resource
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from truesim.core.errors import TruesimError

MEGABYTE = 1e6


def peak_memory() -> float:
    """Peak memory of this process [MB]."""
    status = Path("/proc/self/status")
    if status.exists():  # `ru_maxrss` would count the parent's memory before the program was loaded
        kibibytes = next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(kibibytes) * 1024 / MEGABYTE
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MEGABYTE


def report(module: str, name: str, patience: float) -> dict[str, Any]:
    """Result of the measurement with its peak memory, or the reason why it failed."""
    try:
        measured = importlib.import_module(module).MEASUREMENTS[name](patience)
    except ModuleNotFoundError as error:
        return {"missing": f"{error.name} is not installed: pip install 'truesim[bench]'"}
    except TruesimError as error:
        return {"missing": str(error)}
    except Exception as error:
        lines = str(error).strip().splitlines() or ["no message"]
        return {"missing": f"{type(error).__name__}: {lines[0]}"}
    return {**asdict(measured), "memory": peak_memory()}


if __name__ == "__main__":
    _, _module, _name, _patience, _file = sys.argv
    Path(_file).write_text(json.dumps(report(_module, _name, float(_patience))))
