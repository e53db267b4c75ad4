"""Networks of a fit as forces in MuJoCo: `attach(model, fit)`, and `mujoco.mj_step` moves the hybrid.

MuJoCo asks for passive forces at every step. There the networks add what they change: the difference between all forces
with and without them. Where an implicit integrator would also treat a network's force implicitly, as ours does, MuJoCo
solves `(M + A0) a = f` with its own A0 in place of `(M + A) a = f`; adding `(A0 - A) a` gives the same acceleration.
"""

import dataclasses
import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from truesim import native
from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float
from truesim.formats import load
from truesim.formats.compiled import from_compiled
from truesim.identify.folder import networks_in, robot_file
from truesim.identify.result import Fit
from truesim.simulate import RungeKutta4, Simulator, State, Trained
from truesim.simulate.equation import EquationOfMotion

FORCES = (
    *("actuator.command", "actuator.force", "joint.motor_torque", "joint.spring_torque", "joint.damping_torque"),
    *("joint.friction_torque", "joint.limit_torque", "joint.gravity_torque", "joint.coriolis_torque", "body.wrench"),
    "joint.torque",
)
"""Ports that act through forces, which MuJoCo can be given from outside."""
SAME_TIME = 1e-6
"""A step has passed when the clock has advanced by a step, up to this part of it."""


def attach(model: mujoco.MjModel, fit: Fit | Trained | str | Path) -> "Hybrid":
    """Lets the networks of a fit act in MuJoCo whenever this model moves, until `detach`.

    Networks at ports of forces and actuators can act there; others are refused by name.

    Args:
        model: The robot, as MuJoCo compiled it from the fit's own robot file.
        fit: A fit, its folder, or trained networks.
    """
    trained, own = _networks(fit)
    for rule in trained.rules:
        if rule.output not in FORCES:
            raise TruesimError(
                f"The network {rule.name} changes {rule.output}, which MuJoCo cannot be given from outside. "
                f"Valid: {', '.join(FORCES)}."
            )
    robot = from_compiled(model, None) if own is None else own
    _check_same(model, robot)
    with jax.enable_x64(True):
        hybrid = Hybrid(model, Simulator.of(robot, timestep=model.opt.timestep, blueprint=trained))
    if hybrid.remembers and isinstance(hybrid.simulator.integrator, RungeKutta4):
        raise TruesimError("Networks that remember the step before cannot act within RK4; use another integrator.")
    _ATTACHED[_key(model)] = hybrid
    mujoco.set_mjcb_passive(_passive)
    return hybrid


@dataclasses.dataclass(frozen=True)
class Hybrid:
    """A model of MuJoCo with networks attached."""

    model: mujoco.MjModel
    simulator: Simulator
    """The same robot in truesim."""

    @property
    def remembers(self) -> bool:
        """Whether networks need the step before."""
        return self.simulator.learned is not None and self.simulator.learned.remembers

    def force(self, data: mujoco.MjData) -> Float[np.ndarray, "nv"]:
        """What the networks add to the generalised forces at a state of MuJoCo [N m or N]."""
        key, clock = data.qpos.ctypes.data, self._clocks
        if self.remembers:
            before = clock.get(key)
            if before is None or data.time < before.time:
                before = _Clock(data.time, self._first(data), None)
            elif data.time - before.time > (1 - SAME_TIME) * self.model.opt.timestep:
                before = _Clock(data.time, before.next, None)
            added, memory = self._kernel(data.qpos, data.qvel, data.ctrl, before.memory)
            clock[key] = dataclasses.replace(before, next=memory)
            return added
        return self._kernel(data.qpos, data.qvel, data.ctrl, None)[0]

    def detach(self) -> None:
        """MuJoCo moves the model without networks again."""
        if _ATTACHED.get(_key(self.model)) is self:
            del _ATTACHED[_key(self.model)]
        if not _ATTACHED:
            mujoco.set_mjcb_passive(None)

    @functools.cached_property
    def _clocks(self) -> dict[int, "_Clock"]:
        """What networks remember, for every motion that is simulated."""
        return {}

    def _first(self, data: mujoco.MjData) -> Any:
        with jax.enable_x64(True):
            state = State(jnp.asarray(data.qpos), jnp.asarray(data.qvel), jnp.zeros(()))
            memory = self.simulator.started(state, jnp.asarray(data.ctrl)).memory
            return jax.tree.map(np.asarray, memory)

    @functools.cached_property
    def _kernel(self) -> native.Kernel:
        model, learned = self.simulator.model, self.simulator.learned
        assert learned is not None, "a hybrid has networks"
        memory = jax.tree.map(np.asarray, learned.first_memory()) if self.remembers else None

        def added(q: Array, v: Array, command: Array, memory: Any) -> tuple[Array, Any]:
            state = State(q, v, jnp.zeros(()), memory=memory)
            force, seen = _added(self.simulator, state, command)
            return force, learned.remembered(seen, memory)

        with jax.enable_x64(True):
            example = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nu)
            return native.compile(added, *example, memory)


@dataclasses.dataclass(frozen=True)
class _Clock:
    """What networks remember at the start of the step that begins at a time, and after it."""

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
    """Where the numbers of a model lie: the same however Python holds it."""
    return int(model.body_mass.ctypes.data)


def _added(simulator: Simulator, state: State, command: Array) -> tuple[Float[Array, "nv"], Any]:
    """What networks add to the forces, and what passed the ports."""
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
    """Networks, and the robot that they were trained with, if it is known."""
    if isinstance(fit, Trained):
        return fit, None
    if isinstance(fit, Fit):
        trained, model = fit.networks, fit.model
    else:
        trained, model = networks_in(Path(fit)), load(robot_file(Path(fit)))
    if trained is None:
        raise TruesimError("The fit has no networks: its robot file is all there is, and MuJoCo can load it.")
    if np.any(np.asarray(model.actuators.delay) > 0):
        raise TruesimError(
            "The fit delays its commands, which MuJoCo does not: delay them before they reach data.ctrl."
        )
    return trained, model


def _check_same(model: mujoco.MjModel, robot: Any) -> None:
    """Refuses networks of another robot."""
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
