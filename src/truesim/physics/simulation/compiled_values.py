"""Numbers of a simulator in MuJoCo's compiled model of its file, for the routines that read its tables."""

import copy
from typing import Any

import mujoco
import numpy as np

from truesim.core.tracing import is_traced
from truesim.physics.contact.models.mujoco import MujocoContact
from truesim.physics.dynamics.links import joint_of_dof
from truesim.physics.model.model import Model

BODY_FIELDS = {"body_mass": "mass", "body_ipos": "com", "body_pos": "position", "body_gravcomp": "gravcomp"}
JOINT_FIELDS = {
    "jnt_pos": "position",
    "jnt_axis": "axis",
    "jnt_range": "range",
    "jnt_margin": "margin",
    "jnt_stiffness": "stiffness",
    "jnt_actfrcrange": "force_range",
    "jnt_solref": "solreflimit",
    "jnt_solimp": "solimplimit",
}
DOF_FIELDS = {
    "dof_damping": "damping",
    "dof_armature": "armature",
    "dof_frictionloss": "frictionloss",
    "dof_solref": "solreffriction",
    "dof_solimp": "solimpfriction",
}
GEOM_FIELDS = {
    "geom_pos": "position",
    "geom_friction": "friction",
    "geom_margin": "margin",
    "geom_gap": "gap",
    "geom_solref": "solref",
    "geom_solimp": "solimp",
    "geom_solmix": "solmix",
}
PAIR_FIELDS = {
    "pair_friction": "friction",
    "pair_margin": "margin",
    "pair_gap": "gap",
    "pair_solref": "solref",
    "pair_solreffriction": "solreffriction",
    "pair_solimp": "solimp",
}
TENDON_FIELDS = {
    "tendon_stiffness": "stiffness",
    "tendon_lengthspring": "spring_length",
    "tendon_damping": "damping",
    "tendon_frictionloss": "frictionloss",
    "tendon_range": "range",
    "tendon_margin": "margin",
    "tendon_solref_fri": "solreffriction",
    "tendon_solimp_fri": "solimpfriction",
    "tendon_solref_lim": "solreflimit",
    "tendon_solimp_lim": "solimplimit",
}
"""MuJoCo's arrays and the fields of the model that they hold."""
INERTIAL = ("body_mass", "body_ipos", "body_pos", "body_quat", "body_inertia", "jnt_pos", "jnt_axis", "dof_armature")
"""Arrays on which inverse weights depend."""


MOVING_BODIES = slice(1, None)
"""Rows of bodies without the world."""


class CompiledValues:
    """Copy of a compiled model into which changed values are written."""

    def __init__(self, compiled: mujoco.MjModel):
        self.model = copy.copy(compiled)
        self.changed: set[str] = set()

    def write(self, name: str, value: Any, rows: Any = slice(None)) -> None:
        """Write rows of an array, if they differ; traced values are left as in the file."""
        if is_traced(value):
            return
        array, value = getattr(self.model, name), np.asarray(value, float)
        if not np.array_equal(array[rows], value):
            array[rows] = value
            self.changed.add(name)


def compiled_values(model: Model, timestep: Any, contact: MujocoContact) -> mujoco.MjModel:
    """MuJoCo's compiled model of the file, with the values of the model, the time step and the contact model."""
    assert model.source is not None, "the caller checks"
    values = CompiledValues(model.source.compiled)
    m, dofs = values.model, joint_of_dof(model)
    for name, field in BODY_FIELDS.items():
        values.write(name, getattr(model.bodies, field), MOVING_BODIES)
    if not is_traced(model.bodies.orientation):
        values.write("body_quat", _unit(model.bodies.orientation), MOVING_BODIES)
    if not is_traced(model.bodies.inertia):
        _write_inertias(values, model)
    for name, field in JOINT_FIELDS.items():
        values.write(name, getattr(model.joints, field))
    for name, field in DOF_FIELDS.items():
        own = getattr(model.joints, field)
        if not is_traced(own):
            values.write(name, np.asarray(own)[dofs])
    for link in model.topology.links:
        if link.joint >= 0 and link.kind.nq == 1:
            for array, own in ((m.qpos0, model.joints.ref), (m.qpos_spring, model.joints.springref)):
                if not is_traced(own):
                    array[link.q_start] = own[link.joint]
    for group, fields in ((model.geoms, GEOM_FIELDS), (model.contacts, PAIR_FIELDS)):
        for name, field in fields.items():
            values.write(name, getattr(group, field))
    for name, field in TENDON_FIELDS.items():
        values.write(name, getattr(model.tendons, field), list(model.source.rows.tendons))
    if not is_traced(model.geoms.orientation):
        values.write("geom_quat", _unit(model.geoms.orientation))
    _write_actuators(values, model)
    _write_options(values, model, timestep, contact)
    if values.changed & set(INERTIAL):
        mujoco.mj_setConst(m, mujoco.MjData(m))
    return m


def _write_options(values: CompiledValues, model: Model, timestep: Any, contact: MujocoContact) -> None:
    m = values.model
    if not is_traced(model.gravity):
        m.opt.gravity[:] = model.gravity
    if not is_traced(timestep):
        m.opt.timestep = float(timestep)
    if not is_traced(contact.impratio):
        m.opt.impratio = float(contact.impratio)
    solver = contact.solver
    m.opt.iterations, m.opt.tolerance = solver.iterations, solver.tolerance
    m.opt.ls_iterations, m.opt.ls_tolerance = solver.line_search_points, solver.line_search_tolerance


def _unit(quaternions: Any) -> np.ndarray:
    quaternions = np.asarray(quaternions, float)
    length = np.linalg.norm(quaternions, axis=1, keepdims=True)
    return np.where(np.abs(length - 1) < 1e-12, quaternions, quaternions / length)


def _write_inertias(values: CompiledValues, model: Model) -> None:
    """Write principal moments and axes of the bodies whose inertia differs."""
    m = values.model
    for b, six in enumerate(np.asarray(model.bodies.inertia, float)):
        nine = np.zeros(9)
        mujoco.mju_quat2Mat(nine, m.body_iquat[b + 1])
        R = nine.reshape(3, 3)
        I = np.array([[six[0], six[3], six[4]], [six[3], six[1], six[5]], [six[4], six[5], six[2]]])
        if np.allclose(R @ np.diag(m.body_inertia[b + 1]) @ R.T, I, rtol=1e-13, atol=1e-13 * np.abs(I).max()):
            continue
        moments, axes = np.linalg.eigh(I)
        axes[:, 2] *= np.sign(np.linalg.det(axes))
        m.body_inertia[b + 1] = moments
        mujoco.mju_mat2Quat(m.body_iquat[b + 1], np.ascontiguousarray(axes).ravel())
        values.changed.add("body_inertia")


def _write_actuators(values: CompiledValues, model: Model) -> None:
    assert model.source is not None, "the caller checks"
    m, actuators, rows = values.model, model.actuators, np.array(model.source.rows.actuators, dtype=int)
    affine_gain, affine_bias = (t[rows] == 1 for t in (m.actuator_gaintype, m.actuator_biastype))
    if not is_traced(actuators.gain):
        m.actuator_gainprm[rows, 0] = actuators.gain
    if not is_traced(actuators.gain_slope):
        m.actuator_gainprm[rows[affine_gain], 1:3] = np.asarray(actuators.gain_slope)[affine_gain]
    if not is_traced(actuators.bias):
        m.actuator_biasprm[rows[affine_bias], :3] = np.asarray(actuators.bias)[affine_bias]
    values.write("actuator_gear", actuators.gear, rows)
    values.write("actuator_ctrlrange", actuators.control_range, rows)
    values.write("actuator_forcerange", actuators.force_range, rows)
