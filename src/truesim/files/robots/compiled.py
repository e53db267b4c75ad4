"""Conversion of a compiled MuJoCo model to a `Model`, one function per kind of element."""

import dataclasses
from typing import Any

import mujoco
import numpy as np

from truesim.files.robots.compiled_constraints import (
    compiled_contacts,
    compiled_equalities,
    compiled_tendons,
    simulated_equalities,
)
from truesim.files.robots.compiled_names import names_of
from truesim.files.robots.findings import find_unsimulated
from truesim.files.robots.frames import matrix_of_quaternion, six_numbers
from truesim.files.robots.supported import (
    INTEGRATOR_NAMES,
    JOINT_KINDS,
    OBJECT_KINDS,
    SENSOR_KINDS,
    is_simulated_sensor,
    simulated_actuators,
    simulated_tendons,
)
from truesim.physics.model.actuators import AFFINE, MODEL_FIELDS, Actuators
from truesim.physics.model.kinds import FIXED
from truesim.physics.model.model import COMPLIANT_DEFAULTS, Bodies, Geoms, Joints, Mesh, Model, Sites
from truesim.physics.model.sensors import Sensor, Sensors
from truesim.physics.model.source import Finding, Keyframe, SimulatedRows, SimulationDefaults, Source
from truesim.physics.model.structure import structure_of
from truesim.physics.model.topology import Link, Topology

DEFAULT_STRIBECK_VELOCITY = 0.1
"""Stribeck velocity of joints in a file, which has no stiction [rad/s or m/s]."""
UNCOLORED = (0.5, 0.5, 0.5, 1.0)
"""MuJoCo's color of a geom that has none of its own."""


def from_compiled(m: mujoco.MjModel, source: Source | None, findings: tuple[Finding, ...] = ()) -> Model:
    """Model of a compiled MuJoCo model; features that are not simulated are added to `findings`."""
    joints, actuators = _joints(m), _actuators(m)
    kinds = dict(zip(joints.names, joints.kinds, strict=True))
    model = Model(
        bodies=_bodies(m),
        joints=joints,
        actuators=actuators,
        sites=_sites(m),
        geoms=_geoms(m),
        contacts=compiled_contacts(m),
        equalities=compiled_equalities(m),
        tendons=compiled_tendons(m),
        sensors=_sensors(m, Sensors.of(_declared_sensors(m), kinds, actuators.joints)),
        gravity=_gravity(m),
        time_scale=np.ones(()),
        topology=_topology(m, joints),
        name=_model_name(m),
        defaults=_defaults(m),
        findings=findings + find_unsimulated(m),
        source=None if source is None else dataclasses.replace(source, compiled=m, rows=_simulated_rows(m)),
        keyframes=_keyframes(m),
    )
    return dataclasses.replace(model, structure=structure_of(model))


def _simulated_rows(m: mujoco.MjModel) -> SimulatedRows:
    return SimulatedRows(*(tuple(rows(m)) for rows in (simulated_actuators, simulated_tendons, simulated_equalities)))


def _bodies(m: mujoco.MjModel) -> Bodies:
    inertia = np.empty((m.nbody - 1, 6))
    for b in range(1, m.nbody):
        R = matrix_of_quaternion(m.body_iquat[b])
        inertia[b - 1] = six_numbers(R @ np.diag(m.body_inertia[b]) @ R.T)
    return Bodies(
        mass=m.body_mass[1:].copy(),
        com=m.body_ipos[1:].copy(),
        inertia=inertia,
        position=m.body_pos[1:].copy(),
        orientation=m.body_quat[1:].copy(),
        gravcomp=m.body_gravcomp[1:].copy(),
        names=names_of(m, mujoco.mjtObj.mjOBJ_BODY, m.nbody, "body", first=1),
        parents=tuple(int(p) - 1 for p in m.body_parentid[1:]),
    )


def _joints(m: mujoco.MjModel) -> Joints:
    kinds = tuple(JOINT_KINDS[mujoco.mjtJoint(t)] for t in m.jnt_type)
    dof, coordinate = m.jnt_dofadr, m.jnt_qposadr
    scalar = np.array([kind.nq == 1 for kind in kinds], dtype=bool)
    spring_off = bool(m.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_SPRING)
    damper_off = bool(m.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_DAMPER)
    return Joints(
        axis=m.jnt_axis.copy(),
        position=m.jnt_pos.copy(),
        damping=m.dof_damping[dof] * (not damper_off),
        frictionloss=m.dof_frictionloss[dof],
        stiction=np.zeros(m.njnt),
        stribeck_velocity=np.full(m.njnt, DEFAULT_STRIBECK_VELOCITY),
        load_friction=np.zeros(m.njnt),
        armature=m.dof_armature[dof],
        stiffness=m.jnt_stiffness * (not spring_off),
        springref=np.where(scalar, m.qpos_spring[coordinate], 0.0),
        ref=np.where(scalar, m.qpos0[coordinate], 0.0),
        range=m.jnt_range.copy(),
        margin=m.jnt_margin.copy(),
        force_range=m.jnt_actfrcrange.copy(),
        solreffriction=m.dof_solref[dof],
        solimpfriction=m.dof_solimp[dof],
        solreflimit=m.jnt_solref.copy(),
        solimplimit=m.jnt_solimp.copy(),
        names=names_of(m, mujoco.mjtObj.mjOBJ_JOINT, m.njnt, "joint"),
        kinds=kinds,
        bodies=tuple(int(b) - 1 for b in m.jnt_bodyid),
        limited=tuple(bool(x) for x in m.jnt_limited),
        force_limited=tuple(bool(x) for x in m.jnt_actfrclimited),
        actuator_gravcomp=tuple(bool(x) for x in m.jnt_actgravcomp),
    )


def _topology(m: mujoco.MjModel, joints: Joints) -> Topology:
    links: list[Link] = []
    body_link: list[int] = []
    for b in range(1, m.nbody):
        parent_body = int(m.body_parentid[b]) - 1
        parent = body_link[parent_body] if parent_body >= 0 else -1
        first, count = int(m.body_jntadr[b]), int(m.body_jntnum[b])
        own = range(first, first + count) if count else (-1,)
        for j in own:
            links.append(
                Link(
                    parent=parent,
                    body=b - 1,
                    joint=j,
                    kind=joints.kinds[j] if j >= 0 else FIXED,
                    q_start=int(m.jnt_qposadr[j]) if j >= 0 else 0,
                    v_start=int(m.jnt_dofadr[j]) if j >= 0 else 0,
                    first=j == own[0],
                    last=j == own[-1],
                )
            )
            parent = len(links) - 1
        body_link.append(parent)
    return Topology(tuple(links), m.nq, m.nv, tuple(body_link))


def _actuators(m: mujoco.MjModel) -> Actuators:
    """Simulated actuators; `find_unsimulated` lists the others."""
    kept = simulated_actuators(m)
    on_tendon = m.actuator_trntype[kept] == mujoco.mjtTrn.mjTRN_TENDON
    tendons = {old: new for new, old in enumerate(simulated_tendons(m))}
    names = names_of(m, mujoco.mjtObj.mjOBJ_ACTUATOR, m.nactuator, "actuator")
    controls, outputs = m.actuator_ctrladr[kept], m.actuator_outadr[kept]
    affine_gain = m.actuator_gaintype[kept] == mujoco.mjtGain.mjGAIN_AFFINE
    affine_bias = m.actuator_biastype[kept] == mujoco.mjtBias.mjBIAS_AFFINE
    return Actuators(
        delay=m.actuator_delay[kept],
        offset=np.zeros(len(kept)),
        gain=m.actuator_gainprm[kept, 0],
        gain_slope=m.actuator_gainprm[kept, 1:3] * affine_gain[:, None],
        bias=m.actuator_biasprm[kept, :3] * affine_bias[:, None],
        **{number: np.zeros(len(kept)) for number in MODEL_FIELDS},
        gear=m.actuator_gear[outputs].copy(),
        control_range=m.actuator_ctrlrange[controls].copy(),
        force_range=m.actuator_forcerange[kept].copy(),
        names=tuple(names[i] for i in kept),
        models=(AFFINE,) * len(kept),
        joints=tuple(-1 if tendon else int(m.actuator_trnid[i, 0]) for i, tendon in zip(kept, on_tendon, strict=True)),
        tendons=tuple(
            tendons[int(m.actuator_trnid[i, 0])] if tendon else -1 for i, tendon in zip(kept, on_tendon, strict=True)
        ),
        in_parent=tuple(bool(m.actuator_trntype[i] == mujoco.mjtTrn.mjTRN_JOINTINPARENT) for i in kept),
        control_limited=tuple(bool(m.actuator_ctrllimited[c]) for c in controls),
        force_limited=tuple(bool(m.actuator_forcelimited[i]) for i in kept),
        clamps_controls=not m.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL,
        enabled=bool(m.nactuator) and not m.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_ACTUATION,
    )


def _sites(m: mujoco.MjModel) -> Sites:
    return Sites(
        position=m.site_pos.copy(),
        orientation=m.site_quat.copy(),
        names=names_of(m, mujoco.mjtObj.mjOBJ_SITE, m.nsite, "site"),
        bodies=tuple(int(b) - 1 for b in m.site_bodyid),
    )


def _sensors(m: mujoco.MjModel, perfect: Sensors) -> Sensors:
    """Sensors with the delays of the file, equal for all channels of a sensor."""
    names = names_of(m, mujoco.mjtObj.mjOBJ_SENSOR, m.nsensor, "sensor")
    delays = [m.sensor_delay[names.index(sensor.name)] for sensor in perfect.declared for _ in sensor.channels]
    delay = np.concatenate([delays, np.zeros(sum(perfect.encoders))])
    return dataclasses.replace(perfect, delay=delay)


def _declared_sensors(m: mujoco.MjModel) -> tuple[Sensor, ...]:
    """Simulated sensors; `find_unsimulated` lists the others."""
    names = names_of(m, mujoco.mjtObj.mjOBJ_SENSOR, m.nsensor, "sensor")
    actuators = {old: new for new, old in enumerate(simulated_actuators(m))}
    sensors = []
    for i, name in enumerate(names):
        kind, objects = (
            SENSOR_KINDS.get(mujoco.mjtSensor(m.sensor_type[i])),
            OBJECT_KINDS.get(mujoco.mjtObj(m.sensor_objtype[i])),
        )
        if kind is None or objects is None or not is_simulated_sensor(m, i):
            continue
        reference = OBJECT_KINDS.get(mujoco.mjtObj(m.sensor_reftype[i])) if m.sensor_refid[i] >= 0 else None
        target = int(m.sensor_objid[i])
        sensors.append(
            Sensor(
                name=name,
                kind=kind,
                object_kind=objects,
                object=actuators[target] if objects == "actuator" else _shift(objects, target),
                reference_kind=reference,
                reference=_shift(reference, int(m.sensor_refid[i])) if reference else -1,
                cutoff=float(m.sensor_cutoff[i]),
            )
        )
    return tuple(sensors)


def _shift(kind: str, i: int) -> int:
    """Index of MuJoCo's object `i` in a `Model`, which does not count the world as a body."""
    return i - 1 if kind in ("body", "xbody") else i


def _geoms(m: mujoco.MjModel) -> Geoms:
    shapes = tuple(mujoco.mjtGeom(t).name.removeprefix("mjGEOM_").lower() for t in m.geom_type)
    return Geoms(
        position=m.geom_pos.copy(),
        orientation=m.geom_quat.copy(),
        size=m.geom_size.copy(),
        friction=m.geom_friction.copy(),
        restitution=np.zeros(m.ngeom),
        **{field: np.full(m.ngeom, value) for field, value in COMPLIANT_DEFAULTS.items()},
        margin=m.geom_margin.copy(),
        gap=m.geom_gap.copy(),
        solref=m.geom_solref.copy(),
        solimp=m.geom_solimp.copy(),
        solmix=m.geom_solmix.copy(),
        names=names_of(m, mujoco.mjtObj.mjOBJ_GEOM, m.ngeom, "geom"),
        bodies=tuple(int(b) - 1 for b in m.geom_bodyid),
        shapes=shapes,
        meshes=tuple(_mesh(m, i) if shapes[i] == "mesh" else None for i in range(m.ngeom)),
        contype=tuple(int(x) for x in m.geom_contype),
        conaffinity=tuple(int(x) for x in m.geom_conaffinity),
        condim=tuple(int(x) for x in m.geom_condim),
        priority=tuple(int(x) for x in m.geom_priority),
        colors=tuple(_color(m, i) for i in range(m.ngeom)),
    )


def _color(m: mujoco.MjModel, geom: int) -> tuple[float, ...]:
    """Color of a geom: its own, or that of its material where it has none of its own."""
    material = int(m.geom_matid[geom])
    own = m.geom_rgba[geom]
    rgba = m.mat_rgba[material] if material >= 0 and np.allclose(own, UNCOLORED) else own
    return tuple(float(c) for c in rgba)


def _mesh(m: mujoco.MjModel, geom: int) -> Mesh:
    i = int(m.geom_dataid[geom])
    vertices = slice(m.mesh_vertadr[i], m.mesh_vertadr[i] + m.mesh_vertnum[i])
    faces = slice(m.mesh_faceadr[i], m.mesh_faceadr[i] + m.mesh_facenum[i])
    name = mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_MESH, i) or f"mesh{i}"
    return Mesh(name, m.mesh_vert[vertices].copy(), m.mesh_face[faces].copy())


def _gravity(m: mujoco.MjModel) -> Any:
    return m.opt.gravity * (not m.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY)


def _defaults(m: mujoco.MjModel) -> SimulationDefaults:
    bits, off = mujoco.mjtDisableBit, m.opt.disableflags
    constraints = not off & bits.mjDSBL_CONSTRAINT
    return SimulationDefaults(
        timestep=float(m.opt.timestep),
        integrator=INTEGRATOR_NAMES[mujoco.mjtIntegrator(m.opt.integrator)],
        implicit_damping=not off & bits.mjDSBL_EULERDAMP,
        joint_friction=constraints and not off & bits.mjDSBL_FRICTIONLOSS,
        limits=constraints and not off & bits.mjDSBL_LIMIT,
        contact=constraints and not off & bits.mjDSBL_CONTACT,
        safe_reference=not off & bits.mjDSBL_REFSAFE,
        equality=constraints and not off & bits.mjDSBL_EQUALITY,
        warm_start=not off & bits.mjDSBL_WARMSTART,
        elliptic=m.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC,
        impratio=float(m.opt.impratio),
        iterations=int(m.opt.iterations),
        tolerance=float(m.opt.tolerance),
        line_search_iterations=int(m.opt.ls_iterations),
        line_search_tolerance=float(m.opt.ls_tolerance),
    )


def _keyframes(m: mujoco.MjModel) -> tuple[Keyframe, ...]:
    names = names_of(m, mujoco.mjtObj.mjOBJ_KEY, m.nkey, "keyframe")
    controls = m.actuator_ctrladr[simulated_actuators(m)]
    return tuple(
        Keyframe(name, m.key_qpos[i].copy(), m.key_qvel[i].copy(), m.key_ctrl[i, controls], float(m.key_time[i]))
        for i, name in enumerate(names)
    )


def _model_name(m: mujoco.MjModel) -> str:
    return m.names[: m.names.index(b"\0")].decode()
