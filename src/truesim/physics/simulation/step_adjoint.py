"""Reverse derivative of one step of the routines: a kernel at known accelerations, contact points and adjoint vectors.

`routines/adjoint.py` solves the linear systems of the implicit function theorem; what is left is the derivative of one
scalar, which JAX differentiates and `native` compiles once for a robot and a number of contact slots.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.typing import Array, Float
from truesim.physics.constraints.contact_work import ContactOptions, contact_work
from truesim.physics.constraints.weights import InverseWeights
from truesim.physics.contact.models.mujoco import MujocoContact
from truesim.physics.dynamics import bias_forces, integrate, inverse_dynamics
from truesim.physics.dynamics.links import per_dof
from truesim.physics.routines.adjoint import ADJOINT_SLOT_NUMBERS, SlotNumber
from truesim.physics.routines.engine import Engine
from truesim.physics.simulation.compiled_values import BODY_FIELDS, DOF_FIELDS, JOINT_FIELDS, TENDON_FIELDS
from truesim.physics.simulation.equation_of_motion import Constants, EquationOfMotion
from truesim.physics.simulation.integrators import Implicit, ImplicitFast
from truesim.physics.simulation.integrators.implicit import standalone_free_links
from truesim.physics.simulation.simulator import Simulator

OF_SLOTS = ("pair_friction", "pair_margin", "pair_solref", "pair_solreffriction", "pair_solimp")
"""Tables whose values the contact slots hold."""
WITHOUT_DERIVATIVE = ("timestep", "geom_pos", "geom_quat", "wrap_coef", "tendon_length0", "pair_gap")
"""Tables by which the routines do not differentiate."""
Tables = Mapping[str, Any]


class StepNumbers(NamedTuple):
    """Numbers of one step that the kernel holds fixed."""

    solved: Float[Array, " nv"]
    """Acceleration of the constraint solver, a."""
    integrated: Float[Array, " nv"]
    """Acceleration of the integrator, b."""
    y: Float[Array, " nv"]
    z: Float[Array, " nv"]


def compile_pullback_of_step(
    simulator: Simulator, engine: Engine, names: tuple[str, ...], moving: tuple[str, ...], slots: int
) -> native.Kernel:
    """Kernel from `(tables, q, v, u, numbers, slots)` to cotangents of `([dq, v, u], moving tables, slot columns)`.

    Args:
        simulator: Simulator whose values the tables replace.
        engine: Its engine.
        names: Tables that are inputs.
        moving: Those to differentiate by.
        slots: Number of contact slots.
    """
    nq, nv, nu = (engine.sizes[name] for name in ("nq", "nv", "nu"))
    held = slot_columns(moving)

    def pull(tables: Tables, q: Array, v: Array, u: Array, numbers: StepNumbers, contacts: Array) -> Any:
        def scalar(dq: Array, v: Array, u: Array, own: Tables, columns: Array) -> Array:
            known = {**tables, **own}
            state = integrate(simulator.model, q, dq), v, u
            slots = jnp.asarray(contacts).at[:, held].set(columns) if held.size else contacts
            return adjoint_scalar(simulator, engine, known, state, numbers, slots)

        at = (jnp.zeros(nv), v, u, {name: tables[name] for name in moving}, contacts[:, held])
        of_state, rest = 3, (3, 4) if held.size else (3,)
        found = jax.grad(scalar, (*range(of_state), *rest))(*at)
        return jnp.concatenate(found[:of_state]), *found[of_state:]

    def zeros(*shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, engine.dtype)

    numbers = StepNumbers(*(zeros(nv) for _ in range(4)))
    tables = {name: zeros(*engine.model.shape(name)) for name in names}
    return native.compile(pull, tables, zeros(nq), zeros(nv), zeros(nu), numbers, zeros(slots, ADJOINT_SLOT_NUMBERS))


def slot_columns(moving: Sequence[str]) -> np.ndarray:
    """Columns of a contact slot that hold values of these tables, in increasing order."""
    widths = {"pair_friction": 5, "pair_margin": 1, "pair_solref": 2, "pair_solreffriction": 2, "pair_solimp": 5}
    starts = {name: int(SlotNumber[name.removeprefix("pair_").upper()]) for name in OF_SLOTS if name in moving}
    found = [np.arange(start, start + widths[name]) for name, start in starts.items()]
    if "body_invweight0" in moving:
        found.append(np.array([SlotNumber.WEIGHT]))
    return np.sort(np.concatenate([np.zeros(0, int), *found]))


def adjoint_scalar(
    simulator: Simulator,
    engine: Engine,
    tables: Tables,
    state: tuple[Array, Array, Array],
    numbers: StepNumbers,
    contacts: Array,
) -> Float[Array, ""]:
    """`z' (tau + J' f) + (y - z)' (M a + c) - y' ((M + h D) b + c)` with fixed a, b, y and z."""
    q, v, u = state
    simulator, weights = with_tables(simulator, engine, tables)
    model, contact, h = simulator.model, simulator.contact, simulator.timestep
    assert isinstance(contact, MujocoContact), "the routines simulate no other"
    a, b, y, z = numbers.solved, numbers.integrated, numbers.y, numbers.z
    equation = simulator.equation(u, Constants(None, None, weights))
    applied = equation.applied(q, v)
    joints = simulator.joint_model.rows(model, weights.dofs, (q, v), h)
    rows, _ = dataclasses.replace(contact, slots=0).constraints(model, weights, (q, v), h, joints)
    force = rows.generalized(rows.forces(rows.deviations(a)))
    work = z @ (applied + force) + (y - z) @ inverse_dynamics(model, q, v, a) - y @ inverse_dynamics(model, q, v, b)
    if contacts.shape[0]:
        shortest = 2 * h if contact.safe_reference else jnp.zeros(())
        options = ContactOptions(contact.elliptic, contact.impratio, shortest)
        work = work + contact_work(model, q, (a, v, z), contacts, options)
    return work - h * _damped(simulator, equation, (q, v), b, y)


def _damped(simulator: Simulator, equation: EquationOfMotion, state: tuple, b: Array, y: Array) -> Array:
    """`y' D b` of the integrator."""
    model, (q, v) = simulator.model, state
    if not isinstance(simulator.integrator, Implicit | ImplicitFast):
        damping = per_dof(model, model.joints.damping)
        return y @ (damping * b) if getattr(simulator.integrator, "implicit_damping", False) else jnp.zeros(())
    D = equation.damping(q, v)
    total = y @ (D * b if D.ndim == 1 else D @ b)
    if isinstance(simulator.integrator, Implicit):
        return total + y @ jax.jvp(lambda v: bias_forces(model, q, v), (v,), (b,))[1]
    for link in standalone_free_links(model):
        own = jnp.zeros_like(b).at[link.v].set(b[link.v])
        total = total + y[link.v] @ jax.jvp(lambda v: bias_forces(model, q, v), (v,), (own,))[1][link.v]
    return total


def with_tables(simulator: Simulator, engine: Engine, tables: Tables) -> tuple[Simulator, InverseWeights]:
    """The simulator with the values of tables, and the inverse weights among them."""
    model, base = simulator.model, engine.model.parameters
    links = {link.joint: link for link in model.topology.links if link.joint >= 0}
    order = [links[j] for j in range(len(model.joints.names))]
    first_dof, first_q = (np.array([getattr(link, n) for link in order], dtype=int) for n in ("v_start", "q_start"))
    bodies = {field: tables[name][1:] for name, field in BODIES.items() if name in tables}
    joints = {field: tables[name] for name, field in JOINT_FIELDS.items() if name in tables}
    joints |= {field: tables[name][first_dof] for name, field in DOF_FIELDS.items() if name in tables}
    joints |= {
        f: tables[name][first_q] for name, f in (("qpos0", "ref"), ("qpos_spring", "springref")) if name in tables
    }
    if "dof_actfrcrange" in tables:
        joints["force_range"] = tables["dof_actfrcrange"][first_dof]
    tendons = {field: tables[name] for name, field in TENDON_FIELDS.items() if name in tables}
    groups = {"bodies": bodies, "joints": joints, "tendons": tendons, "actuators": _actuators(model, tables)}
    changed: dict[str, Any] = {
        group: dataclasses.replace(getattr(model, group), **fields) for group, fields in groups.items() if fields
    }
    if "gravity" in tables:
        changed["gravity"] = tables["gravity"]
    model = dataclasses.replace(model, **changed)
    contact: Any = simulator.contact
    if "impratio" in tables:
        contact = dataclasses.replace(contact, impratio=tables["impratio"][0])
    timestep = tables["timestep"][0] if "timestep" in tables else simulator.timestep

    def weight(name: str) -> Array:
        return jnp.asarray(tables.get(name, base[name]))

    weights = InverseWeights(
        weight("dof_invweight0"), jnp.roll(weight("body_invweight0"), -1, axis=0), weight("tendon_invweight0")
    )
    return dataclasses.replace(simulator, model=model, contact=contact, timestep=timestep), weights


BODIES = {**BODY_FIELDS, "body_inertia": "inertia", "body_quat": "orientation"}


def _actuators(model: Any, tables: Tables) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "actuator_gear" in tables:
        found["gear"] = jnp.asarray(model.actuators.gear).at[:, 0].set(tables["actuator_gear"])
    if "actuator_gainprm" in tables:
        found["gain"], found["gain_slope"] = tables["actuator_gainprm"][:, 0], tables["actuator_gainprm"][:, 1:]
    for name, field in (
        ("actuator_biasprm", "bias"),
        ("actuator_ctrlrange", "control_range"),
        ("actuator_forcerange", "force_range"),
    ):
        if name in tables:
            found[field] = tables[name]
    return found
