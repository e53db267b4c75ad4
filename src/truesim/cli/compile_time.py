"""Expected time of the compilation of a fit: a rule of thumb, scaled by what it took on this machine before."""

import contextlib
import json

from truesim import native
from truesim.core.persistence.atomic import write_json
from truesim.identification.problem.problem import Problem

SPEED_FILE = "compile-speed.json"
"""File among the compiled kernels that keeps the speed of this machine."""
CONSTANT, GROWTH = 1.0, 0.008
"""Time of a compilation: a constant, and a part that grows with unknowns times degrees of freedom [s]."""
COLD_FRACTION = 0.3
"""Compilations that take less than this part of the estimate were found in the cache, and teach nothing."""


def estimate_seconds(problem: Problem) -> float:
    """Expected time of the compilation of a problem whose kernels are not in the cache [s]."""
    return _speed() * _usual(problem)


def remember(problem: Problem, seconds: float) -> None:
    """Keep how long a compilation took on this machine."""
    ratio = seconds / _usual(problem)
    if ratio > COLD_FRACTION * _speed():
        with contextlib.suppress(OSError):
            write_json(native.cache_directory() / SPEED_FILE, {"factor": round((_speed() + ratio) / 2, 3)})


def _usual(problem: Problem) -> float:
    nv = problem.simulator.model.nv
    return CONSTANT + GROWTH * nv * (nv + problem.parameters.size)


def _speed() -> float:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        text = (native.cache_directory() / SPEED_FILE).read_text(encoding="utf-8")
        return min(max(float(json.loads(text)["factor"]), 0.1), 100.0)
    return 1.0
