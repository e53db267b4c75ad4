"""Parts of a fit that are read back from its folder."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from truesim.identification.diagnose.covariance import Uncertainty
from truesim.identification.diagnose.diagnosis import Diagnosis, Part
from truesim.identification.diagnose.estimates import Estimate
from truesim.identification.diagnose.evaluation import Errors
from truesim.identification.diagnose.score_test import read_alternative
from truesim.identification.diagnose.status import Code, Diagnostic, Status
from truesim.identification.fit_folder import START
from truesim.identification.options import IdentifyOptions, read_options
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.segments import Nodes, Windows
from truesim.identification.regression.errors import TorqueError
from truesim.identification.request import Request
from truesim.identification.solve.levenberg_marquardt import Ending, Progress
from truesim.identification.solve.normal_equations import ResidualWeights
from truesim.identification.solve.solution import Solution
from truesim.physics.blueprint import read_networks
from truesim.physics.blueprint.trained import has_networks


def load_options(document: Mapping[str, Any], folder: Path) -> IdentifyOptions:
    """Options of the fit, with the start weights of its networks."""
    options = read_options(document["options"])
    start = folder / START
    if has_networks(start):
        problem = dataclasses.replace(options.problem, blueprint=read_networks(start))
        options = dataclasses.replace(options, problem=problem)
    return options


def load_request(document: Mapping[str, Any], options: IdentifyOptions) -> Request:
    """Request of the fit."""
    provenance = document["provenance"]
    flags = provenance["request"]["options"]
    return Request(
        robot=provenance["robot"]["file"],
        logs=tuple(log["file"] for log in provenance["logs"]),
        free=tuple(provenance["request"]["free"]),
        holdout=tuple(log["file"] for log in provenance["holdout"]),
        validate=tuple(flags.get("validate", ())),
        options=options,
    )


def load_solution(
    problem: Problem, arrays: Mapping[str, np.ndarray], document: Mapping[str, Any], options: IdentifyOptions
) -> Solution:
    """Solution of the fit; residuals and derivatives are simulated on first use."""
    timing = document["timing"]
    return Solution(
        problem=problem,
        theta=arrays["theta"],
        nodes=Nodes(arrays["q"], arrays["v"], arrays.get("memory")),
        weights=ResidualWeights(arrays["noise"], arrays["defect_std"], options.solve.robust),
        windows=Windows(arrays["window"], arrays["place"]),
        sensor_noise=arrays["sensor_noise"],
        ending=Ending(document["ending"]),
        history=tuple(
            Progress(h["iteration"], h["cost"], np.nan, h["step"], np.full(len(arrays["theta"]), np.nan))
            for h in document["convergence"]
        ),
        compile_seconds=timing["compile_seconds"],
        solve_seconds=timing["solve_cpu_seconds"],
        differentiable=options.search is None or options.search.engine != "mujoco",
    )


def load_diagnosis(document: Mapping[str, Any], found: Uncertainty) -> Diagnosis:
    """Diagnosis of the fit; its predictions stay in the folder."""
    return Diagnosis(
        estimates=tuple(Estimate.of_document(p) for p in document["parameters"]),
        uncertainty=found,
        not_identifiable=tuple(map(tuple, document["not_identifiable"])),
        errors={Part(part): {row: Errors(**e) for row, e in each.items()} for part, each in document["errors"].items()},
        torque_errors={
            Part(part): {joint: TorqueError(**e) for joint, e in each.items()}
            for part, each in document.get("torque_errors", {}).items()
        },
        status=Status(document["status"]),
        diagnostics=tuple(
            Diagnostic(Code(d["code"]), tuple(d["subjects"]), _number(d["value"]), _number(d["ratio"]))
            for d in document["diagnostics"]
        ),
        alternatives=tuple(read_alternative(a) for a in document.get("alternatives", ())),
    )


def _number(value: float | None) -> float:
    return np.nan if value is None else value
