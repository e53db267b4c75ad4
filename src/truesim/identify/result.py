"""The result of a fit: estimates with intervals, errors, a verdict and where it all came from."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from truesim.core.typing import Float
from truesim.identify.evaluate import Errors, Prediction, errors, predictions
from truesim.identify.fit import Solution
from truesim.identify.problem import Problem
from truesim.identify.uncertainty import Uncertainty, loose, uncertainty, unseen
from truesim.identify.verdict import Verdict, verdict
from truesim.identify.weights import is_network, trained
from truesim.model.model import Model
from truesim.parameters import Parameter
from truesim.parameters.transforms import Positive
from truesim.simulate import Trained

QUANTILE = 1.959964
"""Half width of a 95 % interval in standard deviations."""
AT_BOUND = 0.01
"""An estimate this near to a bound, as a part of the way between bounds, is flagged."""
ALIKE = 0.98
"""Estimates with a larger correlation are flagged."""


@dataclasses.dataclass(frozen=True)
class Estimate:
    """One parameter after a fit, in SI units; a vector's fields are arrays."""

    path: str
    unit: str
    start: Float[np.ndarray, "..."]
    value: Float[np.ndarray, "..."]
    std: Float[np.ndarray, "..."]
    low: Float[np.ndarray, "..."]
    """Lower end of the 95 % interval."""
    high: Float[np.ndarray, "..."]
    """Upper end of the 95 % interval."""
    bounds: tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]
    flags: tuple[str, ...]
    """`not identifiable`, `at lower bound`, `at upper bound`, `correlated with <path>`, `known from prior`."""


@dataclasses.dataclass(frozen=True)
class Fit:
    """Everything a fit found out."""

    solution: Solution
    estimates: tuple[Estimate, ...]
    uncertainty: Uncertainty
    unseen: tuple[str, ...]
    """What the logs do not show, in words."""
    errors: Mapping[str, Mapping[str, Errors]]
    """Open-loop errors of each channel: `train`, `train_start`, and with held-out logs `held_out`, `held_out_start`."""
    predictions: Mapping[str, Sequence[Prediction]]
    """Simulated windows, under the same names."""
    verdict: Verdict
    held_out: Problem | None = None

    @property
    def problem(self) -> Problem:
        """The problem that was solved."""
        return self.solution.problem

    @property
    def model(self) -> Model:
        """The robot with the estimates; values that belong to single logs stay at their start."""
        return fitted_model(self.problem, self.solution.theta)

    @property
    def networks(self) -> Trained | None:
        """The networks with what they learned."""
        blueprint = self.problem.blueprint
        return None if blueprint is None else trained(blueprint, self.problem.parameters, self.solution.theta)


def fitted_model(problem: Problem, theta: Float[np.ndarray, "size"]) -> Model:
    """The robot at these coordinates; values that belong to single logs stay at their start."""
    start, values = problem.simulator.model, theta.copy()
    for parameter, at in zip(problem.parameters, problem.parameters.slices(), strict=True):
        if parameter.log is not None:
            values[at] = parameter.transform.coordinates(parameter.start)
    return problem.model_at(values, start)


def conclude(solution: Solution, held_out: Problem | None = None, window: float = 0.5) -> Fit:
    """Intervals, errors and the verdict of a solved problem.

    Args:
        solution: The solved problem.
        held_out: The same problem with logs that were not fitted to.
        window: Length of the windows over which open-loop errors are taken [s].
    """
    problem = solution.problem
    simulated: dict[str, list[Prediction]] = {}
    for name, logs in (("train", problem), ("held_out", held_out)):
        if logs is not None:
            for suffix, theta in (("", solution.theta), ("_start", problem.parameters.start)):
                simulated[name + suffix] = list(predictions(logs, theta, window))
    return assembled(solution, uncertainty(solution), simulated, held_out)


def assembled(
    solution: Solution,
    found: Uncertainty,
    simulated: Mapping[str, Sequence[Prediction]],
    held_out: Problem | None = None,
) -> Fit:
    """The fit of a solution whose spread and predictions are known.

    Args:
        solution: The solved problem.
        found: Spread of the estimates.
        simulated: Open-loop windows, under the names of `Fit.predictions`.
        held_out: The same problem with logs that were not fitted to.
    """
    hidden = unseen(solution, found)
    logs = {"train": solution.problem, "held_out": held_out or solution.problem}
    scored = {part: errors(logs[part.removesuffix("_start")], windows) for part, windows in simulated.items()}
    return Fit(
        solution=solution,
        estimates=tuple(_estimates(solution, found)),
        uncertainty=found,
        unseen=tuple(hidden),
        errors=scored,
        predictions=simulated,
        verdict=verdict(solution, hidden, scored["train"], scored.get("held_out")),
        held_out=held_out,
    )


def _estimates(solution: Solution, found: Uncertainty) -> list[Estimate]:
    parameters = solution.problem.solved
    values, _ = solution.problem.values(solution.theta)
    std = np.sqrt(np.maximum(np.diag(found.values), 0.0))
    unknown = loose(solution, found)
    places = zip(parameters, parameters.slices(), parameters.number_slices(), strict=True)
    return [
        _estimate(p, values[n].reshape(np.shape(p.start)), std[n], unknown[c], _alike(solution, found, k))
        for k, (p, c, n) in enumerate(places)
        if not is_network(p)
    ]


def _estimate(
    parameter: Parameter, value: np.ndarray, std: np.ndarray, unknown: np.ndarray, alike: Sequence[str]
) -> Estimate:
    std = std.reshape(value.shape)
    low, high = interval(parameter, value, std)
    return Estimate(
        path=parameter.name,
        unit=parameter.unit,
        start=parameter.start,
        value=value,
        std=std,
        low=low,
        high=high,
        bounds=(parameter.low, parameter.high),
        flags=(*_flags(parameter, value, std, unknown), *alike),
    )


def interval(
    parameter: Parameter, value: Float[np.ndarray, "..."], std: Float[np.ndarray, "..."]
) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    """Ends of the 95 % interval within the parameter's bounds; logarithmic for positive quantities [SI units]."""
    if isinstance(parameter.transform, Positive):
        ratio = np.exp(np.minimum(QUANTILE * std / value, 50.0))
        low, high = value / ratio, value * ratio
    else:
        low, high = value - QUANTILE * std, value + QUANTILE * std
    return np.maximum(low, parameter.low), np.minimum(high, parameter.high)


def _flags(parameter: Parameter, value: np.ndarray, std: np.ndarray, unknown: np.ndarray) -> list[str]:
    flags = []
    if unknown.all():
        flags.append("not identifiable")
    elif unknown.any():
        where = ", ".join(str(k) for k in np.flatnonzero(unknown))
        flags.append(f"not identifiable in [{where}]" if unknown.size == value.size else "partly not identifiable")
    z = parameter.transform.coordinates(value)
    low, high = parameter.bounds()
    room = AT_BOUND * np.minimum(1.0, high - low)
    if np.any(z - low < room):
        flags.append("at lower bound")
    if np.any(high - z < room):
        flags.append("at upper bound")
    if parameter.prior is not None and np.all(std > 0.9 * parameter.prior.std):
        flags.append("known from prior")
    return flags


def _alike(solution: Solution, found: Uncertainty, k: int) -> list[str]:
    """Other parameters that vary together with parameter `k`."""
    parameters = solution.problem.solved
    numbers, correlations = parameters.number_slices(), np.abs(found.correlations)
    return [
        f"correlated with {other.name}"
        for j, other in enumerate(parameters)
        if j != k and not is_network(other) and correlations[numbers[k], numbers[j]].max(initial=0.0) > ALIKE
    ]


def table(fit: Fit) -> list[dict[str, Any]]:
    """Estimates as plain numbers and lists, for JSON."""
    return [
        {
            "path": e.path,
            "unit": e.unit,
            **{name: np.asarray(getattr(e, name)).tolist() for name in ("start", "value", "std", "low", "high")},
            "bounds": [np.asarray(b).tolist() for b in e.bounds],
            "flags": list(e.flags),
        }
        for e in fit.estimates
    ]
