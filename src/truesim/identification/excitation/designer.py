"""Experiment design for one robot: expected accuracy of motions, and the optimal motion within limits."""

import dataclasses
import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Float
from truesim.identification.excitation.criterion import CRITERIA
from truesim.identification.excitation.limits import Limits
from truesim.identification.excitation.plan import Design, DesignOptions, ExpectedAccuracy
from truesim.identification.excitation.prior import FittedCovariance, fitted_information, write_values
from truesim.identification.excitation.search import (
    LIMIT_RESERVE,
    STAGE_STIFFNESS,
    DesignCallback,
    Experiment,
    optimize_motion,
    run_stage,
)
from truesim.identification.excitation.sensitivity import MotionSensitivities, remove_force_limits
from truesim.identification.excitation.splines import spline_basis
from truesim.identification.excitation.starts import control_reach, draw_starts
from truesim.identification.problem.channels import Channel, known_channels
from truesim.identification.problem.options import ProblemOptions
from truesim.optimize.augmented_lagrangian import AugmentedPoint
from truesim.physics.actuators.forces import actuator_forces
from truesim.physics.dynamics import gravity_forces, reference_configuration
from truesim.physics.model.model import Model
from truesim.physics.parameters import ParameterSet, free
from truesim.physics.simulation import Simulator, State, record

DEFAULT_NOISE = 1e-3
"""Standard deviation of measurements without a given noise [SI units]."""
LONGEST_DESIGN_STEP = 5e-3
"""Longest simulator step of an optimization [s]: longer steps are faster and less exact."""
START_USAGE = 0.9
"""A start position that uses more of its range is moved to the middle of the range."""
LIMIT_REPAIRS = 3
"""Number of further stages with tighter limits, when the exact simulation violates a limit."""
SHRINK_FACTOR, SHRINK_STEPS = 0.997, 600
"""Factor by which a motion that violates a limit is scaled down, and maximum number of times."""


class Designer:
    """Designer of experiments for one robot, one set of parameters and one set of limits."""

    def __init__(
        self,
        model: Model,
        patterns: Sequence[str],
        limits: Limits,
        options: DesignOptions | None = None,
        prior: Float[np.ndarray, "size size"] | None = None,
    ):
        """Prepare the experiment; kernels are compiled on first use.

        Args:
            model: The robot; its values should be nearly right.
            patterns: Paths of the unknown parameters, such as `bodies/*.mass`.
            limits: Limits of the motion.
            options: Duration, rate, noise and optimization.
            prior: Information on the coordinates of the parameters, in addition to the weak prior of a fit.
        """
        self.model, self.limits, self.options = model, limits, options or DesignOptions()
        self._patterns = tuple(patterns)
        with jax.enable_x64(True):
            self.parameters: ParameterSet = free(model, patterns)
            self._prepare(prior)

    def _prepare(self, prior: np.ndarray | None) -> None:
        model, options = self.model, self.options
        if not self.parameters.size:
            raise TruesimError("No parameter is free: name parameters with --free, such as --free 'bodies/*.mass'.")
        if not model.nu:
            raise TruesimError("The robot has no actuators.")
        chosen = _channels(model, options.channels)
        step, own = 1 / options.rate, float(Simulator.of(model).timestep)
        substeps = max(1, int(np.ceil(step / max(own, LONGEST_DESIGN_STEP) - 0.01)))
        self.time = np.arange(round(options.seconds * options.rate) + 1) * step
        self._state = State(jnp.asarray(_start_position(model, self.limits)), jnp.zeros(model.nv), jnp.zeros(()))
        self.rest = _holding_controls(model, self._state)
        simulator = Simulator.of(model, timestep=step / substeps)
        self.sensitivities = MotionSensitivities(
            simulator, self.parameters, chosen, self._state, substeps, options.threads
        )
        finer = max(1, int(np.ceil(step / own - 0.01)))
        self._exact, self._finer = Simulator.of(model, timestep=step / finer), finer
        size = self.parameters.size
        self._experiment = Experiment(
            sensitivities=self.sensitivities,
            limits=self.limits,
            basis=spline_basis(self.time, self.time[-1], options.spacing),
            rest=self.rest,
            reach=np.ones(model.nu),
            information=1 / _noise(chosen, options.noise) ** 2,
            prior=np.eye(size) / ProblemOptions.prior_width**2 + (np.zeros((size, size)) if prior is None else prior),
            allowed_usage=np.full(len(self.limits.names), 1 - LIMIT_RESERVE),
            criterion=options.criterion,
        )

    def with_prior(self, prior: Float[np.ndarray, "size size"]) -> "Designer":
        """Designer with prior information on the coordinates of the parameters."""
        return Designer(self.model, self._patterns, self.limits, self.options, prior)

    def cost_at_rest(self) -> float:
        """Criterion of a robot that does not move."""
        still = np.tile(self.rest, (len(self.time), 1))
        return CRITERIA[self.options.criterion](self._experiment.fisher(self.sensitivities.sense(still))).value

    def evaluate(self, commands: Float[np.ndarray, "samples nu"]) -> Design:
        """Motion and expected accuracy of given commands, which need not respect the limits."""
        F = self._experiment.fisher(self.sensitivities.sense(commands))
        covariance = np.linalg.inv(F)
        return Design(
            self.model,
            self.time,
            commands,
            self.simulate(commands),
            self.limits,
            self._expected_accuracy(covariance),
            covariance,
        )

    def simulate(self, commands: Float[np.ndarray, "samples nu"]) -> Float[np.ndarray, "samples quantities"]:
        """Motion under commands with the exact simulator, in the order of the limits.

        Forces are those before clipping to the force limits of actuators, so that violations are visible.
        """
        asked = remove_force_limits(self.model)
        with jax.enable_x64(True):
            steps = np.repeat(commands, self._finer, axis=0)
            trajectory = record(self._exact, self._state, jnp.asarray(steps))
            q, v = (np.asarray(x)[:-1] for x in (trajectory.q, trajectory.v))
            force = jax.vmap(lambda q, v, c: actuator_forces(asked, q, v, c).force)
            f = np.asarray(force(jnp.asarray(q), jnp.asarray(v), jnp.asarray(steps)))
        worst = np.concatenate([q, v, f, steps], axis=1).reshape(len(commands), self._finer, -1)
        picked = np.abs(self.limits.usage(worst)).argmax(axis=1)
        picked[:, : 2 * self.model.nv] = 0  # positions and velocities at the sample itself
        return np.take_along_axis(worst, picked[:, None], axis=1)[:, 0]

    def scale_into_limits(self, commands: Float[np.ndarray, "samples nu"]) -> Float[np.ndarray, "samples nu"]:
        """Commands scaled towards rest until the exact simulation stays within the limits."""
        move = commands - self.rest
        for _ in range(SHRINK_STEPS):
            usage = np.abs(self.limits.usage(self.simulate(self.rest + move)))
            if np.isfinite(usage).all() and usage.max() <= 1:
                return self.rest + move
            move = move * SHRINK_FACTOR
        raise TruesimError("No motion stays within the limits: even a small one around the start violates them.")

    def optimize(self, callback: DesignCallback | None = None) -> Design:
        """Optimize the motion.

        Args:
            callback: Called with the number of the stage and the cost after every evaluation.
        """
        finer = dataclasses.replace(self._experiment, reach=control_reach(self._experiment))
        coarse = spline_basis(self.time, self.time[-1], 2 * self.options.spacing)
        experiment = dataclasses.replace(finer, basis=coarse)
        first = draw_starts(experiment, self.options.starts, np.random.default_rng(self.options.seed))
        found = optimize_motion(experiment, first, finer, self.options.iterations, callback)
        return self.evaluate(self.scale_into_limits(self._repair(finer, found, callback)))

    def _repair(
        self, experiment: Experiment, point: AugmentedPoint, callback: DesignCallback | None
    ) -> Float[np.ndarray, "samples nu"]:
        """Commands after further stages with limits tightened by the violations in the exact simulation."""
        for _ in range(LIMIT_REPAIRS):
            commands = experiment.commands(point.x)
            excess = np.abs(self.limits.usage(self.simulate(commands))).max(axis=0) - 1
            if not excess.max() > 0:
                break
            experiment = experiment.tighten(excess)
            point = run_stage(experiment, point, len(STAGE_STIFFNESS) - 1, self.options.iterations, callback)
        return experiment.commands(point.x)

    def _expected_accuracy(self, covariance: Float[np.ndarray, "size size"]) -> tuple[ExpectedAccuracy, ...]:
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
        return tuple(ExpectedAccuracy(n, u, float(x), float(b), float(a)) for n, u, x, b, a in rows)


def design(
    model: Model,
    free: Sequence[str],
    limits: Limits,
    *,
    options: DesignOptions | None = None,
    prior: Float[np.ndarray, "size size"] | None = None,
    callback: DesignCallback | None = None,
) -> Design:
    """Design the most informative motion within limits.

    Args:
        model: The robot; its values should be nearly right.
        free: Paths of the unknown parameters, such as `bodies/*.mass`.
        limits: Limits of the motion.
        options: Duration, rate, noise and optimization.
        prior: Information on the coordinates of the parameters, in addition to the weak prior of a fit.
        callback: Called with the number of the stage and the cost after every evaluation.
    """
    return Designer(model, free, limits, options, prior).optimize(callback)


def designer_after_fit(
    model: Model,
    free: Sequence[str],
    limits: Limits,
    options: DesignOptions | None = None,
    *,
    values: Mapping[str, Any],
    covariance: FittedCovariance,
    noise: Mapping[str, float],
) -> Designer:
    """Designer that starts from the values, covariance and noise of a fit.

    Args:
        model: The robot.
        free: Paths of the unknown parameters.
        limits: Limits of the motion.
        options: Duration, rate, noise and optimization; noise that it names takes precedence over that of the fit.
        values: Fitted values by path [SI units].
        covariance: Covariance of the fitted values, with their names.
        noise: Standard deviation of residuals by channel [SI units].
    """
    options = options or DesignOptions()
    options = dataclasses.replace(options, noise={**noise, **options.noise})
    designer = Designer(write_values(model, values), free, limits, options)
    return designer.with_prior(fitted_information(designer.parameters, covariance))


def _channels(model: Model, patterns: Sequence[str]) -> list[Channel]:
    """Channels that match a pattern, without rotations."""
    known = [channel for channel in known_channels(model) if not channel.has_quaternion]
    chosen = [c for c in known if any(fnmatch.fnmatchcase(c.name, pattern) for pattern in patterns)]
    if not chosen:
        raise unknown_name("channel", ", ".join(patterns), [c.name for c in known])
    return chosen


def _noise(channels: Sequence[Channel], noise: Mapping[str, float]) -> Float[np.ndarray, " rows"]:
    """Standard deviation of every measurement; the last matching pattern counts."""
    rows = []
    for channel in channels:
        own = [std for pattern, std in noise.items() if fnmatch.fnmatchcase(channel.name, pattern)]
        rows += [own[-1] if own else DEFAULT_NOISE] * len(channel.columns)
    if not min(rows) > 0:
        raise TruesimError("The noise of measurements must be positive.")
    return np.array(rows)


def _start_position(model: Model, limits: Limits) -> Float[np.ndarray, " nq"]:
    """Start and end of the motion: the reference configuration, or the middle of a range near whose end it is."""
    q, n = np.asarray(reference_configuration(model), float), model.nv
    bounded = np.isfinite(limits.high[:n] - limits.low[:n])
    low, high = np.where(bounded, limits.low[:n], q), np.where(bounded, limits.high[:n], q)
    middle = (low + high) / 2
    near = np.abs(limits.usage(np.concatenate([q, np.zeros(len(limits.low) - n)]))[:n]) > START_USAGE
    return np.where(near, middle, q)


def _holding_controls(model: Model, state: State) -> Float[np.ndarray, " nu"]:
    """Controls that hold the robot at rest, as far as its actuators can."""
    with jax.enable_x64(True):
        still = jnp.zeros(model.nv)

        def force(control: jax.Array) -> jax.Array:
            return jnp.asarray(actuator_forces(model, state.q, still, control).generalized)

        nothing = jnp.zeros(model.nu)
        gains, idle = np.asarray(jax.jacfwd(force)(nothing)), np.asarray(force(nothing))
        needed = np.asarray(gravity_forces(model, state.q))
    return np.linalg.lstsq(gains, needed - idle, rcond=None)[0]
