"""Set of parameters: a lens between a flat vector of coordinates and a simulator."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Array, Float
from truesim.physics.model import paths
from truesim.physics.model import targets as model_targets
from truesim.physics.model.model import Model
from truesim.physics.model.targets import Target, expand, matches_pattern
from truesim.physics.parameters.defaults import default
from truesim.physics.parameters.parameter import Parameter
from truesim.physics.simulation.named_values import read, write_all
from truesim.physics.simulation.simulator import Simulator

START_MARGIN = 0.01
"""Distance of start values from their bounds, in coordinates; larger moves starts further inside."""


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
        """Slice of each parameter in the vector of coordinates."""
        return _consecutive([p.size for p in self.parameters])

    def number_slices(self) -> list[slice]:
        """Slice of each parameter in the vector of values."""
        return _consecutive([np.size(p.start) for p in self.parameters])

    @functools.cached_property
    def start(self) -> Float[np.ndarray, " size"]:
        """Coordinates of the start values, kept slightly inside their bounds."""
        low, high = self.bounds
        start = np.concatenate([np.zeros(0), *(p.transform.coordinates(p.start) for p in self.parameters)])
        room = np.where(np.isfinite(high - low), START_MARGIN * np.minimum(1.0, high - low), 0.0)
        return np.clip(start, low + room, high - room)

    @functools.cached_property
    def bounds(self) -> tuple[Float[np.ndarray, " size"], Float[np.ndarray, " size"]]:
        """Lower and upper bounds of the coordinates."""
        both = [p.bounds() for p in self.parameters]
        return (
            np.concatenate([np.zeros(0), *(low for low, _ in both)]),
            np.concatenate([np.zeros(0), *(high for _, high in both)]),
        )

    def values(self, coordinates: Float[Array, " size"]) -> list[Array]:
        """Value of each parameter, in SI units."""
        parts = zip(self.parameters, self.slices(), strict=True)
        return [p.transform.value(coordinates[s]) for p, s in parts]

    def flat(self, coordinates: Float[Array, " size"]) -> Float[Array, " numbers"]:
        """All values as one vector."""
        return jnp.concatenate([jnp.zeros(0), *(jnp.ravel(v) for v in self.values(coordinates))])

    def read(self, simulator: Simulator) -> Float[np.ndarray, " size"]:
        """Coordinates of the values that a simulator has now; of several targets that share one value, the first's."""
        values = [np.asarray(read(simulator, p.targets[0]), float) for p in self.parameters]
        parts = [p.transform.coordinates(value) for p, value in zip(self.parameters, values, strict=True)]
        return np.concatenate([np.zeros(0), *parts])

    def write(self, simulator: Simulator, coordinates: Float[Array, " size"]) -> Simulator:
        """The simulator with the values at these coordinates: of its model, its networks and its solvers."""
        values = zip(self.parameters, self.values(coordinates), strict=True)
        return write_all(simulator, [(target, value) for parameter, value in values for target in parameter.targets])

    def write_values(self, simulator: Simulator, values: Float[Array, " numbers"]) -> Simulator:
        """The simulator with these values, given as one vector [SI units]."""
        own = (
            (p, values[at].reshape(np.shape(p.start)))
            for p, at in zip(self.parameters, self.number_slices(), strict=True)
        )
        return write_all(simulator, [(target, value) for parameter, value in own for target in parameter.targets])

    def erase(self, simulator: Simulator) -> Simulator:
        """The simulator with NaN in the place of every number of these parameters."""
        return self.write_values(simulator, np.full(sum(np.size(p.start) for p in self.parameters), np.nan))

    def reaching(self, sizes: Mapping[str, float]) -> "ParameterSet":
        """Parameters whose scales and bounds make room for values of these sizes, by name [SI units]."""
        return ParameterSet(tuple(p.reaching(sizes[p.name]) if p.name in sizes else p for p in self.parameters))

    def bounded(self, bounds: Mapping[str, tuple[float, float]]) -> "ParameterSet":
        """Parameters with other bounds, by pattern."""
        return self._changed(bounds, Parameter.with_bounds)

    def with_priors(self, priors: Mapping[str, tuple[float, float]]) -> "ParameterSet":
        """Parameters with Gaussian priors (mean, standard deviation), by pattern."""
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
    """Free parameters named by patterns such as `bodies/*.mass` or `joints/elbow.*`, with default bounds and scales.

    Args:
        model: The robot; its values are the start values.
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


def parameter_at(model: Model, targets: tuple[Target, ...], log: str | None = None) -> Parameter:
    """One unknown at these targets, with the default transform and bounds of its field."""
    path = targets[0].path
    start = np.asarray(model_targets.read(model, targets[0]), float)
    how = default(path.field, start, targets[0].element)
    return Parameter(targets, how.transform, start, how.low, how.high, paths.unit(model, path), log=log)


def _consecutive(sizes: Sequence[int]) -> list[slice]:
    """Slices of these sizes, one after the other."""
    return [slice(a, b) for a, b in itertools.pairwise(itertools.accumulate(sizes, initial=0))]


def _tie(model: Model, tie: Sequence[str] | str) -> Parameter:
    patterns = [tie] if isinstance(tie, str) else tie
    targets = tuple(t for pattern in patterns for t in expand(model, pattern))
    shapes = {np.shape(model_targets.read(model, t)) for t in targets}
    if len(shapes) > 1:
        raise TruesimError(f"{', '.join(map(str, targets))} cannot share one value: their shapes differ.")
    return parameter_at(model, targets)
