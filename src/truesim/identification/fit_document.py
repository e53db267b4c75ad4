"""The document `fit.json` of a fit: estimates, errors, status and provenance as plain values."""

import dataclasses
import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truesim.identification.diagnose.messages import explain, explain_group
from truesim.identification.diagnose.network_effects import effects, errors_without_networks
from truesim.identification.diagnose.score_test import alternative_document
from truesim.identification.diagnose.status import Diagnostic
from truesim.identification.options import plain_values
from truesim.identification.problem.network_weights import NETWORKS, is_network
from truesim.identification.problem.problem import Problem
from truesim.identification.request import Request, digest
from truesim.optimize.basin_hopping import SearchResult
from truesim.physics.blueprint.file import description_of
from truesim.physics.contact.choose import described

if TYPE_CHECKING:
    from truesim.identification.fit import Fit

FIT_SCHEMA = "truesim.fit/1"
LISTED_BASINS = 20
"""Maximum number of basins in the document."""
PACKAGES = ("truesim", "jax", "numpy", "mujoco", "llvmlite")


def document_of(fit: "Fit") -> dict[str, Any]:
    """The content of `fit.json`."""
    solution, problem, found = fit.solution, fit.problem, fit.diagnosis
    rows = zip(
        problem.rows, solution.weights.noise, solution.sensor_noise, found.uncertainty.correlation_time, strict=True
    )
    names = number_names(problem)
    own = np.flatnonzero([not name.startswith(f"{NETWORKS}/") for name in names])
    reasons = list(map(explain, found.diagnostics))
    return {
        "schema": FIT_SCHEMA,
        "verdict": str(found.status),
        "reasons": reasons,
        "parameters": finite([e.document() for e in found.estimates]),
        "errors": {
            str(part): {row: finite(dataclasses.asdict(e)) for row, e in each.items()}
            for part, each in found.errors.items()
        },
        "torque_errors": {
            str(part): {joint: finite(dataclasses.asdict(e)) for joint, e in each.items()}
            for part, each in found.torque_errors.items()
        },
        "units": _units(problem),
        "unseen": list(map(explain_group, fit.not_identifiable)),
        "correlations": {
            "names": [names[k] for k in own],
            "matrix": finite(found.uncertainty.correlations[np.ix_(own, own)].round(6).tolist()),
        },
        "networks": _networks(fit),
        "errors_without_networks": _silent(fit),
        "noise": {
            row: {"residual": float(r), "sensor": float(s), "correlation_time": float(t)} for row, r, s, t in rows
        },
        "windows": {"count": solution.windows.shape[0], "seconds": solution.window_seconds},
        "convergence": [{"iteration": h.iteration, "cost": h.cost, "step": h.step} for h in solution.history],
        "timing": {"compile_seconds": solution.compile_seconds, "solve_cpu_seconds": solution.solve_seconds},
        "provenance": _provenance(fit.request) | {"contact": described(problem.simulator.contact)},
        "status": str(found.status),
        "ending": str(solution.ending),
        "not_identifiable": [list(group) for group in found.not_identifiable],
        "diagnostics": [_diagnostic(d, sentence) for d, sentence in zip(found.diagnostics, reasons, strict=True)],
        "alternatives": finite([alternative_document(a) for a in found.alternatives]),
        "options": fit.request.options.document(),
    } | ({} if solution.found is None else {"search": _search(problem, solution.found)})


def number_names(problem: Problem) -> list[str]:
    """Name of the parameter of each number among the values of a problem."""
    return [p.name for p in problem.parameters for _ in range(np.size(p.start))]


def finite(value: Any) -> Any:
    """The same value with numbers that JSON cannot hold as null."""
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, Mapping):
        return {k: finite(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [finite(v) for v in value]
    return value


def _diagnostic(diagnostic: Diagnostic, sentence: str) -> dict[str, Any]:
    return {
        "code": str(diagnostic.code),
        "subjects": list(diagnostic.subjects),
        "value": finite(float(diagnostic.value)),
        "ratio": finite(float(diagnostic.ratio)),
        "sentence": sentence,
    }


def _search(problem: Problem, found: SearchResult) -> dict[str, Any]:
    """Basins of a search: values of the parameters, cost, and how often each was found."""
    basins = found.basins()
    places = list(zip(problem.parameters.names, problem.parameters.number_slices(), strict=True))
    rows = []
    for theta, cost, count in zip(basins.theta[:LISTED_BASINS], basins.cost, basins.count, strict=False):
        values, _ = problem.values(theta)
        held = {name: values[at].tolist() for name, at in places}
        rows.append({"cost": float(cost), "count": int(count), "values": held})
    return {"solves": basins.solves, "evaluations": found.evaluations, "found": len(basins), "basins": rows}


def _networks(fit: "Fit") -> list[dict[str, Any]]:
    """Description of each network, and how much its weights have changed."""
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
            "effect": finite(dataclasses.asdict(found[table["name"]])) if table["name"] in found else None,
        }
        for table, p in pairs
    ]


def _silent(fit: "Fit") -> dict[str, Any]:
    """Open-loop errors with all networks switched off."""
    if fit.networks is None:
        return {}
    logs = {"train": fit.problem} | ({} if fit.held_out is None else {"held_out": fit.held_out})
    window = fit.request.options.diagnose.error_window
    return {part: finite(errors_without_networks(p, fit.solution.theta, window)) for part, p in logs.items()}


def _units(problem: Problem) -> dict[str, str]:
    """Unit of each row of the residual; rotations are rotation vectors."""
    known = {channel.name: channel.unit for channel in problem.simulator.model.sensors.channels}
    return {row: known.get(row.removeprefix("sensor/"), "rad") for row in problem.rows}


def _provenance(request: Request) -> dict[str, Any]:
    def file(name: str) -> dict[str, str]:
        return {"file": name, "sha256": digest(Path(name))}

    return {
        "robot": file(request.robot),
        "logs": [file(log) for log in request.logs],
        "holdout": [file(log) for log in request.holdout],
        "request": {
            "free": list(request.free),
            "options": plain_values({k: v for k, v in request.flags().items() if v not in (None, (), {}, [])}),
            "fingerprint": request.fingerprint(),
        },
        "versions": {name: _version(name) for name in PACKAGES} | {"python": platform.python_version()},
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
