"""Folders of fits that no fit was run for: small, quick to write, and with everything that a page has to show."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROWS = ("qpos/shoulder", "qpos/elbow", "sensor/<gyro>/x")
RATE, WINDOW = 200, 0.5
"""Samples per second, and length of a window [s]."""


def parameter(
    path: str, start: Any, value: Any, std: Any, flags: Sequence[str] = (), unit: str = "kg"
) -> dict[str, Any]:
    """An entry of `parameters`."""
    low, high = ((np.asarray(value) + sign * 1.96 * np.asarray(std)).tolist() for sign in (-1, 1))
    bounds = (
        [np.full(np.shape(value), b).tolist() for b in (0.0, 50.0)] if not isinstance(value, list) else [None, None]
    )
    return {
        "path": path, "unit": unit, "start": start, "value": value, "std": std, "low": low, "high": high,
        "bounds": bounds, "flags": list(flags),
    }  # fmt: skip


PARAMETERS = (
    parameter("bodies/upper.mass", 0.4, 0.5123, 0.0012),
    parameter("bodies/<lower>.mass", 0.4, 0.9, 3.0, ["not identifiable", "correlated with bodies/upper.mass"]),
    parameter(
        "bodies/upper.com", [0.0, 0.0, -0.1], [0.002, 0.0, -0.12], [0.001, 2.0, 0.003], ["not identifiable in [1]"], "m"
    ),
    parameter("joints/elbow.frictionloss", 0.05, 0.0, 0.01, ["at lower bound", "not identifiable"], "N m"),
    parameter("joints/elbow.armature", 1e-5, 2.345e-5, 3e-7, unit="kg m^2"),
)


def document(
    rows: Sequence[str] = ROWS,
    logs: Sequence[str] = ("a.csv", "b.csv"),
    holdout: Sequence[str] = ("c.csv",),
    parameters: Sequence[dict[str, Any]] = PARAMETERS,
) -> dict[str, Any]:
    """What `fit.json` holds."""
    size = sum(np.size(p["value"]) for p in parameters)
    parts = {"train": 0.02, "train_start": 0.2} | ({"held_out": 0.05, "held_out_start": 0.3} if holdout else {})
    return {
        "schema": "truesim.fit/1",
        "verdict": "not identifiable",
        "reasons": ["joints/elbow.frictionloss does not show in these logs."],
        "parameters": list(parameters),
        "errors": {
            part: {row: {"rmse": 1.2 * error, "median": error, "windows": 8} for row in rows}
            for part, error in parts.items()
        },
        "units": dict.fromkeys(rows, "rad"),
        "unseen": ["joints/elbow.frictionloss does not show in these logs."],
        "correlations": {
            "names": [p["path"] for p in parameters for _ in range(np.size(p["value"]))],
            "matrix": np.eye(size).tolist(),
        },
        "noise": {row: {"residual": 0.02, "sensor": 0.001, "correlation_time": 3.0} for row in rows},
        "windows": {"count": 12, "seconds": 0.25},
        "convergence": [{"iteration": k, "cost": 100.0 / k, "step": 0.1 / k} for k in range(1, 9)],
        "timing": {"compile_seconds": 12.3, "solve_cpu_seconds": 0.456},
        "provenance": {
            "robot": {"file": "robots/my arm.xml", "sha256": "ab" * 32},
            "logs": [{"file": f"logs/{log}", "sha256": "cd" * 32} for log in logs],
            "holdout": [{"file": f"logs/{log}", "sha256": "ef" * 32} for log in holdout],
            "request": {"free": ["bodies/*.mass"], "options": {"window": 0.5}, "fingerprint": "12" * 32},
            "versions": {"truesim": "0.1.0", "python": "3.11.7"},
        },
    }  # fmt: skip


def arrays(names: Sequence[str], rows: Sequence[str] = ROWS, seconds: float = 2.0) -> dict[str, np.ndarray]:
    """What `signals.npz` holds; the second channel has a hole, and the start values diverge in the last window."""
    random = np.random.default_rng(1)
    count, per_window = round(seconds * RATE), round(WINDOW * RATE)
    out: dict[str, np.ndarray] = {"rows": np.array(rows)}
    for name in names:
        time = np.arange(count) / RATE
        clean = np.stack([np.sin(2 * np.pi * (0.5 + 0.1 * k) * time) for k in range(len(rows))], axis=1)
        measured = clean + 0.001 * random.normal(size=clean.shape)
        measured[30:50, min(1, len(rows) - 1)] = np.nan
        start = 1.3 * clean
        start[-5:] = np.inf
        for what, values in (("measured", measured), ("fitted", clean), ("start", start)):
            pieces = np.split(values, range(per_window, count, per_window))
            out[f"{name}/{what}"] = np.concatenate(
                [np.pad(p, ((0, 1), (0, 0)), constant_values=np.nan) for p in pieces]
            )
        pieces = np.split(time, range(per_window, count, per_window))
        out[f"{name}/time"] = np.concatenate([np.append(p, p[-1]) for p in pieces])
    return out


def write(folder: Path, fit: dict[str, Any], signals: dict[str, np.ndarray]) -> Path:
    """Writes the folder of a fit."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fit.json").write_text(json.dumps(fit))
    np.savez_compressed(folder / "signals.npz", **signals)
    return folder


def write_small(folder: Path) -> Path:
    """Two logs, one held out, three channels, and parameters of every kind."""
    return write(folder, document(), arrays(["train/a.csv", "train/b.csv", "held_out/c.csv"]))
