"""Tables of the routines from the traced values of a simulator, so that each batch element may have its own."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.tracing import is_traced
from truesim.core.typing import Array
from truesim.math.spatial.rotation import normalize
from truesim.physics.constraints.contacts import MIN_FRICTION, ContactSlots, contact_parameters
from truesim.physics.constraints.weights import InverseWeights, inverse_weights
from truesim.physics.contact.models.mujoco import MujocoContact
from truesim.physics.dynamics import reference_configuration
from truesim.physics.dynamics.links import joint_of_dof
from truesim.physics.model.model import Model
from truesim.physics.model.tendons import tendon_lengths
from truesim.physics.routines.engine import Engine
from truesim.physics.simulation.backend import call_native
from truesim.physics.simulation.compiled_values import (
    BODY_FIELDS,
    DOF_FIELDS,
    JOINT_FIELDS,
    TENDON_FIELDS,
)
from truesim.physics.simulation.simulator import Simulator

FILE_FIELDS = (
    "geoms.size",
    *(f"equalities.{name}" for name in ("anchor", "orientation", "coefficients", "torque_scale", "solref", "solimp")),
    *(f"actuators.{name}" for name in ("offset", "delay")),
    *("joints.stiction", "joints.load_friction", "tendons.armature", "tendons.force_range"),
)
"""Fields of a model whose values the routines take from the file, or do not have."""
NO_BOUNDS = np.array([-np.inf, np.inf])
Tables = dict[str, Array]


def traced_fixed_field(model: Model) -> str | None:
    """Name of a traced field whose value the routines cannot take from a batch element; None if there is none."""
    return next((name for name in FILE_FIELDS if is_traced(_field(model, name))), None)


def _field(model: Model, name: str) -> Any:
    group, field = name.split(".")
    return getattr(getattr(model, group), field)


def traced_tables(simulator: Simulator, engine: Engine) -> Tables:
    """Parameters of the routines that depend on traced values, by name; all others are the engine's."""
    tables: Tables = {}

    def put(name: str, leaves: Sequence[Any], value: Callable[[], Array]) -> None:
        if any(map(is_traced, leaves)):
            tables[name] = jnp.asarray(value(), engine.dtype)

    contact = simulator.contact
    assert isinstance(contact, MujocoContact), "the caller checks"
    put("timestep", [simulator.timestep], lambda: jnp.reshape(simulator.timestep, 1))
    put("impratio", [contact.impratio], lambda: jnp.reshape(contact.impratio, 1))
    put("gravity", [simulator.model.gravity], lambda: simulator.model.gravity)
    for part in (_put_bodies, _put_joints, _put_pairs, _put_tendons, _put_actuators, _put_weights):
        part(simulator.model, engine, put)
    return tables


Put = Callable[[str, Sequence[Any], Callable[[], Array]], None]
"""Adds a table, given its name, the values it depends on and a function that computes it."""


def _put_bodies(model: Model, engine: Engine, put: Put) -> None:
    fields = {**BODY_FIELDS, "body_inertia": "inertia", "body_quat": "orientation"}
    for name, field in fields.items():
        own = getattr(model.bodies, field)
        world = engine.model.parameters[name][:1]

        def value(own: Any = own, world: Any = world, name: str = name) -> Array:
            return jnp.concatenate([world, _unit(own) if name == "body_quat" else jnp.asarray(own)])

        put(name, [own], value)
    geoms = model.geoms
    put("geom_pos", [geoms.position], lambda: geoms.position)
    put("geom_quat", [geoms.orientation], lambda: _unit(geoms.orientation))


def _unit(quaternions: Any) -> Array:
    return jax.vmap(normalize)(jnp.asarray(quaternions))


def _put_joints(model: Model, engine: Engine, put: Put) -> None:
    joints, dofs = model.joints, joint_of_dof(model)
    for name, field in JOINT_FIELDS.items():
        if name != "jnt_actfrcrange":
            own = getattr(joints, field)
            put(name, [own], partial(jnp.asarray, own))
    for name, field in DOF_FIELDS.items():
        own = getattr(joints, field)
        put(name, [own], partial(_rows, own, dofs))
    limited = np.array(joints.force_limited, dtype=bool)[dofs, None]
    bounds = joints.force_range
    put("dof_actfrcrange", [bounds], lambda: jnp.where(limited, jnp.asarray(bounds)[dofs], NO_BOUNDS))
    scalar = [link for link in model.topology.links if link.joint >= 0 and link.kind.nq == 1]
    at, own_joint = (np.array([getattr(link, n) for link in scalar], dtype=int) for n in ("q_start", "joint"))
    for name, values in (("qpos0", joints.ref), ("qpos_spring", joints.springref)):
        base = engine.model.parameters[name]
        put(name, [values], partial(_with_rows, base, at, values, own_joint))


def _rows(values: Any, at: np.ndarray) -> Array:
    return jnp.asarray(values)[at]


def _with_rows(base: Any, at: np.ndarray, values: Any, rows: np.ndarray) -> Array:
    return jnp.asarray(base).at[at].set(_rows(values, rows))


def _put_pairs(model: Model, engine: Engine, put: Put) -> None:
    """Parameters of pairs of geoms, mixed as in MuJoCo; explicit pairs come first."""
    geoms, contacts, tables = model.geoms, model.contacts, engine.model.structure
    pairs = np.stack([tables["pair_geom1"], tables["pair_geom2"]], axis=1).astype(np.int32)
    count, explicit = len(pairs), len(contacts.names)

    def mixed(field: str, low: float = -np.inf) -> Array:
        own = np.where(np.arange(count) < explicit, np.arange(count), -1).astype(np.int32)
        zeros = np.zeros((count, 3, 3))
        slots = ContactSlots(pairs, own, zeros[:, 0, 0], zeros[:, 0], zeros, np.int32(0))  # type: ignore[arg-type]
        return jnp.maximum(getattr(contact_parameters(model, slots), field), low)

    def gap() -> Array:
        own = jnp.asarray(geoms.gap)
        both = own[pairs[:, 0]] + own[pairs[:, 1]]
        return both.at[:explicit].set(jnp.asarray(contacts.gap))

    if not count:
        return
    put("pair_friction", [geoms.friction, contacts.friction], lambda: mixed("friction", MIN_FRICTION))
    put("pair_margin", [geoms.margin, contacts.margin], lambda: mixed("margin"))
    put("pair_solref", [geoms.solref, contacts.solref, geoms.solmix], lambda: mixed("solref"))
    put("pair_solimp", [geoms.solimp, contacts.solimp, geoms.solmix], lambda: mixed("solimp"))
    put("pair_solreffriction", [contacts.solreffriction], lambda: mixed("solreffriction"))
    put("pair_gap", [geoms.gap, contacts.gap], gap)


def _put_tendons(model: Model, engine: Engine, put: Put) -> None:
    tendons, tables = model.tendons, engine.model.structure
    for name, field in TENDON_FIELDS.items():
        own = getattr(tendons, field)
        put(name, [own], partial(jnp.asarray, own))
    adr, num = tables["tendon_adr"], tables["tendon_num"]
    rows = np.concatenate([np.full(2, 0), *(np.full(n, k) for k, n in enumerate(num))]).astype(int)
    joints = np.maximum(tables["wrap_jntid"], 0)
    is_wrap = np.arange(len(rows)) >= (adr[0] if len(adr) else 2)
    base = engine.model.parameters["wrap_coef"]

    def coefficients() -> Array:
        return jnp.where(is_wrap, jnp.asarray(tendons.coefficients)[rows, joints], base)

    put("wrap_coef", [tendons.coefficients], coefficients)
    lengths = [tendons.coefficients, model.joints.ref] if tendons.names else []
    put("tendon_length0", lengths, lambda: tendon_lengths(model, reference_configuration(model)))


def _put_actuators(model: Model, engine: Engine, put: Put) -> None:
    own = model.actuators
    clamped = np.array(own.control_limited, dtype=bool)[:, None] & own.clamps_controls
    limited = np.array(own.force_limited, dtype=bool)[:, None]
    gain, by_state = jnp.asarray(own.gain)[:, None], jnp.asarray(own.gain_slope)
    put("actuator_gear", [own.gear], lambda: jnp.asarray(own.gear)[:, 0])
    put("actuator_ctrlrange", [own.control_range], lambda: jnp.where(clamped, own.control_range, NO_BOUNDS))
    put("actuator_forcerange", [own.force_range], lambda: jnp.where(limited, own.force_range, NO_BOUNDS))
    put("actuator_gainprm", [own.gain, own.gain_slope], lambda: jnp.concatenate([gain, by_state], axis=1))
    put("actuator_biasprm", [own.bias], lambda: own.bias)


def _put_weights(model: Model, engine: Engine, put: Put) -> None:
    """Inverse weights of constraints, computed once by a kernel of its own where inertias are traced."""
    bodies, joints = model.bodies, model.joints
    leaves = [
        *(bodies.mass, bodies.com, bodies.inertia, bodies.position, bodies.orientation),
        *(joints.position, joints.axis, joints.armature, joints.ref, model.tendons.coefficients),
    ]
    if not any(map(is_traced, leaves)):
        return
    weights: InverseWeights = call_native(inverse_weights, (model,), identity=inverse_weights)
    put("dof_invweight0", leaves, lambda: weights.dofs)
    put("body_invweight0", leaves, lambda: jnp.roll(weights.bodies, 1, axis=0))
    put("tendon_invweight0", leaves, lambda: weights.tendons)
