"""The folder of a fit: what it found, the robot with it, and what is needed to run it again.

- `fit.json`: estimates, errors, verdict and provenance. `schema` names the layout.
- the robot file, under its own name and in its own format, with only the identified numbers changed.
- `networks.json` and `networks.npz`: what the networks within the physics are, and their weights, if there are any.
- `signals.npz`: measured and simulated signals of every log, for the report.
"""

import dataclasses
import hashlib
import importlib.metadata
import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from truesim.contact.choose import described
from truesim.core.errors import FileError, TruesimError
from truesim.formats import save
from truesim.identify import checkpoint
from truesim.identify.channels import predicted_values
from truesim.identify.effects import effects, silent_errors
from truesim.identify.evaluate import WINDOW, Prediction
from truesim.identify.problem import Problem
from truesim.identify.result import Fit, table
from truesim.identify.search.hopping import Found
from truesim.identify.verdict import INTERRUPTED
from truesim.identify.weights import NETWORKS, is_network
from truesim.simulate import read_networks, write_networks
from truesim.simulate.augment.file import description_of
from truesim.simulate.augment.trained import Trained, has_networks

SCHEMA = "truesim.fit/1"
JOURNAL = "search.jsonl"
"""What a search has finished; a killed one goes on from it."""
BASINS = 20
"""Basins that are listed, at most."""
UNFINISHED = (JOURNAL, checkpoint.FILE, checkpoint.PART)
"""What a search that was killed leaves behind, and goes on from."""
INCIDENTAL = ("workers", "seconds", "solves", "cost")
"""Options that do not change which solves a search consists of, but only how many of them are done."""
PACKAGES = ("truesim", "jax", "numpy", "mujoco", "llvmlite")


@dataclasses.dataclass(frozen=True)
class Request:
    """What was asked for: enough to ask again."""

    robot: str
    """Robot file."""
    logs: tuple[str, ...]
    free: tuple[str, ...]
    holdout: tuple[str, ...] = ()
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Everything else that was given, by name."""

    def fingerprint(self) -> str:
        """Equal for requests on equal files of which one goes on where the other stopped."""
        options = {name: value for name, value in self.options.items() if name not in INCIDENTAL}
        said = json.dumps([self.free, options], sort_keys=True, default=str)
        files = [_digest(Path(f)) for f in (self.robot, *self.logs, *self.holdout)]
        return hashlib.sha256("\n".join([said, *files]).encode()).hexdigest()


def write_fit(fit: Fit, folder: str | os.PathLike[str], request: Request | None = None) -> None:
    """Writes the folder; files appear whole or not at all.

    Args:
        fit: The fit.
        folder: Where to write.
        request: What was asked for; by default as far as the fit itself knows.
    """
    folder = Path(folder)
    request = request or _request(fit)
    folder.mkdir(parents=True, exist_ok=True)
    save(fit.model, folder / Path(request.robot).name)
    if fit.networks is not None:
        write_networks(fit.networks, folder)
    _write(folder / "signals.npz", lambda part: np.savez_compressed(part, allow_pickle=False, **_signals(fit)))
    text = json.dumps(_document(fit, request), indent=1, allow_nan=False)
    _write(folder / "fit.json", lambda part: part.write_text(text + "\n", encoding="utf-8"))


def read_fit(folder: Path) -> dict[str, Any]:
    """What `fit.json` in a folder holds."""
    path = folder / "fit.json"
    if not path.is_file():
        raise FileError(f"{folder} is not the folder of a fit: it has no fit.json.")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{path} cannot be read: {error}.") from None
    if document.get("schema") != SCHEMA:
        raise FileError(f"{path} has the layout {document.get('schema')!r}; this version reads {SCHEMA!r}.")
    return document


def robot_file(folder: Path) -> Path:
    """The robot file in the folder of a fit."""
    return folder / Path(read_fit(folder)["provenance"]["robot"]["file"]).name


def networks_in(folder: Path) -> Trained | None:
    """The networks in the folder of a fit, if it has any."""
    return read_networks(folder) if has_networks(folder) else None


def values_in(folder: Path, document: Mapping[str, Any]) -> dict[str, Any]:
    """Values of all parameters in the folder of a fit, by path; weights of networks are among them."""
    values = {p["path"]: p["value"] for p in document["parameters"]}
    found = networks_in(folder)
    return values if found is None else values | {f"{NETWORKS}/{name}": w for name, w in found.weights.items()}


def resumable(folder: Path, request: Request, force: bool = False) -> dict[str, Any] | None:
    """The interrupted fit of the same request in a folder, if there is one; an error if anything else is there."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    if not folder.is_dir():
        raise FileError(f"{folder} is a file; give another folder.")
    if force:
        for name in UNFINISHED:
            (folder / name).unlink(missing_ok=True)
        return None
    if all(path.name in UNFINISHED for path in folder.iterdir()):
        return None
    if request.options.get("search") and (folder / JOURNAL).is_file() and not (folder / "fit.json").is_file():
        return None  # a search that was killed; the journal itself refuses another one
    if not (folder / "fit.json").is_file():
        raise TruesimError(f"{folder} is not empty and holds no fit; give another folder, or --force to write into it.")
    document = read_fit(folder)
    same = document["provenance"]["request"]["fingerprint"] == request.fingerprint()
    if document["verdict"] == INTERRUPTED and same:
        return document
    raise TruesimError(f"{folder} holds a result already; give another folder, or --force to replace it.")


def _request(fit: Fit) -> Request:
    source = fit.problem.simulator.model.source
    others = () if fit.held_out is None else tuple(r.name for r in fit.held_out.recordings)
    return Request(
        robot="robot.xml" if source is None or source.path is None else str(source.path),
        logs=tuple(r.name for r in fit.problem.recordings),
        free=tuple(fit.problem.parameters.names),
        holdout=others,
    )


def _document(fit: Fit, request: Request) -> dict[str, Any]:
    solution, problem = fit.solution, fit.problem
    rows = zip(
        problem.rows, solution.weights.noise, solution.sensor_noise, fit.uncertainty.correlation_time, strict=True
    )
    names = [p.name for p in problem.parameters for _ in range(np.size(p.start))]
    own = np.flatnonzero([not name.startswith(f"{NETWORKS}/") for name in names])
    return {
        "schema": SCHEMA,
        "verdict": fit.verdict.kind,
        "reasons": list(fit.verdict.sentences),
        "parameters": _finite(table(fit)),
        "errors": {
            part: {row: _finite(dataclasses.asdict(e)) for row, e in found.items()}
            for part, found in fit.errors.items()
        },
        "units": _units(problem),
        "unseen": list(fit.unseen),
        "correlations": {
            "names": [names[k] for k in own],
            "matrix": _finite(fit.uncertainty.correlations[np.ix_(own, own)].round(6).tolist()),
        },
        "networks": _networks(fit),
        "errors_without_networks": _silent(fit),
        "noise": {
            row: {"residual": float(r), "sensor": float(s), "correlation_time": float(t)} for row, r, s, t in rows
        },
        "windows": {"count": solution.windows.shape[0], "seconds": solution.window_seconds},
        "convergence": [{"iteration": h.iteration, "cost": h.cost, "step": h.step} for h in solution.history],
        "timing": {"compile_seconds": solution.compile_seconds, "solve_cpu_seconds": solution.solve_seconds},
        "provenance": _provenance(request) | {"contact": described(problem.simulator.contact)},
    } | ({} if solution.found is None else {"search": _search(problem, solution.found)})


def _search(problem: Problem, found: Found) -> dict[str, Any]:
    """What a search came to: values of the parameters in each basin, its cost, and how often it was found."""
    basins = found.basins()
    places = list(zip(problem.parameters.names, problem.parameters.number_slices(), strict=True))
    rows = []
    for theta, cost, count in zip(basins.theta[:BASINS], basins.cost, basins.count, strict=False):
        values, _ = problem.values(theta)
        held = {name: values[at].tolist() for name, at in places}
        rows.append({"cost": float(cost), "count": int(count), "values": held})
    return {"solves": basins.solves, "evaluations": found.evaluations, "found": len(basins), "basins": rows}


def _networks(fit: Fit) -> list[dict[str, Any]]:
    """What each network is, and how much of it was learned."""
    if fit.networks is None:
        return []
    parameters = [p for p in fit.problem.parameters if is_network(p)]
    pairs = zip(description_of(fit.networks.blueprint)["rule"], parameters, strict=True)
    learned, found = fit.networks.weights, effects(fit.problem, fit.solution.theta)
    return [
        {
            **table,
            "weights": p.size,
            "change": float(np.sqrt(np.mean((learned[table["name"]] - p.start) ** 2))),
            "effect": _finite(dataclasses.asdict(found[table["name"]])) if table["name"] in found else None,
        }
        for table, p in pairs
    ]


def _silent(fit: Fit) -> dict[str, Any]:
    """Open-loop errors with all networks silent."""
    if fit.networks is None:
        return {}
    logs = {"train": fit.problem} | ({} if fit.held_out is None else {"held_out": fit.held_out})
    return {part: _finite(silent_errors(p, fit.solution.theta, WINDOW)) for part, p in logs.items()}


def _units(problem: Problem) -> dict[str, str]:
    """Unit of each row of the residual; rotations are rotation vectors."""
    known = {channel.name: channel.unit for channel in problem.simulator.model.sensors.channels}
    return {row: known.get(row.removeprefix("sensor/"), "rad") for row in problem.rows}


def _provenance(request: Request) -> dict[str, Any]:
    def file(name: str) -> dict[str, str]:
        return {"file": name, "sha256": _digest(Path(name))}

    return {
        "robot": file(request.robot),
        "logs": [file(log) for log in request.logs],
        "holdout": [file(log) for log in request.holdout],
        "request": {
            "free": list(request.free),
            "options": {k: v for k, v in request.options.items() if v not in (None, (), {}, [])},
            "fingerprint": request.fingerprint(),
        },
        "versions": {name: _version(name) for name in PACKAGES} | {"python": platform.python_version()},
    }


def _signals(fit: Fit) -> dict[str, np.ndarray]:
    """Arrays by `part/log/what`; windows follow each other, with NaN between."""
    arrays: dict[str, np.ndarray] = {}
    for part, problem in (("train", fit.problem), ("held_out", fit.held_out)):
        if problem is None:
            continue
        for fitted, start in zip(fit.predictions[part], fit.predictions[f"{part}_start"], strict=True):
            name = f"{part}/{problem.recordings[fitted.log].name}"
            time, measured, simulated = _unrolled(problem, fitted)
            arrays |= {f"{name}/time": time, f"{name}/measured": measured, f"{name}/fitted": simulated}
            arrays[f"{name}/start"] = _unrolled(problem, start)[2]
    return arrays | {"rows": np.array(fit.problem.rows)}


def _unrolled(problem: Problem, predicted: Prediction) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Time, measurement and prediction of one log's windows, one after the other."""
    recording = problem.recordings[predicted.log]
    at = np.minimum(predicted.first[:, None] + np.arange(predicted.residual.shape[1]), len(recording.time) - 1)
    inside = np.asarray(predicted.valid.any(axis=-1))
    zero = np.zeros((*at.shape, len(problem.rows)))
    measured = np.where(predicted.valid, predicted_values(problem.channels, zero, recording.measured[at]), np.nan)
    simulated = predicted_values(problem.channels, predicted.residual, recording.measured[at])
    pieces = [(recording.time[at[w]][k], measured[w][k], simulated[w][k]) for w, k in enumerate(inside)]
    gap = np.full((1, len(problem.rows)), np.nan)
    time = np.concatenate([np.append(t, t[-1]) for t, _, _ in pieces if len(t)])
    return (
        time,
        np.concatenate([np.concatenate([m, gap]) for _, m, _ in pieces if len(m)]),
        np.concatenate([np.concatenate([s, gap]) for _, _, s in pieces if len(s)]),
    )


def _finite(value: Any) -> Any:
    """The same with numbers that JSON cannot hold as null."""
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, Mapping):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_finite(v) for v in value]
    return value


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _write(path: Path, write: Any) -> None:
    part = path.with_name(f".{path.stem}.part{path.suffix}")
    write(part)
    part.replace(path)
