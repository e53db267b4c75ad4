"""Networks of a fit as forces in MuJoCo: `attach(model, fit)`, and `mujoco.mj_step` moves the hybrid.

MuJoCo calls back for passive forces at every step. The networks add the difference between all forces with and without
them. An implicit integrator of truesim solves `(M + A) a = f` with the networks' forces in A; MuJoCo solves
`(M + A0) a = f` with its own A0, so that adding `(A0 - A) a` gives the same acceleration.
"""

import collections
import dataclasses
import functools
import math
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from truesim import native
from truesim.core.errors import TruesimError
from truesim.core.precision import float64
from truesim.core.typing import Array, Float
from truesim.files.robots import load
from truesim.files.robots.compiled import from_compiled
from truesim.identification.fit import Fit
from truesim.identification.fit_folder import networks_in, robot_file
from truesim.physics.blueprint import Trained
from truesim.physics.simulation import RungeKutta4, Simulator, State
from truesim.physics.simulation.equation_of_motion import EquationOfMotion

MUJOCO_FORCE_PORTS = (
    *("actuator.command", "actuator.force", "joint.motor_torque", "joint.spring_torque", "joint.damping_torque"),
    *("joint.friction_torque", "joint.limit_torque", "joint.gravity_torque", "joint.coriolis_torque", "body.wrench"),
    "joint.torque",
)
"""Ports that act through forces, which MuJoCo takes from outside."""
CLOCK_TOLERANCE = 1e-6
"""Part of a time step by which the clock may fall short of a full step; larger accepts more."""


def attach(model: mujoco.MjModel, fit: Fit | Trained | str | Path) -> "Hybrid":
    """Let the networks of a fit act in MuJoCo whenever this model is simulated, until `detach`.

    Networks at ports of forces and actuators can act there; others are refused by name.

    Args:
        model: The robot, as MuJoCo compiled it from the fit's own robot file.
        fit: A fit, its folder, or trained networks.
    """
    trained, own = _networks(fit)
    for rule in trained.rules:
        if rule.output not in MUJOCO_FORCE_PORTS:
            raise TruesimError(
                f"The network {rule.name} changes {rule.output}, which MuJoCo cannot be given from outside. "
                f"Valid: {', '.join(MUJOCO_FORCE_PORTS)}."
            )
    robot = from_compiled(model, None) if own is None else own
    _check_same(model, robot)
    with float64():
        hybrid = Hybrid(model, Simulator.of(robot, timestep=model.opt.timestep, blueprint=trained))
    if hybrid.remembers and isinstance(hybrid.simulator.integrator, RungeKutta4):
        raise TruesimError("Networks with memory cannot act within RK4; use another integrator.")
    _ATTACHED[_key(model)] = hybrid
    mujoco.set_mjcb_passive(_passive)
    return hybrid


@dataclasses.dataclass(frozen=True)
class Hybrid:
    """MuJoCo model with networks attached."""

    model: mujoco.MjModel
    simulator: Simulator
    """The same robot in truesim."""

    @property
    def remembers(self) -> bool:
        """True if the networks have memory."""
        return self.simulator.learned is not None and self.simulator.learned.remembers

    def force(self, data: mujoco.MjData) -> Float[np.ndarray, " nv"]:
        """Generalized force that the networks add at a state of MuJoCo [N m or N]."""
        key, clock = data.qpos.ctypes.data, self._clocks
        if self.remembers:
            before = clock.get(key)
            if before is None or data.time < before.time:
                before = _Clock(data.time, self._first(data), None)
            elif data.time - before.time > (1 - CLOCK_TOLERANCE) * self.model.opt.timestep:
                before = _Clock(data.time, before.next, None)
            added, memory = self._kernel(data.qpos, data.qvel, data.ctrl, before.memory)
            clock[key] = dataclasses.replace(before, next=memory)
            return added
        return self._kernel(data.qpos, data.qvel, data.ctrl, None)[0]

    def detach(self) -> None:
        """Detach the networks: MuJoCo simulates the model without them again."""
        if _ATTACHED.get(_key(self.model)) is self:
            del _ATTACHED[_key(self.model)]
        if not _ATTACHED:
            mujoco.set_mjcb_passive(None)

    @functools.cached_property
    def _clocks(self) -> dict[int, "_Clock"]:
        """Memory of the networks, for every `MjData` that is simulated."""
        return {}

    def _first(self, data: mujoco.MjData) -> Any:
        with float64():
            state = State(jnp.asarray(data.qpos), jnp.asarray(data.qvel), jnp.zeros(()))
            memory = self.simulator.started(state, jnp.asarray(data.ctrl)).memory
            return jax.tree.map(np.asarray, memory)

    @functools.cached_property
    def _kernel(self) -> native.Kernel:
        model, learned = self.simulator.model, self.simulator.learned
        assert learned is not None, "a hybrid has networks"
        memory = jax.tree.map(np.asarray, learned.initial_memory()) if self.remembers else None

        def added(q: Array, v: Array, command: Array, memory: Any) -> tuple[Array, Any]:
            state = State(q, v, jnp.zeros(()), memory=memory)
            force, seen = _added(self.simulator, state, command)
            return force, learned.remembered(seen, memory)

        with float64():
            example = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nu)
            return native.compile(added, *example, memory)


@dataclasses.dataclass(frozen=True)
class _Clock:
    """Memory of the networks at the start of the step that begins at a time, and after it."""

    time: float
    """[s]"""
    memory: Any
    next: Any


_ATTACHED: dict[int, Hybrid] = {}


def _passive(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    hybrid = _ATTACHED.get(_key(model))
    if hybrid is not None:
        data.qfrc_passive[:] += hybrid.force(data)


def _key(model: mujoco.MjModel) -> int:
    """Address of the numbers of a model: the same for all Python objects that hold it."""
    return int(model.body_mass.ctypes.data)


def _added(simulator: Simulator, state: State, command: Array) -> tuple[Float[Array, " nv"], Any]:
    """Force that the networks add, and the values at the ports."""
    hybrid = simulator.equation(command, None, state)
    plain = dataclasses.replace(hybrid, learned=None)
    if isinstance(simulator.integrator, RungeKutta4):
        tap = hybrid.tap(state.q, state.v)
        return hybrid.applied(state.q, state.v, tap) - plain.applied(state.q, state.v), tap.seen

    def step(equation: EquationOfMotion) -> Any:
        return simulator.integrator.step(equation, state.q, state.v, simulator.timestep)

    with_networks, without = step(hybrid), step(plain)
    a = (with_networks.v - state.v) / simulator.timestep
    force = with_networks.forces.applied - without.forces.applied
    for sign, increment in ((-1.0, with_networks), (1.0, without)):
        if increment.added_inertia is not None:
            force = force + sign * increment.added_inertia * a
    return force, with_networks.forces.seen


def _networks(fit: Fit | Trained | str | Path) -> tuple[Trained, Any]:
    """Networks, and the robot that they were trained with, if known."""
    if isinstance(fit, Trained):
        return fit, None
    if isinstance(fit, Fit):
        trained, model = fit.networks, fit.model
    else:
        trained, model = networks_in(Path(fit)), load(robot_file(Path(fit)))
    if trained is None:
        raise TruesimError("The fit has no networks: MuJoCo can simulate its robot file as it is.")
    if np.any(np.asarray(model.actuators.delay) > 0):
        raise TruesimError(
            "The fit delays its commands, which MuJoCo does not: delay them before they reach data.ctrl."
        )
    return trained, model


def _check_same(model: mujoco.MjModel, robot: Any) -> None:
    """Refuse networks of another robot."""
    ours = robot.joints.names, robot.actuators.names
    theirs = (
        tuple(model.joint(j).name for j in range(model.njnt)),
        tuple(model.actuator(k).name for k in range(model.nu)),
    )
    for kind, own, other in zip(("joints", "actuators"), ours, theirs, strict=True):
        if len(own) != len(other) or any(b and a != b for a, b in zip(own, other, strict=True)):
            raise TruesimError(
                f"The fit is of a robot with the {kind} {', '.join(own)}; MuJoCo's has {', '.join(other)}."
            )


class MujocoPlant:
    """A simulation of MuJoCo as a plant of a closed loop."""

    def __init__(
        self, model: mujoco.MjModel, data: mujoco.MjData | None = None, *, substeps: int = 1, delay: float = 0.0
    ):
        """Start at a state.

        Args:
            model: The robot.
            data: Initial state, which is advanced; the reference configuration at rest by default.
            substeps: Time steps of one period.
            delay: Time until a command reaches the actuators, rounded up to a whole number of time steps [s].
        """
        self.model, self.data, self._substeps = model, mujoco.MjData(model) if data is None else data, substeps
        self._delay = math.ceil(delay / model.opt.timestep - CLOCK_TOLERANCE)
        self._on_the_way: collections.deque[tuple[int, np.ndarray]] = collections.deque()
        """Commands with the number of steps until they act."""

    def observe(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Configuration, velocity and time."""
        return self.data.qpos.copy(), self.data.qvel.copy(), float(self.data.time)

    def apply(self, command: np.ndarray) -> None:
        """Hold a command for one period."""
        self._on_the_way.append((self._delay, np.array(command)))
        for _ in range(self._substeps):
            while self._on_the_way and self._on_the_way[0][0] <= 0:
                self.data.ctrl[:] = self._on_the_way.popleft()[1]
            mujoco.mj_step(self.model, self.data)
            self._on_the_way = collections.deque((left - 1, sent) for left, sent in self._on_the_way)
