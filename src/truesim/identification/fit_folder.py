"""The folder of a fit: everything that its readers need, wherever it is moved.

- `fit.json`: estimates, errors, status, options and provenance. `schema` names the layout.
- the robot file, under its own name and in its own format, with only the identified numbers changed.
- for a URDF, the same robot as MJCF, with its actuators.
- `start/`: the robot file with the start values, and the networks with their start weights.
- `networks.json` and `networks.npz`: the networks within the physics and their weights, if there are any.
- `solution.npz`: coordinates, initial states, covariance and weights in full precision.
- `logs.npz`: the prepared logs.
- `signals.npz`: measured and simulated signals of every log, for the report.
"""

import contextlib
import json
import shutil
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truesim.core.errors import FileError, TruesimError
from truesim.core.persistence import checkpoint
from truesim.core.persistence.atomic import write_arrays, write_json
from truesim.core.persistence.lock import LOCK_FILE
from truesim.files.logs import Log
from truesim.files.robots import load, save
from truesim.files.robots.assets import save_with_assets
from truesim.identification.diagnose.evaluation import Prediction
from truesim.identification.diagnose.status import Status
from truesim.identification.fit_document import FIT_SCHEMA
from truesim.identification.problem.channels import predicted_values
from truesim.identification.problem.network_weights import NETWORKS
from truesim.identification.problem.problem import Problem
from truesim.identification.request import Request
from truesim.physics.blueprint import Trained, read_networks, write_networks
from truesim.physics.blueprint.trained import has_networks
from truesim.physics.model.model import Model

if TYPE_CHECKING:
    from truesim.identification.fit import Fit

SEARCH_JOURNAL = "search.jsonl"
"""Finished solves of a search; an interrupted search continues from it."""
PART_FOLDER = ".result.part"
"""Folder in which a result is written before it is moved to its place."""
UNFINISHED = (SEARCH_JOURNAL, checkpoint.FILE, checkpoint.PART, LOCK_FILE)
"""Files that an interrupted identification leaves behind and continues from."""
DOCUMENT, SOLUTION, LOGS, SIGNALS, START = "fit.json", "solution.npz", "logs.npz", "signals.npz", "start"


def write_folder(fit: "Fit", folder: Path) -> None:
    """Write the folder of a fit: beside its place, then moved file by file.

    `fit.json` comes last, so that a folder with it is complete. A run that is killed meanwhile, or finds the disk full,
    leaves the part folder behind, by which the next one knows that it may replace everything.
    """
    part = folder / PART_FOLDER
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    _write_parts(fit, part)
    (folder / DOCUMENT).unlink(missing_ok=True)
    for entry in sorted(part.iterdir(), key=lambda entry: entry.name == DOCUMENT):
        target = folder / entry.name
        if target.is_dir():
            shutil.rmtree(target)
        entry.replace(target)
    part.rmdir()


def _write_parts(fit: "Fit", folder: Path) -> None:
    (folder / START).mkdir(parents=True, exist_ok=True)
    name = Path(fit.request.robot).name
    start = fit.problem.simulator.model
    save_with_assets(start, folder / START / name)
    save_with_assets(fit.model, folder / name)
    if name.endswith(".urdf"):
        _write_mujoco_file(folder / name, start)
    if fit.networks is not None:
        write_networks(fit.networks, folder)
        write_networks(_start_networks(fit), folder / START)
    write_arrays(folder / SOLUTION, _solution(fit))
    write_arrays(folder / LOGS, _log_arrays(fit))
    write_arrays(folder / SIGNALS, fit.signals)
    write_json(folder / DOCUMENT, fit.document)


def _write_mujoco_file(robot: Path, start: Model) -> None:
    """Write MJCF beside the URDF of a fit, with its actuators, or nothing if MuJoCo cannot express the robot."""
    floating_base = start.source is not None and start.source.floating_base
    with contextlib.suppress(TruesimError):
        save(load(robot, floating_base=floating_base), robot.with_suffix(".xml"))


def read_document(folder: str | Path) -> dict[str, Any]:
    """The content of `fit.json` in a folder."""
    folder = Path(folder)
    path = folder / DOCUMENT
    if not path.is_file():
        raise FileError(f"{folder} is not the folder of a fit: it has no {DOCUMENT}.")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{path} cannot be read: {error}.") from None
    if not isinstance(document, dict) or not isinstance(document.get("provenance"), dict):
        raise FileError(f"{path} is damaged: it is not the description of a fit.")
    if document.get("schema") != FIT_SCHEMA:
        raise FileError(f"{path} has the layout {document.get('schema')!r}; this version reads {FIT_SCHEMA!r}.")
    return document


def read_arrays(folder: Path, name: str) -> dict[str, np.ndarray]:
    """The arrays of an NPZ file in the folder of a fit."""
    path = folder / name
    if not path.is_file():
        raise FileError(
            f"{folder} has no {name}: it was written by an earlier version, or not completely; run the fit again."
        )
    try:
        with np.load(path, allow_pickle=False) as file:
            return {key: np.asarray(file[key]) for key in file.files}
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise FileError(f"{path} cannot be read: {error}.") from None


def robot_file(folder: Path) -> Path:
    """The robot file in the folder of a fit."""
    return folder / Path(read_document(folder)["provenance"]["robot"]["file"]).name


def mujoco_file(folder: Path) -> Path:
    """The MJCF file in the folder of a fit: the robot file, or its translation if that is a URDF."""
    return robot_file(folder).with_suffix(".xml") if robot_file(folder).suffix == ".urdf" else robot_file(folder)


def networks_in(folder: Path) -> Trained | None:
    """The networks in the folder of a fit, if it has any."""
    return read_networks(folder) if has_networks(folder) else None


def values_in(folder: Path, document: Mapping[str, Any]) -> dict[str, Any]:
    """Values of all parameters in the folder of a fit, by path; weights of networks are among them."""
    values = {p["path"]: p["value"] for p in document["parameters"]}
    found = networks_in(folder)
    return values if found is None else values | {f"{NETWORKS}/{name}": w for name, w in found.weights.items()}


def logs_in(folder: Path) -> dict[str, list[Log]]:
    """The prepared logs in the folder of a fit, by part: `train` and `held_out`."""
    arrays = read_arrays(folder, LOGS)
    parts: dict[str, list[Log]] = {"train": [], "held_out": []}
    for k, name in enumerate(arrays["names"]):
        columns = {str(column): arrays[f"{k}/values"][:, at] for at, column in enumerate(arrays[f"{k}/columns"])}
        derived = frozenset(map(str, arrays[f"{k}/derived"]))
        parts[str(arrays["parts"][k])].append(Log(arrays[f"{k}/time"], columns, str(name), derived))
    return parts


def resumable(folder: Path, request: Request, force: bool = False) -> dict[str, Any] | None:
    """The document of the interrupted fit of the same request in a folder, if there is one.

    Anything else in the folder is an error, unless `force` is given, which discards unfinished work.
    """
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
    if (folder / PART_FOLDER).is_dir() and not (folder / DOCUMENT).is_file():
        return None  # killed while the result was written: it continues from the checkpoint
    if request.options.search is not None and (folder / SEARCH_JOURNAL).is_file() and not (folder / DOCUMENT).is_file():
        return None  # a search that was killed; the journal itself refuses another one
    if not (folder / DOCUMENT).is_file():
        raise TruesimError(f"{folder} is not empty and holds no fit; give another folder, or --force to write into it.")
    document = read_document(folder)
    same = document["provenance"]["request"]["fingerprint"] == request.fingerprint()
    if document["verdict"] == Status.INTERRUPTED and same:
        return document
    raise TruesimError(
        f"{folder} holds a result already, of which `truesim report {folder}` writes the page; give another folder, or "
        "--force to replace it."
    )


def signals_of(problem: Problem, part: str, fitted: Sequence[Prediction], start: Sequence[Prediction]) -> dict:
    """Arrays by `part/log/name` of measured and predicted signals; windows follow each other, with NaN between."""
    arrays: dict[str, np.ndarray] = {}
    for after, before in zip(fitted, start, strict=True):
        name = f"{part}/{problem.recordings[after.log].name}"
        time, measured, simulated = _unrolled(problem, after)
        arrays |= {f"{name}/time": time, f"{name}/measured": measured, f"{name}/fitted": simulated}
        arrays[f"{name}/start"] = _unrolled(problem, before)[2]
    return arrays


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


def _solution(fit: "Fit") -> dict[str, np.ndarray]:
    solution, found = fit.solution, fit.diagnosis.uncertainty
    arrays = {
        "theta": solution.theta,
        "start": fit.problem.parameters.start,
        "q": solution.nodes.q,
        "v": solution.nodes.v,
        "noise": solution.weights.noise,
        "defect_std": solution.weights.defect_std,
        "window": solution.windows.window,
        "place": solution.windows.place,
        "sensor_noise": solution.sensor_noise,
        "covariance": found.coordinates,
        "value_covariance": found.values,
        "correlation_time": found.correlation_time,
    }
    return arrays if solution.nodes.memory is None else arrays | {"memory": solution.nodes.memory}


def _log_arrays(fit: "Fit") -> dict[str, np.ndarray]:
    each = [("train", log) for log in fit.logs] + [("held_out", log) for log in fit.held_out_logs]
    arrays: dict[str, np.ndarray] = {
        "names": np.array([log.name for _, log in each]),
        "parts": np.array([part for part, _ in each]),
    }
    for k, (_, log) in enumerate(each):
        columns = list(log.columns)
        arrays |= {
            f"{k}/time": log.time,
            f"{k}/columns": np.array(columns, dtype=np.str_),
            f"{k}/values": np.stack([log.columns[c] for c in columns], axis=1)
            if columns
            else np.zeros((len(log.time), 0)),
            f"{k}/derived": np.array(sorted(log.derived), dtype=np.str_),
        }
    return arrays


def _start_networks(fit: "Fit") -> Trained:
    blueprint = fit.problem.blueprint
    assert blueprint is not None, "a fit with networks has a blueprint"
    plan = blueprint.blueprint if isinstance(blueprint, Trained) else blueprint
    starts = [p.start for p in fit.problem.parameters if p.targets[0].path.group == NETWORKS]
    return Trained(plan, {rule.name: np.asarray(w) for rule, w in zip(plan.rules, starts, strict=True)})
