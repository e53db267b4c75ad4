"""MuJoCo in the place of a robot: other parameters, integrator and time step, late actions, friction, backlash, sag.

| level | difference from the simulator of the task |
|---|---|
| R0 | parameters within their usual ranges |
| R1 | some parameters beyond them, another integrator, half the time step, latency with jitter, noise and offsets |
| R2 | R1, and what the simulator cannot express: Stribeck friction, backlash, a battery that sags |
"""

import dataclasses
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import mujoco
import numpy as np

from truesim.core.errors import unknown_name
from truesim.core.typing import Float
from truesim.files.robots.compiled_write import compiled_model
from truesim.physics.simulation import State, named_values
from truesim.policies.episodes import Episode
from truesim.policies.randomization import expand
from truesim.policies.task import PolicyTask

USUAL_RANGES = {"bodies/*.mass": (0.8, 1.2), "joints/*.damping": (0.5, 2.0), "actuators/*.gain": (0.9, 1.1)}
"""Usual ranges of factors on nominal values, for uniform randomization; R0 stays within them."""
BEYOND = 0.25
"""Part of the half range by which every second parameter of R1 and R2 is beyond its range."""
STRIBECK_VELOCITY, STATIC_RATIO = 0.05, 1.4
"""Velocity of the Stribeck effect [rad/s], and static friction relative to Coulomb friction."""
SAG_TIME, HEATING, COOLING_TIME, AMBIENT_TEMPERATURE = 1.0, 60.0, 120.0, 25.0
"""Time of the battery's sag [s], temperature above ambient at full control [K], its time [s], ambient [deg C]."""
NO_LOAD_SPEED = 20.0
"""Speed at which a motor at full control crosses its backlash [rad/s]."""
SERVO_ERROR = 0.5
"""Position error of a servo whose force counts as full [rad]."""


@dataclasses.dataclass(frozen=True)
class RealEffects:
    """Differences between a stand-in and the simulator of its task."""

    factors: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Factors on nominal values, by path."""
    integrator: str | None = None
    """`Euler`, `RK4` or `implicitfast`; None for the integrator of the file."""
    finer: int = 1
    """Time steps of MuJoCo for each time step of the task."""
    latency: tuple[float, float] = (0.0, 0.0)
    """Range of the delay of an action, drawn for every action [s]; a later action never overtakes an earlier one."""
    position_noise: float = 0.0
    """Standard deviation of encoders [rad, m]."""
    velocity_noise: float = 0.0
    """Standard deviation of measured velocities [rad/s, m/s]."""
    offset: float = 0.0
    """Largest offset of encoders, drawn once for a robot [rad, m]."""
    friction: float = 0.0
    """Coulomb friction of driven joints, as part of the largest force of their actuators; static friction is higher."""
    backlash: float = 0.0
    """Free play between motors and joints [rad]."""
    sag: float = 0.0
    """Part of the force that is lost after long full control: the battery's voltage falls."""


def effects_of(task: PolicyTask, level: str, robot: int = 0) -> RealEffects:
    """Effects of a level for a task.

    Args:
        task: The task.
        level: `R0`, `R1` or `R2`.
        robot: Number of the robot: another one has other parameters.
    """
    if level not in STAND_IN_LEVELS:
        raise unknown_name("level of a stand-in", level, STAND_IN_LEVELS)
    rng, factors = np.random.default_rng([robot, 0]), {}
    for pattern, (low, high) in USUAL_RANGES.items():
        for k, target in enumerate(_existing(task, pattern)):
            inside, end = rng.uniform(low, high), rng.integers(2)
            beyond = BEYOND * (high - low) / 2
            outside = high + beyond if end else low - beyond
            factors[str(target)] = float(outside if k % 2 == 0 and level != "R0" else inside)
    return dataclasses.replace(STAND_IN_LEVELS[level], factors=factors)


def _existing(task: PolicyTask, pattern: str) -> list[str]:
    """Paths of a pattern whose nominal value is not zero."""
    named = [str(target) for target in expand(task.simulator, pattern)]
    return [path for path in named if np.any(np.asarray(task.simulator.read(path)) != 0)]


STAND_IN_LEVELS = {
    "R0": RealEffects(),
    "R1": RealEffects(
        integrator="RK4",
        finer=2,
        latency=(0.004, 0.012),
        position_noise=1e-3,
        velocity_noise=0.02,
        offset=5e-3,
    ),
}
"""Levels of stand-ins, without the factors, which depend on the robot."""
STAND_IN_LEVELS["R2"] = dataclasses.replace(STAND_IN_LEVELS["R1"], friction=0.03, backlash=0.01, sag=0.1)


class MotorReport(NamedTuple):
    """Motors of one episode at the end of a control step."""

    torque: Float[np.ndarray, " nu"]
    """Forces of the actuators [N m, N]."""
    temperature: Float[np.ndarray, " nu"]
    """[deg C]"""


class StandInPhysics:
    """Physics of a stand-in, one episode of a batch after the other."""

    def __init__(self, task: PolicyTask, effects: RealEffects, batch: int = 1, seed: int = 0):
        """Compile the robot with the factors.

        Args:
            task: The task; its latency should be zero, since the stand-in has its own.
            effects: Differences from the task's simulator.
            batch: Number of episodes.
            seed: Seed of latencies.
        """
        self.effects, self._period, self._batch = effects, task.period, batch
        model = self._model = _compiled(task, effects)
        self._data, self._steps = mujoco.MjData(model), task.substeps * effects.finer
        self._rest = np.asarray(task.action_map.control(task.simulator, np.zeros(task.action_map.size)), float)
        self._gain, self._bias = model.actuator_gainprm[:, 0].copy(), model.actuator_biasprm.copy()
        self._is_servo = model.actuator_biastype != mujoco.mjtBias.mjBIAS_NONE
        self._full = _full_controls(model)
        self._friction = effects.friction * _largest_forces(model) + model.dof_frictionloss
        self._dof = [int(model.jnt_dofadr[joint]) for joint in model.actuator_trnid[:, 0]]
        self.restart(seed)
        self.last: State | None = None
        """States after the last control period."""

    def restart(self, seed: int) -> None:
        """Begin all episodes anew, with another stream of latencies."""
        self._rng, self._begun = np.random.default_rng([seed, 1]), np.full(self._batch, -1, np.int64)
        self._motors = [_MotorState(self._model.nu, self._rest) for _ in range(self._batch)]

    def report(self, k: int = 0) -> MotorReport:
        """Motors of an episode."""
        return MotorReport(self._motors[k].torque.copy(), self._motors[k].temperature.copy())

    def advance(self, episodes: Episode, controls: np.ndarray) -> State:
        """States after a control period."""
        begun = np.asarray(episodes.counter, np.int64) - np.asarray(episodes.step)
        for k in np.flatnonzero(begun != self._begun).tolist():
            self._motors[k] = _MotorState(self._model.nu, self._rest)
        self._begun, state = begun, episodes.state
        q, v = np.array(state.q), np.array(state.v)
        for k in range(self._batch):
            start = float(episodes.step[k]) * self._period
            self._motors[k].send(start, self._rng.uniform(*self.effects.latency), np.asarray(controls[k, 0], float))
            q[k], v[k] = self._one(self._motors[k], start, q[k], v[k])
        time = (np.asarray(state.time) + self._period).astype(np.asarray(state.time).dtype)
        self.last = dataclasses.replace(state, q=q, v=v, time=time)
        return self.last

    def _one(self, motors: "_MotorState", start: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One control period of one episode."""
        model, data, effects, dt = self._model, self._data, self.effects, self._model.opt.timestep
        data.qpos[:], data.qvel[:], data.qacc_warmstart[:] = q, v, 0.0
        for step in range(self._steps):
            control = motors.acting(start + step * dt)
            if effects.backlash:
                control = motors.through_backlash(control, self, data.qvel[self._dof], dt)
            if effects.sag:
                motors.load += dt / SAG_TIME * (np.abs(control / self._full).mean() - motors.load)
                left = 1.0 - effects.sag * min(motors.load, 1.0)
                model.actuator_gainprm[:, 0], model.actuator_biasprm[:] = left * self._gain, left * self._bias
            if effects.friction:
                peak = np.exp(-((data.qvel / STRIBECK_VELOCITY) ** 2))
                model.dof_frictionloss[:] = self._friction * (1.0 + (STATIC_RATIO - 1.0) * peak)
            data.ctrl[:] = control
            mujoco.mj_step(model, data)
        motors.torque = data.actuator_force.copy()
        effort = np.minimum((motors.torque / np.maximum(np.abs(self._full * self._gain), 1e-9)) ** 2, 1.0)
        warming = AMBIENT_TEMPERATURE + HEATING * effort - motors.temperature
        motors.temperature = motors.temperature + self._period / COOLING_TIME * warming
        return data.qpos, data.qvel

    @property
    def is_servo(self) -> np.ndarray:
        """True for each actuator that follows a position or a velocity."""
        return self._is_servo

    @property
    def full(self) -> np.ndarray:
        """Control of each actuator that counts as full."""
        return self._full


class _MotorState:
    """Motors of one episode: actions on their way, backlash, battery and heat."""

    def __init__(self, count: int, rest: np.ndarray):
        self._sent: deque[tuple[float, np.ndarray]] = deque()
        self._now, self._place = rest, np.zeros(count)
        self.load, self.torque, self.temperature = 0.0, np.zeros(count), np.full(count, AMBIENT_TEMPERATURE)

    def send(self, time: float, latency: float, control: np.ndarray) -> None:
        """A control leaves at a time, and arrives after the latency, but not before an earlier one [s]."""
        arrival = time + latency
        self._sent.append((max(arrival, self._sent[-1][0]) if self._sent else arrival, control))

    def acting(self, time: float) -> np.ndarray:
        """The control that has arrived last."""
        while self._sent and self._sent[0][0] <= time + 1e-12:
            self._now = self._sent.popleft()[1]
        return self._now

    def through_backlash(
        self, control: np.ndarray, physics: StandInPhysics, speed: np.ndarray, dt: float
    ) -> np.ndarray:
        """Controls behind free play: a servo follows only the part of its target beyond it, a motor acts at its ends.

        Args:
            control: Controls of all actuators.
            physics: The stand-in.
            speed: Velocities of the driven joints [rad/s].
            dt: Time step [s].
        """
        half = physics.effects.backlash / 2
        held = np.clip(self._place, control - half, control + half)
        turned = self._place + dt * (NO_LOAD_SPEED * control / physics.full - speed)
        place = np.clip(turned, -half, half)
        self._place = np.where(physics.is_servo, held, place)
        engaged = np.where(control > 0, place >= half, place <= -half)
        return np.where(physics.is_servo, held, np.where(engaged, control, 0.0))


def _compiled(task: PolicyTask, effects: RealEffects) -> mujoco.MjModel:
    """MuJoCo's model with the factors, integrator and time step."""
    simulator = task.simulator
    values = {
        str(target): factor * np.asarray(named_values.read(simulator, target))
        for path, factor in effects.factors.items()
        for target in expand(simulator, path)
    }
    model = compiled_model(simulator.replace(values).model if values else simulator.model)
    if effects.integrator is not None:
        model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{effects.integrator.upper()}")
    model.opt.timestep = float(simulator.timestep) / effects.finer
    return model


def _full_controls(model: mujoco.MjModel) -> np.ndarray:
    """Control of each actuator that counts as full: the end of its range, or an error of a servo."""
    limited = model.actuator_ctrllimited.astype(bool)
    return np.where(limited, np.maximum(np.abs(model.actuator_ctrlrange).max(axis=1), 1e-9), 1.0)


def _largest_forces(model: mujoco.MjModel) -> np.ndarray:
    """Largest force of the actuators of each degree of freedom; zero where there is none."""
    forces = np.zeros(model.nv)
    servo = model.actuator_biastype != mujoco.mjtBias.mjBIAS_NONE
    full = np.where(servo, SERVO_ERROR, _full_controls(model))
    for k in range(model.nu):
        force = abs(model.actuator_gainprm[k, 0]) * full[k]
        if model.actuator_forcelimited[k]:
            force = min(force, np.abs(model.actuator_forcerange[k]).max())
        if model.actuator_trntype[k] == mujoco.mjtTrn.mjTRN_JOINT:
            forces[model.jnt_dofadr[model.actuator_trnid[k, 0]]] += force * abs(model.actuator_gear[k, 0])
    return forces
