"""Rollouts of MuJoCo's constraint model by the table-driven routines, which compute several instances at once."""

import collections
import hashlib
import threading
from typing import Any

import jax
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.tracing import is_traced
from truesim.physics.contact.models.mujoco import MujocoContact
from truesim.physics.model.actuators import AFFINE
from truesim.physics.routines.engine import Engine, Rollout
from truesim.physics.routines.from_mujoco import from_mujoco
from truesim.physics.simulation.compiled_values import compiled_values
from truesim.physics.simulation.integrators import Implicit, ImplicitFast, RungeKutta4, SemiImplicitEuler
from truesim.physics.simulation.joint_models import MujocoJointModel
from truesim.physics.simulation.simulator import Simulator
from truesim.physics.simulation.table_parameters import traced_fixed_field

CACHED_ENGINES = 8
"""Number of engines kept for simulators with the same numbers; larger uses more memory."""
_engines: collections.OrderedDict[tuple, Engine | str] = collections.OrderedDict()
_lock = threading.Lock()


def reason_against(simulator: Simulator) -> str | None:
    """Reason why the routines cannot simulate this simulator; None if they can."""
    found = engine_of(simulator)
    return found if isinstance(found, str) else None


def engine_of(simulator: Simulator) -> Engine | str:
    """Engine with the numbers of a simulator, or the reason why there is none.

    Where numbers are traced it has those of the file: `traced_tables` gives the others.
    """
    reason = _structural_reason(simulator)
    if reason is not None:
        return reason
    assert simulator.model.source is not None, "checked above"
    key = id(simulator.model.source.compiled), engine_digest(simulator), simulator.model.defaults
    with _lock:
        if key not in _engines:
            _engines[key] = _make(simulator)
            while len(_engines) > CACHED_ENGINES:
                _engines.popitem(last=False)
        _engines.move_to_end(key)
        return _engines[key]


def roll(engine: Engine, state: Any, commands: np.ndarray) -> Rollout:
    """Motion of one instance under commands of shape (steps, nu)."""
    q, v, start = (np.asarray(x, engine.dtype)[None] for x in (state.q, state.v, state.acceleration))
    return engine.rollout(q, v, start, np.asarray(commands, engine.dtype)[None])


def _structural_reason(simulator: Simulator) -> str | None:
    """Reason in the choices of a simulator; values are checked when its engine is made."""
    model, contact = simulator.model, simulator.contact
    if not isinstance(contact, MujocoContact):
        return "the contact model is not the file's"
    if model.source is None or model.source.compiled is None:
        return "the model did not come from a file"
    traced = traced_fixed_field(model)
    if traced is not None:
        return f"the values of {traced} are traced"
    if simulator.learned is not None:
        return "networks act within the physics"
    if simulator.history:
        return "commands are delayed"
    if simulator.joint_model != MujocoJointModel.of(model):
        return "the joint model is not the file's"
    same = {
        "Euler": SemiImplicitEuler(model.defaults.implicit_damping),
        "implicit": Implicit(),
        "implicitfast": ImplicitFast(),
        "RK4": RungeKutta4(),
    }
    if simulator.integrator != same.get(model.defaults.integrator):
        return "the integrator is not the file's, or is not Euler, implicit, implicitfast or RK4"
    if any(kind != AFFINE for kind in model.actuators.models) or np.any(model.actuators.offset):
        return "an actuator has a model or an offset that MuJoCo does not have"
    if np.any(model.joints.stiction) or np.any(model.joints.load_friction):
        return "a joint has stiction, or friction under load"
    return None


def _make(simulator: Simulator) -> Engine | str:
    contact = simulator.contact
    assert isinstance(contact, MujocoContact), "the caller checks"
    model, source = simulator.model, simulator.model.source
    assert source is not None, "the caller checks"
    if not np.array_equal(model.geoms.size, source.compiled.geom_size):
        return "sizes of geoms differ from the file's"
    compiled = compiled_values(model, simulator.timestep, contact)
    for traced, array in (
        (model.joints.stiffness, compiled.jnt_stiffness),
        (model.joints.damping, compiled.dof_damping),
        (model.bodies.gravcomp, compiled.body_gravcomp),
    ):
        if is_traced(traced):
            array[:] = 1.0  # the routines then have the part; its values come with each call
    try:
        return Engine(from_mujoco(compiled, source.rows), compiled, dtype=jax.dtypes.canonicalize_dtype(float))
    except TruesimError as error:
        return str(error)


def engine_digest(simulator: Simulator) -> str:
    """Hash of all numbers of a simulator, of its file and of the precision."""
    digest = hashlib.sha256(str(jax.dtypes.canonicalize_dtype(float)).encode())
    for leaf in jax.tree.leaves(simulator):
        digest.update(b"traced" if is_traced(leaf) else np.asarray(leaf).tobytes())
    digest.update(repr((simulator.contact, simulator.model.defaults)).encode())
    source = simulator.model.source
    if source is not None and source.compiled is not None:
        digest.update(source.compiled.signature.to_bytes(8, "little"))
    return digest.hexdigest()
