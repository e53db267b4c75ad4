"""Domain randomization from a posterior: ranges, samples, and robot files with sampled parameters."""

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from truesim.core.errors import FileError
from truesim.core.typing import Float
from truesim.files.robots import save
from truesim.identification.posterior.gaussians import Posterior
from truesim.identification.problem.fitted import fitted_model
from truesim.identification.problem.problem import Problem
from truesim.physics.model.source import Finding

RANGES_SCHEMA = "truesim.ranges/1"
VARIANT_SUFFIXES = {"mjcf": ".xml", "urdf": ".urdf"}
"""File suffix of robot files by format."""
RANGE_SAMPLES = 2000
"""Number of samples from which ranges are computed."""


@dataclasses.dataclass(frozen=True)
class Range:
    """Range within which one number of a robot should be randomized, in SI units."""

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


def sample_values(posterior: Posterior, problem: Problem, n: int, seed: int = 0) -> Float[np.ndarray, "n numbers"]:
    """Values of all parameters drawn from a posterior, in SI units, one column for each number."""
    return np.asarray(problem.values(posterior.sample(n, seed))[0])


def ranges(posterior: Posterior, problem: Problem, level: float = 0.95, seed: int = 0) -> list[Range]:
    """Central interval of probability `level` for each number of the parameters.

    Args:
        posterior: Posterior of the problem's coordinates.
        problem: The problem.
        level: Probability of each range by itself.
        seed: Seed of the samples from which ranges are computed.
    """
    values = sample_values(posterior, problem, RANGE_SAMPLES, seed)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
    units = [p.unit for p in problem.parameters for _ in range(np.size(p.start))]
    columns = (values.mean(axis=0), values.std(axis=0), low, high)
    rows = zip(number_names(problem), units, *columns, strict=True)
    return [Range(name, unit, *map(float, numbers)) for name, unit, *numbers in rows]


def write_ranges(
    path: Path,
    found: Sequence[Range],
    *,
    level: float,
    values: Float[np.ndarray, "n numbers"],
    warnings: Sequence[str] = (),
) -> None:
    """Write ranges as JSON, with correlations.

    Args:
        path: File to write.
        found: Ranges.
        level: Probability of the ranges.
        values: Samples from which correlations are computed.
        warnings: Reasons not to trust the ranges.
    """
    document: dict[str, Any] = {
        "schema": RANGES_SCHEMA,
        "level": level,
        "warnings": list(warnings),
        "ranges": {r.path: {k: getattr(r, k) for k in ("unit", "mean", "std", "low", "high")} for r in found},
        "correlations": {"names": [r.path for r in found], "matrix": _correlations(values).round(6).tolist()},
    }
    path.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def write_samples(path: Path, names: Sequence[str], values: Float[np.ndarray, "n numbers"]) -> None:
    """Write samples as CSV, one row for each sample and one column for each number."""
    lines = [",".join(names), *(",".join(f"{x:.9g}" for x in row) for row in values)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_variants(
    folder: str | os.PathLike[str], problem: Problem, theta: Float[np.ndarray, "n size"], kind: str | None = None
) -> tuple[list[Path], list[Finding]]:
    """Write a robot file for each candidate, and return the files and findings on what they could not represent.

    Args:
        folder: Folder to write to.
        problem: The problem; its robot is varied.
        theta: Coordinates, such as samples of a posterior.
        kind: `mjcf` or `urdf`; the format of the robot's file by default.
    """
    source = problem.simulator.model.source
    if source is None:
        raise FileError("The robot was not loaded from a file, so that there is no file to vary.")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    suffix, digits = VARIANT_SUFFIXES[kind or source.format], len(str(max(len(theta) - 1, 1)))
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
