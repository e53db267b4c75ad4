"""Estimates of single parameters, with intervals and flags."""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from truesim.core.typing import Bool, Float
from truesim.identification.diagnose.covariance import NORMAL_QUANTILE, Uncertainty
from truesim.identification.diagnose.identifiability import undetermined
from truesim.identification.diagnose.options import DiagnoseOptions
from truesim.identification.problem.network_weights import is_network
from truesim.identification.solve.solution import Solution
from truesim.physics.parameters import Parameter
from truesim.physics.parameters.transforms import Positive

PRIOR_SHARE = 0.9
"""An estimate whose standard deviation exceeds this fraction of its prior's is flagged. Larger flags fewer."""


class Flag(enum.StrEnum):
    """Kind of a flag of an estimate."""

    NOT_IDENTIFIABLE = "not identifiable"
    PARTLY_NOT_IDENTIFIABLE = "partly not identifiable"
    AT_LOWER_BOUND = "at lower bound"
    AT_UPPER_BOUND = "at upper bound"
    FROM_PRIOR = "known from prior"
    CORRELATED = "correlated"
    WIDENED = "interval widened for misfit"
    MISFIT = "misfit not in interval"
    """The model does not fit, for an unknown reason: the interval counts what is missing as noise."""


class EstimateFlag(NamedTuple):
    """A flag of an estimate, with the elements or the other path that it concerns."""

    kind: Flag
    elements: tuple[int, ...] = ()
    """Elements of a vector that are not identifiable."""
    path: str = ""
    """The other parameter of a correlation."""

    @classmethod
    def parse(cls, text: str) -> "EstimateFlag":
        """Parse the text of a flag, the inverse of `str`."""
        if text.startswith("correlated with "):
            return cls(Flag.CORRELATED, path=text.removeprefix("correlated with "))
        kind, _, elements = text.partition(" in [")
        return cls(Flag(kind), tuple(int(k) for k in elements.rstrip("]").split(",") if k.strip()))

    def __str__(self) -> str:
        if self.kind is Flag.CORRELATED:
            return f"correlated with {self.path}"
        return self.kind + (f" in [{', '.join(map(str, self.elements))}]" if self.elements else "")


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Estimate of one parameter, in SI units; fields of a vector are arrays."""

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
    flags: tuple[EstimateFlag, ...]

    @property
    def identifiable(self) -> bool:
        """True if all elements of the parameter are identifiable."""
        return not any(f.kind in (Flag.NOT_IDENTIFIABLE, Flag.PARTLY_NOT_IDENTIFIABLE) for f in self.flags)

    @property
    def is_known(self) -> bool:
        """True if the value is that of the start, exactly: the model that was returned has no such parameter."""
        return not self.std.any() and bool(np.all(self.value == self.start))

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> "Estimate":
        """The estimate of a document, the inverse of `document`; null is a value that is not finite."""
        arrays = {name: np.array(document[name], float) for name in ("start", "value", "std", "low", "high")}
        low, high = (np.array(b, float) for b in document["bounds"])
        signs = -np.inf, np.inf
        bounds = tuple(np.where(np.isnan(b), sign, b) for b, sign in zip((low, high), signs, strict=True))
        flags = tuple(map(EstimateFlag.parse, document["flags"]))
        return cls(document["path"], document["unit"], **arrays, bounds=(bounds[0], bounds[1]), flags=flags)

    def document(self) -> dict[str, Any]:
        """The estimate as plain numbers and lists, for JSON."""
        numbers = {name: np.asarray(getattr(self, name)).tolist() for name in ("start", "value", "std", "low", "high")}
        bounds = [np.asarray(b).tolist() for b in self.bounds]
        return {"path": self.path, "unit": self.unit, **numbers, "bounds": bounds, "flags": list(map(str, self.flags))}


def estimates(
    solution: Solution,
    found: Uncertainty,
    options: DiagnoseOptions,
    widened: Bool[np.ndarray, " size"] | None = None,
    misfit: bool = False,
) -> tuple[Estimate, ...]:
    """Estimates of all parameters except network weights.

    Args:
        solution: The solved problem.
        found: Covariance of the estimates.
        options: Thresholds of flags.
        widened: Coordinates whose intervals were widened since the model does not fit.
        misfit: Whether the model does not fit.
    """
    parameters = solution.problem.solved
    values, _ = solution.problem.values(solution.theta)
    std = np.sqrt(np.maximum(np.diag(found.values), 0.0))
    unknown = undetermined(solution, found, options.identifiable_std)
    out = []
    for k, (p, c, n) in enumerate(zip(parameters, parameters.slices(), parameters.number_slices(), strict=True)):
        if is_network(p):
            continue
        value, own = values[n].reshape(np.shape(p.start)), std[n].reshape(np.shape(p.start))
        low, high = interval(p, value, own)
        flags = (*_flags(p, value, own, unknown[c], options), *_correlated(solution, found, k, options.correlation))
        if widened is not None and widened[c].any():
            flags = (*flags, EstimateFlag(Flag.WIDENED))
        elif misfit:
            flags = (*flags, EstimateFlag(Flag.MISFIT))
        bounds = np.asarray(p.low), np.asarray(p.high)
        out.append(Estimate(p.name, p.unit, p.start, value, own, low, high, bounds, flags))
    return tuple(out)


def interval(
    parameter: Parameter, value: Float[np.ndarray, "..."], std: Float[np.ndarray, "..."]
) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    """Ends of the 95 % interval within the parameter's bounds; logarithmic for positive quantities [SI units]."""
    if isinstance(parameter.transform, Positive):
        ratio = np.exp(np.minimum(NORMAL_QUANTILE * std / value, 50.0))
        low, high = value / ratio, value * ratio
    else:
        low, high = value - NORMAL_QUANTILE * std, value + NORMAL_QUANTILE * std
    return np.asarray(np.maximum(low, parameter.low)), np.asarray(np.minimum(high, parameter.high))


def _flags(
    parameter: Parameter,
    value: np.ndarray,
    std: np.ndarray,
    unknown: Bool[np.ndarray, " size"],
    options: DiagnoseOptions,
) -> list[EstimateFlag]:
    flags = []
    if unknown.all():
        flags.append(EstimateFlag(Flag.NOT_IDENTIFIABLE))
    elif unknown.any() and unknown.size == value.size:
        flags.append(EstimateFlag(Flag.NOT_IDENTIFIABLE, tuple(int(k) for k in np.flatnonzero(unknown))))
    elif unknown.any():
        flags.append(EstimateFlag(Flag.PARTLY_NOT_IDENTIFIABLE))
    z = parameter.transform.coordinates(value)
    low, high = parameter.bounds()
    room = options.bound_distance * np.minimum(1.0, high - low)
    if np.any(z - low < room):
        flags.append(EstimateFlag(Flag.AT_LOWER_BOUND))
    if np.any(high - z < room):
        flags.append(EstimateFlag(Flag.AT_UPPER_BOUND))
    if parameter.prior is not None and np.all(std > PRIOR_SHARE * parameter.prior.std):
        flags.append(EstimateFlag(Flag.FROM_PRIOR))
    return flags


def _correlated(solution: Solution, found: Uncertainty, k: int, threshold: float) -> Sequence[EstimateFlag]:
    """Other parameters that are strongly correlated with parameter `k`."""
    parameters = solution.problem.solved
    numbers, correlations = parameters.number_slices(), np.abs(found.correlations)
    return [
        EstimateFlag(Flag.CORRELATED, path=other.name)
        for j, other in enumerate(parameters)
        if j != k and not is_network(other) and correlations[numbers[k], numbers[j]].max(initial=0.0) > threshold
    ]
