"""Tasks for policies: what is observed, rewarded and commanded, and where episodes start and end.

A task is a record of small pure functions of an `Instant`, composed by name. It knows nothing of learners and batches:
`episodes` plays it, `environment` compiles it for many episodes at once.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float
from truesim.physics.simulation import Simulator, State
from truesim.policies.draws import Draws
from truesim.policies.randomization import Randomization

PERIOD_TOLERANCE = 1e-6
"""Part of a time step by which the control period may miss a whole number of time steps."""


class Instant(eqx.Module):
    """An instant of an episode, as the terms of a task see it: the end of a control step."""

    simulator: Simulator
    """With the parameters of this episode."""
    state: State
    action: Float[Array, " na"]
    """Action of the control step that has ended; zero at the start."""
    previous: Float[Array, " na"]
    """Action of the control step before."""
    command: Float[Array, " nc"]
    """Command to the policy, such as a velocity; empty without one."""
    memory: Any
    """Memory of the task; None if it has none."""
    parameters: dict[str, Array]
    """Numbers that the randomization drew for this episode, by its paths."""
    latency: Float[Array, ""]
    """Delay between an observation and the action that follows from it [s]."""
    seconds: Float[Array, ""]
    """Time since the start of the episode [s]."""

    @property
    def q(self) -> Float[Array, " nq"]:
        """Configuration [rad, m, unit quaternions]."""
        return self.state.q

    @property
    def v(self) -> Float[Array, " nv"]:
        """Velocity [rad/s, m/s]."""
        return self.state.v


Term = Callable[[Instant], Array]
"""Function of an instant."""


@dataclasses.dataclass(frozen=True)
class Observation:
    """A term of the observation: `scale * (function(instant) + noise + bias)`."""

    function: Term
    """A number or a vector."""
    scale: float = 1.0
    noise: float = 0.0
    """Half width of uniform noise, before scaling."""
    bias: float = 0.0
    """Half width of an offset that is drawn for each episode, before scaling."""
    dropout: float = 0.0
    """Probability that a value is lost, and the one before is seen again."""
    unit: str = ""
    privileged: bool = False
    """True if only the critic sees it; the critic sees all terms without noise."""


@dataclasses.dataclass(frozen=True)
class Reward:
    """A term of the reward: `weight * function(instant)` per second."""

    weight: float
    function: Term


@dataclasses.dataclass(frozen=True)
class Actions:
    """Actions of the policy: `size` numbers, and the control that each stands for."""

    size: int
    control: Callable[[Simulator, Float[Array, " na"]], Float[Array, " nu"]]
    """From an action to the controls of the actuators, held for a control period."""
    limit: float = 1.0
    """Actions are clipped to [-limit, limit]."""


@dataclasses.dataclass(frozen=True)
class CommandSource:
    """Commands to the policy: drawn at the start of an episode, and again after a random time."""

    size: int
    draw: Callable[[Draws], Float[Array, " nc"]]
    names: tuple[str, ...] = ()
    interval: tuple[float, float] = (math.inf, math.inf)
    """Range of the time until the next command [s]."""
    measured: Term | None = None
    """Measured counterpart of the command, in its units."""
    draw_for_test: Callable[[Draws], Float[Array, " nc"]] | None = None
    """Commands of tests; those of training by default."""


@dataclasses.dataclass(frozen=True)
class Memory:
    """Memory of a task beyond the state, such as the phase of a gait: any tree of arrays."""

    start: Callable[[Instant, Draws], Any]
    """Memory at the start of an episode."""
    update: Callable[[Instant], Any]
    """Memory at an instant, which still has the memory of the control step before; terms see the new one."""


@dataclasses.dataclass(frozen=True)
class Pushes:
    """Sudden changes of velocity at random times."""

    dofs: tuple[int, ...]
    """Degrees of freedom that are pushed."""
    size: float
    """Changes are uniform in [-size, size] [m/s or rad/s]."""
    interval: tuple[float, float]
    """Range of the time between pushes [s]."""


@dataclasses.dataclass(frozen=True)
class PolicyTrial:
    """Condition for training to end: hardly any episode of the mean action ends early, as by a fall.

    Episodes are those of a test (mean action, no noise, no pushes, longest latency), but with drawn parameters.
    """

    episodes: int = 128
    terminated: int = 1
    """Largest number of episodes that end before the time limit."""
    error: float = 0.25
    """Largest error of any component of the command, relative to it."""
    every: int = 500_000
    """Control steps of training between trials."""


def control_range(simulator: Simulator, action: Float[Array, " na"]) -> Float[Array, " nu"]:
    """Controls for actions in [-1, 1]: the whole range of each actuator."""
    low, high = jnp.asarray(simulator.model.actuators.control_range).T
    return 0.5 * (low + high) + 0.5 * (high - low) * action


@dataclasses.dataclass(frozen=True)
class PolicyTask:
    """A task: a simulator, and functions that say what is observed, rewarded and commanded."""

    name: str
    simulator: Simulator
    observations: Mapping[str, Observation]
    """Terms of the observation, in this order."""
    rewards: Mapping[str, Reward]
    """Terms of the reward, per second."""
    reset: Callable[[Simulator, Draws], State]
    """Initial state of an episode."""
    terminations: Mapping[str, Term] = dataclasses.field(default_factory=dict)
    """Conditions that end an episode for good, such as a fall; a time limit is not one of them."""
    actions: Actions | None = None
    """By default one action for each actuator, over its control range."""
    command: CommandSource | None = None
    memory: Memory | None = None
    pushes: Pushes | None = None
    instruments: Callable[[Instant, Draws], Instant] | None = None
    """From an instant to what encoders and other instruments show of it; observations are of that, rewards are not."""
    rehearsal: Simulator | None = None
    """The same robot in cheaper physics, where training begins."""
    physics: Callable[["PolicyTask", int], Any] | None = None
    """Physics instead of the simulator, for a task and a number of episodes, such as a robot's stand-in."""
    randomization: Randomization = dataclasses.field(default_factory=Randomization)
    """Parameters that differ between episodes."""
    change_interval: float = math.inf
    """Mean time between changes of these parameters within an episode, as of a payload that is picked up [s]."""
    period: float = 0.02
    """Time between two actions [s], a whole number of time steps of the simulator."""
    seconds: float = 10.0
    """Longest episode [s]."""
    training_seconds: float | None = None
    """Longest episode in training [s]; `seconds` by default. Shorter ones begin more often: starts are learned."""
    latency: tuple[float, float] = (0.0, 0.0)
    """Range of the delay of actions, drawn for each episode in whole time steps [s]."""
    jitter: float = 0.0
    """Largest delay that is drawn for each action on top [s]; a later action never overtakes an earlier one."""
    max_speed: float = 100.0
    """Speed of any joint beyond which physics has diverged: the episode ends without a reward [rad/s, m/s]."""
    goal: float | None = None
    """Return of the mean action at which training may stop."""
    trial: PolicyTrial | None = None
    """Trial that the policy must pass; otherwise training goes on beyond its budget, up to `TrainOptions.longest`."""
    privileged: bool = False
    """True for a teacher: `privileged_task` has made its policy see what only simulation knows."""
    robot: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Arguments from which a registered task of this name is made again, such as the robot file."""
    made_up: tuple[str, ...] = ()
    """Additions to a robot's file that lacks them, such as motors, in words."""

    def __post_init__(self) -> None:
        model, step = self.simulator.model, float(self.simulator.timestep)
        if self.actions is None:
            ranges = np.asarray(model.actuators.control_range)
            if not np.all(np.isfinite(ranges)):
                loose = [n for n, r in zip(model.actuators.names, ranges, strict=True) if not np.all(np.isfinite(r))]
                raise TruesimError(f"The control of {loose[0]} has no range; give the task its `actions`.")
            object.__setattr__(self, "actions", Actions(model.nu, control_range))
        if not self.actions or self.actions.size < 1:
            raise TruesimError(f"The task {self.name} has no actions: the robot has no actuators.")
        ratio = self.period / step
        if not (ratio > 0.5 and abs(ratio - round(ratio)) < PERIOD_TOLERANCE * max(1.0, ratio)):
            raise TruesimError(
                f"The control period of {self.name} is {self.period:g} s; it must be a whole number of "
                f"time steps of {step:g} s."
            )
        for kind, terms in (("observations", self.observations), ("rewards", self.rewards)):
            if not terms:
                raise TruesimError(f"The task {self.name} has no {kind}.")
        if not any(not term.privileged for term in self.observations.values()):
            raise TruesimError(f"All observations of {self.name} are privileged: the policy would see nothing.")
        if not 0.0 <= self.latency[0] <= self.latency[1]:
            raise TruesimError(f"The latency of {self.name} is {self.latency}; give a range of times in seconds.")
        if not self.change_interval >= self.period:
            raise TruesimError(
                f"Parameters of {self.name} change every {self.change_interval:g} s on average; the shortest interval "
                f"is the control period of {self.period:g} s."
            )
        if self.training_seconds is not None and not self.training_seconds >= self.period:
            raise TruesimError(
                f"Episodes of {self.name} last {self.training_seconds:g} s in training; the shortest is one control "
                f"period, {self.period:g} s."
            )
        if not self.jitter >= 0:
            raise TruesimError(f"The jitter of {self.name} is {self.jitter:g} s; it cannot be negative.")
        object.__setattr__(self, "randomization", self.randomization.expanded(self.simulator))
        self.randomization.check(self.simulator)

    @property
    def action_map(self) -> Actions:
        """The actions."""
        assert self.actions is not None, "filled in above"
        return self.actions

    @property
    def substeps(self) -> int:
        """Time steps of a control period."""
        return round(self.period / float(self.simulator.timestep))

    @property
    def steps(self) -> int:
        """Control steps of the longest episode."""
        return round(self.seconds / self.period)

    @property
    def latency_steps(self) -> tuple[int, int]:
        """Range of the delay in time steps of the simulator."""
        step = float(self.simulator.timestep)
        return round(self.latency[0] / step), round(self.latency[1] / step)

    @property
    def jitter_steps(self) -> int:
        """Largest additional delay of an action in time steps of the simulator."""
        return round(self.jitter / float(self.simulator.timestep))

    @property
    def for_training(self) -> "PolicyTask":
        """The task with the longest episode of training."""
        if self.training_seconds is None:
            return self
        return dataclasses.replace(self, seconds=min(self.seconds, self.training_seconds))

    @property
    def loses_values(self) -> bool:
        """True if some observation can be lost."""
        return any(term.dropout for term in self.observations.values())


def with_conditions(task: PolicyTask) -> PolicyTask:
    """The task with the conditions of its randomization: latency, jitter, factor on noise, pushes."""
    given = dict(task.randomization.conditions)
    if not given:
        return task
    factor, size, interval = given.get("noise", 1.0), given.get("push_size"), given.get("push_interval")
    pushes = task.pushes
    if size is not None or interval is not None:
        if pushes is None:
            raise TruesimError(f"The task {task.name} has no pushes, whose size or interval could be changed.")
        size = pushes.size if size is None else float(size)
        pushes = dataclasses.replace(pushes, size=size, interval=tuple(interval or pushes.interval))
    noisy = {name: dataclasses.replace(x, noise=factor * x.noise) for name, x in task.observations.items()}
    low, high = given.get("latency", task.latency)
    jitter = float(given.get("jitter", task.jitter))
    return dataclasses.replace(task, observations=noisy, latency=(low, high), jitter=jitter, pushes=pushes)
