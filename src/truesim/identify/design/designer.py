"""The designer: what experiments with one robot would tell, and which of them tells most."""

import dataclasses
import fnmatch
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from truesim.actuators.forces import actuator_forces
from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Float
from truesim.dynamics import gravity_forces, reference_configuration
from truesim.identify.beliefs import VAGUE
from truesim.identify.channels import Channel, known_channels
from truesim.identify.design.criterion import CRITERIA
from truesim.identify.design.limits import Limits
from truesim.identify.design.plan import Choices, Expected, Plan
from truesim.identify.design.search import SPARE, STIFFNESS, Experiment, Point, improved, search
from truesim.identify.design.sensitivity import Sensitivities, unbounded
from truesim.identify.design.splines import basis
from truesim.identify.design.starts import reach, starts
from truesim.model.model import Model
from truesim.parameters import ParameterSet, free
from truesim.simulate import Simulator, State, record

NOISE = 1e-3
"""Standard deviation of readings of which nothing is known [SI units]."""
COARSEST = 5e-3
"""Longest step of the simulator in a search [s]."""
NEAR = 0.9
"""A start that uses more of a position's range is moved to its middle."""
REPAIRS = 3
"""Times that a search goes on with tighter limits, since the robot's own simulator passed them."""
SHRINK, TRIES = 0.997, 600
"""Factor by which a motion that passes a limit is made smaller, again and again."""


class Designer:
    """Everything that stays the same while motions for one purpose are compared."""

    def __init__(
        self,
        model: Model,
        patterns: Sequence[str],
        limits: Limits,
        choices: Choices | None = None,
        prior: Float[np.ndarray, "size size"] | None = None,
    ):
        """Prepares, without compiling.

        Args:
            model: The robot; its values are taken to be nearly right.
            patterns: Paths of what is uncertain, such as `bodies/*.mass`.
            limits: What the motion has to respect.
            choices: Duration, rate, noise and how to search.
            prior: Information on the coordinates of the parameters, beside the vague one.
        """
        self.model, self.limits, self.choices = model, limits, choices or Choices()
        self._patterns = tuple(patterns)
        with jax.enable_x64(True):
            self.parameters: ParameterSet = free(model, patterns)
            self._prepare(prior)

    def _prepare(self, prior: np.ndarray | None) -> None:
        model, choices = self.model, self.choices
        if not self.parameters.size:
            raise TruesimError("Nothing is uncertain: name parameters with --free, such as --free 'bodies/*.mass'.")
        if not model.nu:
            raise TruesimError("The robot has no actuators that could move it.")
        chosen = _channels(model, choices.channels)
        step, own = 1 / choices.rate, float(Simulator.of(model).timestep)
        substeps = max(1, int(np.ceil(step / max(own, COARSEST) - 0.01)))
        self.time = np.arange(round(choices.seconds * choices.rate) + 1) * step
        self._state = State.at_rest(model, jnp.asarray(_start(model, self.limits)))
        self.rest = _holding(model, self._state)
        simulator = Simulator.of(model, timestep=step / substeps)
        self.sensitivities = Sensitivities(simulator, self.parameters, chosen, self._state, substeps, choices.threads)
        finer = max(1, int(np.ceil(step / own - 0.01)))
        self._exact, self._finer = Simulator.of(model, timestep=step / finer), finer
        size = self.parameters.size
        self._experiment = Experiment(
            sensitivities=self.sensitivities,
            limits=self.limits,
            basis=basis(self.time, self.time[-1], choices.spacing),
            rest=self.rest,
            reach=np.ones(model.nu),
            information=1 / _noise(chosen, choices.noise) ** 2,
            prior=np.eye(size) / VAGUE**2 + (np.zeros((size, size)) if prior is None else prior),
            full=np.full(len(self.limits.names), 1 - SPARE),
            criterion=choices.criterion,
        )

    def knowing(self, prior: Float[np.ndarray, "size size"]) -> "Designer":
        """The same with more information before the experiment."""
        return Designer(self.model, self._patterns, self.limits, self.choices, prior)

    def cost_at_rest(self) -> float:
        """The criterion if the robot does not move."""
        still = np.tile(self.rest, (len(self.time), 1))
        return CRITERIA[self.choices.criterion](self._experiment.fisher(self.sensitivities.sensed(still))).value

    def plan(self, commands: Float[np.ndarray, "samples nu"]) -> Plan:
        """What given commands would do and tell; they need not respect the limits."""
        F = self._experiment.fisher(self.sensitivities.sensed(commands))
        covariance = np.linalg.inv(F)
        return Plan(
            self.model, self.time, commands, self.played(commands), self.limits, self._expected(covariance), covariance
        )

    def played(self, commands: Float[np.ndarray, "samples nu"]) -> Float[np.ndarray, "samples quantities"]:
        """The motion under commands as the robot's own simulator computes it, in the order of the limits.

        Forces are those that are asked of the actuators, so that it shows where their bounds would cut them.
        """
        asked = unbounded(self.model)
        with jax.enable_x64(True):
            steps = np.repeat(commands, self._finer, axis=0)
            trajectory = record(self._exact, self._state, jnp.asarray(steps))
            q, v = (np.asarray(x)[:-1] for x in (trajectory.q, trajectory.v))
            force = jax.vmap(lambda q, v, c: actuator_forces(asked, q, v, c).force)
            f = np.asarray(force(jnp.asarray(q), jnp.asarray(v), jnp.asarray(steps)))
        worst = np.concatenate([q, v, f, steps], axis=1).reshape(len(commands), self._finer, -1)
        picked = np.abs(self.limits.usage(worst)).argmax(axis=1)
        picked[:, : 2 * self.model.nv] = 0  # positions and velocities are those at the sample
        return np.take_along_axis(worst, picked[:, None], axis=1)[:, 0]

    def within(self, commands: Float[np.ndarray, "samples nu"]) -> Float[np.ndarray, "samples nu"]:
        """The commands, made smaller around rest until the robot's own simulator stays within the limits."""
        move = commands - self.rest
        for _ in range(TRIES):
            usage = np.abs(self.limits.usage(self.played(self.rest + move)))
            if np.isfinite(usage).all() and usage.max() <= 1:
                return self.rest + move
            move = move * SHRINK
        raise TruesimError("No motion stays within the limits: even a small one around the start passes them.")

    def search(self, watch: Callable[[int, float], None] | None = None) -> Plan:
        """The best plan that a search finds.

        Args:
            watch: Called with the number of the stage and the cost, after every evaluation.
        """
        finer = dataclasses.replace(self._experiment, reach=reach(self._experiment))
        coarse = basis(self.time, self.time[-1], 2 * self.choices.spacing)
        experiment = dataclasses.replace(finer, basis=coarse)
        first = starts(experiment, self.choices.starts, np.random.default_rng(self.choices.seed))
        found = search(experiment, first, finer, self.choices.iterations, watch)
        return self.plan(self.within(self._repaired(finer, found, watch)))

    def _repaired(
        self, experiment: Experiment, point: Point, watch: Callable[[int, float], None] | None
    ) -> Float[np.ndarray, "samples nu"]:
        """Commands that have learned by how much the robot's own simulator passes the limits."""
        for _ in range(REPAIRS):
            commands = experiment.commands(point.coefficients)
            excess = np.abs(self.limits.usage(self.played(commands))).max(axis=0) - 1
            if not excess.max() > 0:
                break
            experiment = experiment.tighter(excess)
            point = improved(experiment, point, len(STIFFNESS) - 1, self.choices.iterations, watch)
        return experiment.commands(point.coefficients)

    def _expected(self, covariance: Float[np.ndarray, "size size"]) -> tuple[Expected, ...]:
        with jax.enable_x64(True):
            start = jnp.asarray(self.parameters.start)
            jacobian = np.asarray(jax.jacfwd(self.parameters.flat)(start))
            values = np.asarray(self.parameters.flat(start))
        before, after = (
            np.sqrt(np.einsum("ni,ij,nj->n", jacobian, C, jacobian))
            for C in (np.linalg.inv(self._experiment.prior), covariance)
        )
        units = [p.unit for p in self.parameters for _ in range(np.size(p.start))]
        names = [
            p.name if np.size(p.start) == 1 else f"{p.name}[{k}]"
            for p in self.parameters
            for k in range(np.size(p.start))
        ]
        rows = zip(names, units, values, before, after, strict=True)
        return tuple(Expected(n, u, float(x), float(b), float(a)) for n, u, x, b, a in rows)


def design(
    model: Model,
    free: Sequence[str],
    limits: Limits,
    *,
    choices: Choices | None = None,
    prior: Float[np.ndarray, "size size"] | None = None,
    watch: Callable[[int, float], None] | None = None,
) -> Plan:
    """The motion that tells most about what is uncertain, within limits.

    Args:
        model: The robot; its values are taken to be nearly right.
        free: Paths of what is uncertain, such as `bodies/*.mass`.
        limits: What the motion has to respect.
        choices: Duration, rate, noise and how to search.
        prior: Information on the coordinates of the parameters, beside the vague one.
        watch: Called with the number of the stage and the cost, after every evaluation.
    """
    return Designer(model, free, limits, choices, prior).search(watch)


def _channels(model: Model, patterns: Sequence[str]) -> list[Channel]:
    known = [channel for channel in known_channels(model) if not channel.turns]
    chosen = [c for c in known if any(fnmatch.fnmatchcase(c.name, pattern) for pattern in patterns)]
    if not chosen:
        raise unknown_name("channel", ", ".join(patterns), [c.name for c in known])
    return chosen


def _noise(channels: Sequence[Channel], noise: Mapping[str, float]) -> Float[np.ndarray, "rows"]:
    """Standard deviation of every reading; the last pattern that names it counts."""
    rows = []
    for channel in channels:
        own = [std for pattern, std in noise.items() if fnmatch.fnmatchcase(channel.name, pattern)]
        rows += [own[-1] if own else NOISE] * len(channel.columns)
    if not min(rows) > 0:
        raise TruesimError("Noise of readings must be positive.")
    return np.array(rows)


def _start(model: Model, limits: Limits) -> Float[np.ndarray, "nq"]:
    """Where the motion begins and ends: as the file draws the robot, or inside of the limits if that is at one."""
    q, n = np.asarray(reference_configuration(model), float), model.nv
    bounded = np.isfinite(limits.high[:n] - limits.low[:n])
    low, high = np.where(bounded, limits.low[:n], q), np.where(bounded, limits.high[:n], q)
    middle = (low + high) / 2
    near = np.abs(limits.usage(np.concatenate([q, np.zeros(len(limits.low) - n)]))[:n]) > NEAR
    return np.where(near, middle, q)


def _holding(model: Model, state: State) -> Float[np.ndarray, "nu"]:
    """Controls that hold the robot at rest, as far as its actuators can."""
    with jax.enable_x64(True):
        still = jnp.zeros(model.nv)

        def force(control: jax.Array) -> jax.Array:
            return actuator_forces(model, state.q, still, control).generalised

        nothing = jnp.zeros(model.nu)
        gains, idle = np.asarray(jax.jacfwd(force)(nothing)), np.asarray(force(nothing))
        needed = np.asarray(gravity_forces(model, state.q))
    return np.linalg.lstsq(gains, needed - idle, rcond=None)[0]
