"""Tasks: a simulator, a horizon, costs, limits, bounds of commands, and numbers of the robot to design."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

import equinox as eqx
import jax
import numpy as np

from truesim.control.quantities import AbstractQuantity, Knot, TimeVarying, check_contact, numbers
from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float
from truesim.physics.model.actuators import AFFINE
from truesim.physics.model.kinds import HINGE, SLIDE
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator, State

When = Literal["running", "final", "always"]
"""Knots at which a term counts: all but the last, the last, or all."""
SATURATION_MARGIN = 1e-9
"""Part of a range by which commands stay within the robot file's bounds: at a bound the plant saturates, and the
derivative by the command is not that of the interior."""
WHEN = ("running", "final", "always")


class Cost(eqx.Module):
    """Weighted square of a quantity: `weight |r|^2 / 2`, integrated over time while running, and added at the end."""

    quantity: AbstractQuantity
    weight: Float[Array, "..."] | TimeVarying = eqx.field(converter=numbers, default=1.0)
    """One weight, or one for each component; not negative."""
    when: When = eqx.field(static=True, default="running")


class Limit(eqx.Module):
    """Bounds of a quantity, held by an augmented Lagrangian: `low <= r <= high` at every knot that counts."""

    quantity: AbstractQuantity
    low: Float[Array, "..."] = eqx.field(converter=numbers, default=-np.inf)
    high: Float[Array, "..."] = eqx.field(converter=numbers, default=np.inf)
    when: When = eqx.field(static=True, default="running")


@dataclasses.dataclass(frozen=True)
class Task:
    """A motion to find: minimize the costs within the limits, over commands and over numbers of the robot."""

    simulator: Simulator
    steps: int
    """Number of time steps of the simulator; the motion has one knot more."""
    costs: Mapping[str, Cost]
    """Terms of the cost by name."""
    limits: Mapping[str, Limit] = dataclasses.field(default_factory=dict)
    """Limits by name."""
    start: State | None = None
    """Initial state; the file's configuration at rest if None."""
    bounds: Float[np.ndarray, "nu 2"] | None = None
    """Lower and upper bound of every command, within those of the robot file, which hold alone if None."""
    design: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    """Numbers of the robot that are optimized together with the motion: bounds by path. `timestep` frees the final
    time."""

    def __post_init__(self) -> None:
        model = self.simulator.model
        if self.steps < 1:
            raise TruesimError(f"A task has {self.steps} steps; it needs at least one.")
        if not self.simulator.timestep > 0:
            raise TruesimError(f"The time step is {self.simulator.timestep:g} s; it must be positive.")
        if not self.costs:
            raise TruesimError("A task needs at least one cost, or every motion is as good as any other.")
        if not model.nu:
            raise TruesimError("The robot has no actuators, so that there is nothing to plan.")
        terms: dict[str, Cost | Limit] = {**self.costs, **self.limits}
        for name, term in terms.items():
            _check_term(name, term, self.simulator, self.steps)
        low, high = self.command_bounds()
        for name, a, b in zip(model.actuators.names, low, high, strict=True):
            if not a <= b:
                raise TruesimError(f"The bounds of the command of {name} are {a:g} to {b:g}: no command lies between.")
        for path, (a, b) in self.design.items():
            self._check_design(path, a, b)

    def _check_design(self, path: str, low: float, high: float) -> None:
        if np.shape(self.simulator.read(path)) != ():
            raise TruesimError(f"{path} is a vector; name one element to design, such as {path}[0].")
        if not low <= high:
            raise TruesimError(f"The bounds of {path} are {low:g} to {high:g}: no value lies between.")
        if path == "timestep" and not low > 0:
            raise TruesimError(f"The time step may become {low:g} s; its lower bound must be positive.")
        if path == "timestep" and self.simulator.history:
            raise TruesimError("A free final time and delayed actuators do not go together: the delay counts steps.")

    def command_bounds(self) -> tuple[Float[np.ndarray, " nu"], Float[np.ndarray, " nu"]]:
        """Lower and upper bounds of the commands, infinite where there are none."""
        model = self.simulator.model
        low, high = file_bounds(model)
        inside = SATURATION_MARGIN * np.where(np.isfinite(high - low), high - low, 0.0)
        low, high = low + inside, high - inside
        if self.bounds is None:
            return low, high
        bounds = np.asarray(self.bounds, float)
        if bounds.shape != (model.nu, 2):
            raise TruesimError(f"The bounds have shape {bounds.shape}; they need one row (low, high) per actuator.")
        return np.maximum(low, bounds[:, 0]), np.minimum(high, bounds[:, 1])

    def initial_state(self) -> State:
        """State at the first knot, with every part that the simulator's states have."""
        return self.simulator.initial_state() if self.start is None else self.start

    def replace(self, **changes: Any) -> "Task":
        """The same task with other fields."""
        return dataclasses.replace(self, **changes)


def file_bounds(model: Model) -> tuple[Float[np.ndarray, " nu"], Float[np.ndarray, " nu"]]:
    """Bounds of the commands that the robot file gives: ranges of controls, and of forces where these are equivalent.

    A motor without bias exerts `gain * (control + offset)`, so that bounds of its force, or of the torque on a joint
    that only it drives, are bounds of its control. Beyond them nothing changes, and an optimizer would find no
    gradient.
    """
    actuators, joints = model.actuators, model.joints
    low, high = np.full(model.nu, -np.inf), np.full(model.nu, np.inf)
    for i, joint in enumerate(actuators.joints):
        if actuators.control_limited[i]:
            _tighten(low, high, i, np.asarray(actuators.control_range[i], float))
        gain = float(actuators.gain[i])
        direct = actuators.models[i] == AFFINE and gain != 0 and not np.any(actuators.gain_slope[i])
        if not direct or np.any(actuators.bias[i]):
            continue
        offset, gear = float(actuators.offset[i]), float(actuators.gear[i, 0])
        if actuators.force_limited[i]:
            _tighten(low, high, i, np.asarray(actuators.force_range[i], float) / gain - offset)
        alone = actuators.joints.count(joint) == 1 and joints.kinds[joint] in (HINGE, SLIDE) and gear != 0
        if joints.force_limited[joint] and alone:
            _tighten(low, high, i, np.asarray(joints.force_range[joint], float) / (gear * gain) - offset)
    return low, high


def _tighten(low: np.ndarray, high: np.ndarray, i: int, bounds: np.ndarray) -> None:
    low[i], high[i] = max(low[i], bounds.min()), min(high[i], bounds.max())


def _check_term(name: str, term: Cost | Limit, simulator: Simulator, steps: int) -> None:
    """Raise an error for a term that does not fit the robot or the horizon."""
    if term.when not in WHEN:
        raise TruesimError(f"{name} counts {term.when!r}; it must be one of {', '.join(WHEN)}.")
    if term.quantity.needs_command and term.when != "running":
        raise TruesimError(f"{name} depends on the command, which the last knot does not have: use when='running'.")
    term.quantity.check(simulator.model)
    check_contact(simulator, term.quantity)
    for value in _time_varying(term):
        if len(value.values) != steps + 1:
            raise TruesimError(
                f"{name} varies over {len(value.values)} knots; the task has {steps + 1}, one more than steps."
            )
    if isinstance(term, Cost):
        weight = term.weight.values if isinstance(term.weight, TimeVarying) else term.weight
        if not np.all(np.asarray(weight) >= 0):
            raise TruesimError(f"The weight of {name} is {np.min(weight):g}; weights are not negative.")
        _check_components(f"weight of {name}", weight[0] if weight is not term.weight else weight, term, simulator)
        return
    for bound in (term.low, term.high):
        _check_components(f"bound of {name}", bound, term, simulator)
    if not np.all(np.asarray(term.low) <= np.asarray(term.high)):
        raise TruesimError(f"The limit {name} leaves nothing: its lower bound is above its upper one.")


def _check_components(what: str, value: Any, term: Cost | Limit, simulator: Simulator) -> None:
    """Raise an error for numbers that are neither one for all components of a quantity nor one for each."""
    if np.shape(value) == ():
        return
    knot = Knot(simulator, simulator.initial_state(), np.zeros(simulator.model.nu))
    size = jax.eval_shape(at_first_knot(term).quantity, knot).shape[0]
    if np.shape(value) != (size,):
        raise TruesimError(f"The {what} has shape {np.shape(value)}; give one number, or one for each of {size}.")


def at_first_knot(term: Any) -> Any:
    """The term with the numbers of the first knot in place of time-varying ones."""
    return jax.tree.map(lambda x: x.values[0] if is_time_varying(x) else x, term, is_leaf=is_time_varying)


def is_time_varying(x: Any) -> bool:
    """True for numbers with one value for each knot."""
    return isinstance(x, TimeVarying)


def _time_varying(term: Cost | Limit) -> list[TimeVarying]:
    own = (value for part in (term, term.quantity) for value in vars(part).values())
    return [value for value in own if isinstance(value, TimeVarying)]
