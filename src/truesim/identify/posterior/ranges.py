"""From a posterior to domain randomisation: ranges, samples, and robot files that differ as the posterior says."""

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from truesim.core.errors import FileError
from truesim.core.typing import Float
from truesim.formats import save
from truesim.identify.posterior.gaussians import Posterior
from truesim.identify.problem import Problem
from truesim.identify.result import fitted_model
from truesim.model.source import Finding

SCHEMA = "truesim.ranges/1"
SUFFIXES = {"mjcf": ".xml", "urdf": ".urdf"}
FEWEST = 2000
"""Samples that ranges are taken from, however many are written."""


@dataclasses.dataclass(frozen=True)
class Range:
    """Within which values one number of a robot should be randomised, in SI units."""

    path: str
    unit: str
    mean: float
    std: float
    low: float
    high: float


def number_names(problem: Problem) -> list[str]:
    """Path of each number of the parameters, with `[k]` for those of vectors."""
    names = []
    for parameter in problem.parameters:
        size = np.size(parameter.start)
        names += [parameter.name] if size == 1 else [f"{parameter.name}[{k}]" for k in range(size)]
    return names


def sampled_values(posterior: Posterior, problem: Problem, n: int, seed: int = 0) -> Float[np.ndarray, "n numbers"]:
    """Values of all parameters drawn from a posterior, in SI units."""
    return np.asarray(problem.values(posterior.sample(n, seed))[0])


def ranges(posterior: Posterior, problem: Problem, level: float = 0.95, seed: int = 0) -> list[Range]:
    """Between which values each number lies with probability `level`.

    Args:
        posterior: Of the problem's coordinates.
        problem: The problem.
        level: Probability of each range by itself.
        seed: Of the samples that they are taken from.
    """
    values = sampled_values(posterior, problem, FEWEST, seed)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
    units = [p.unit for p in problem.parameters for _ in range(np.size(p.start))]
    columns = (values.mean(axis=0), values.std(axis=0), low, high)
    rows = zip(number_names(problem), units, *columns, strict=True)
    return [Range(name, unit, *map(float, numbers)) for name, unit, *numbers in rows]


def write_ranges(path: Path, found: Sequence[Range], *, level: float, values: Float[np.ndarray, "n numbers"]) -> None:
    """Writes ranges as JSON, with the correlations that they ignore.

    Args:
        path: Where to.
        found: From `ranges`.
        level: Their probability.
        values: Samples, for the correlations.
    """
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "level": level,
        "ranges": {r.path: {k: getattr(r, k) for k in ("unit", "mean", "std", "low", "high")} for r in found},
        "correlations": {"names": [r.path for r in found], "matrix": _correlations(values).round(6).tolist()},
    }
    path.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def write_samples(path: Path, names: Sequence[str], values: Float[np.ndarray, "n numbers"]) -> None:
    """Writes samples as CSV: a row for each, a column for each number."""
    lines = [",".join(names), *(",".join(f"{x:.9g}" for x in row) for row in values)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_variants(
    folder: str | os.PathLike[str], problem: Problem, theta: Float[np.ndarray, "n size"], kind: str | None = None
) -> tuple[list[Path], list[Finding]]:
    """Writes a robot file for each choice of the coordinates, and lists them and what the files could not hold.

    Args:
        folder: Where to.
        problem: The problem, whose robot is varied.
        theta: Coordinates, such as samples of a posterior.
        kind: `mjcf` or `urdf`; the robot's own by default.
    """
    source = problem.simulator.model.source
    if source is None:
        raise FileError("The robot did not come from a file, so there is none to vary.")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    suffix, digits = SUFFIXES[kind or source.format], len(str(max(len(theta) - 1, 1)))
    written, findings = [], {}
    for k, one in enumerate(theta):
        path = folder / f"{source.path.stem}_{k:0{digits}d}{suffix}"
        for finding in save(fitted_model(problem, one), path):
            findings[finding.subject] = finding
        written.append(path)
    return written, list(findings.values())


def _correlations(values: np.ndarray) -> np.ndarray:
    apart = values - values.mean(axis=0)
    std = np.maximum(apart.std(axis=0), 1e-300)
    return (apart / std).T @ (apart / std) / len(values)
