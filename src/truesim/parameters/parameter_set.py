"""A set of parameters: a lens between a flat vector of coordinates and a model."""

import dataclasses
import fnmatch
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Array, Float
from truesim.model import paths
from truesim.model.model import COMPLIANCE, Model
from truesim.parameters.defaults import default
from truesim.parameters.parameter import ELEMENT, Parameter, Target, read, target, write

NEVER = frozenset(
    {"range", "margin", "gap", "size", "gear", "control_range", "force_range", "friction", "gain_slope", "ref"}
    | {"solref", "solimp", "solreffriction", "solimpfriction", "solreflimit", "solimplimit"}
    | {"restitution", *COMPLIANCE}
)
"""Fields that `*` does not stand for; name them to free them."""

INSIDE = 0.01
"""Distance of start values from their bounds, in coordinates."""


@dataclasses.dataclass(frozen=True)
class ParameterSet:
    """Parameters and their places in one vector of coordinates."""

    parameters: tuple[Parameter, ...]

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self.parameters)

    def __len__(self) -> int:
        return len(self.parameters)

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return sum(p.size for p in self.parameters)

    @property
    def names(self) -> list[str]:
        """Name of each parameter."""
        return [p.name for p in self.parameters]

    def slices(self) -> list[slice]:
        """Where each parameter's coordinates are."""
        return _consecutive([p.size for p in self.parameters])

    def number_slices(self) -> list[slice]:
        """Where each parameter's numbers are among all values."""
        return _consecutive([np.size(p.start) for p in self.parameters])

    @functools.cached_property
    def start(self) -> Float[np.ndarray, "size"]:
        """Coordinates of the start values, a little inside of their bounds, where derivatives have two sides."""
        low, high = self.bounds
        start = np.concatenate([np.zeros(0), *(p.transform.coordinates(p.start) for p in self.parameters)])
        room = np.where(np.isfinite(high - low), INSIDE * np.minimum(1.0, high - low), 0.0)
        return np.clip(start, low + room, high - room)

    @functools.cached_property
    def bounds(self) -> tuple[Float[np.ndarray, "size"], Float[np.ndarray, "size"]]:
        """Lower and upper bounds of the coordinates."""
        both = [p.bounds() for p in self.parameters]
        return (
            np.concatenate([np.zeros(0), *(low for low, _ in both)]),
            np.concatenate([np.zeros(0), *(high for _, high in both)]),
        )

    def values(self, coordinates: Float[Array, "size"]) -> list[Array]:
        """Value of each parameter, in SI units."""
        parts = zip(self.parameters, self.slices(), strict=True)
        return [p.transform.value(coordinates[s]) for p, s in parts]

    def flat(self, coordinates: Float[Array, "size"]) -> Float[Array, "numbers"]:
        """All values as one vector."""
        return jnp.concatenate([jnp.zeros(0), *(jnp.ravel(v) for v in self.values(coordinates))])

    def write(self, model: Model, coordinates: Float[Array, "size"]) -> Model:
        """The model with these values."""
        for parameter, value in zip(self.parameters, self.values(coordinates), strict=True):
            for place in parameter.targets:
                model = write(model, place, value)
        return model

    def bounded(self, bounds: Mapping[str, tuple[float, float]]) -> "ParameterSet":
        """The same with other bounds, by pattern."""
        return self._changed(bounds, Parameter.with_bounds)

    def believed(self, priors: Mapping[str, tuple[float, float]]) -> "ParameterSet":
        """The same with Gaussian priors (mean, standard deviation), by pattern."""
        return self._changed(priors, Parameter.with_prior)

    def _changed(
        self, changes: Mapping[str, tuple[float, float]], change: Callable[[Parameter, float, float], Parameter]
    ) -> "ParameterSet":
        changed = {p.name: p for p in self.parameters}
        for pattern, pair in changes.items():
            matches = [name for name in changed if matches_pattern(name, pattern)]
            if not matches:
                raise unknown_name("free parameter", pattern, changed)
            changed |= {name: change(changed[name], *pair) for name in matches}
        return ParameterSet(tuple(changed.values()))


def free(model: Model, patterns: Sequence[str], ties: Sequence[Sequence[str] | str] = ()) -> ParameterSet:
    """The parameters that patterns such as `bodies/*.mass` or `joints/elbow.*` name, with default bounds and scales.

    Args:
        model: The robot; its values are the start.
        patterns: Paths in which `*` stands for any text, and `[k]` at the end for one element of a vector.
        ties: Patterns, or lists of them, whose matches share one value; `-` in front of a path for its negative.
    """
    tied = [_tie(model, tie) for tie in ties]
    taken = {str(t).removeprefix("-") for parameter in tied for t in parameter.targets}
    places: dict[str, Target] = {}
    for pattern in patterns:
        places |= {str(t): t for t in expand(model, pattern)}
    singles = [parameter_at(model, (t,)) for name, t in places.items() if name not in taken]
    return ParameterSet((*singles, *tied))


def expand(model: Model, pattern: str) -> list[Target]:
    """All targets that a pattern names; an error with the nearest match if there is none."""
    sign, pattern = pattern[: pattern.startswith("-")], pattern.removeprefix("-")
    match = ELEMENT.match(pattern)
    suffix = pattern[len(match["path"]) :] if match else ""
    text = match["path"] if match else pattern
    if not set(text) & set("*?"):
        return [target(model, sign + pattern)]
    field = text.rpartition(".")[2]
    found = [
        str(p)
        for p in paths.paths(model)
        if fnmatch.fnmatchcase(str(p), text) and (p.field not in NEVER or p.field == field)
    ]
    if not found:
        raise unknown_name("parameter", pattern, [str(p) for p in paths.paths(model)])
    return [target(model, sign + name + suffix) for name in found]


def parameter_at(model: Model, targets: tuple[Target, ...], log: str | None = None) -> Parameter:
    """One unknown at these places, searched as its kind suggests."""
    path = targets[0].path
    start = np.asarray(read(model, targets[0]), float)
    how = default(path.field, start, targets[0].element)
    return Parameter(targets, how.transform, start, how.low, how.high, paths.unit(model, path), log=log)


def matches_pattern(name: str, pattern: str) -> bool:
    """Whether a parameter's name is the pattern or is one of those it stands for."""
    return name == pattern or fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


def _consecutive(sizes: Sequence[int]) -> list[slice]:
    """Slices of these sizes, one after the other."""
    return [slice(a, b) for a, b in itertools.pairwise(itertools.accumulate(sizes, initial=0))]


def _tie(model: Model, tie: Sequence[str] | str) -> Parameter:
    patterns = [tie] if isinstance(tie, str) else tie
    targets = tuple(t for pattern in patterns for t in expand(model, pattern))
    shapes = {np.shape(read(model, t)) for t in targets}
    if len(shapes) > 1:
        raise TruesimError(f"{', '.join(map(str, targets))} cannot share one value: their shapes differ.")
    return parameter_at(model, targets)
