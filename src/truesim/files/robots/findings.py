"""Findings about features of a file that are not simulated, with one rule per feature of a compiled model."""

from collections.abc import Iterator

import mujoco
import numpy as np

from truesim.files.robots.compiled_constraints import simulated_equalities
from truesim.files.robots.supported import (
    is_disabled_actuator,
    is_simulated_sensor,
    simulated_actuators,
    simulated_tendons,
)
from truesim.physics.model.source import Finding

TRANSMISSIONS = {
    mujoco.mjtTrn.mjTRN_SLIDERCRANK: "a slider-crank",
    mujoco.mjtTrn.mjTRN_TENDON: "a tendon",
    mujoco.mjtTrn.mjTRN_SITE: "a site",
    mujoco.mjtTrn.mjTRN_BODY: "contacts of a body (adhesion)",
    mujoco.mjtTrn.mjTRN_SO3: "an orientation",
}
INTERPOLATIONS = ("zoh", "linear", "cubic")
"""MuJoCo's interpolations between delayed samples, by its enumeration."""


MAX_NAMES_SHOWN = 3
"""Number of names shown of a repeated finding; warnings show all."""


class Collector:
    """Collector of findings on reading a file; equal findings on several elements are merged."""

    def __init__(self) -> None:
        self.names: dict[tuple[str, str, str], list[str]] = {}

    def add(self, kind: str, name: str, message: str, severity: str = "not simulated") -> None:
        """Add a finding about the element of this kind ("joint") and name."""
        self.names.setdefault((kind, message, severity), []).append(name)

    def findings(self) -> tuple[Finding, ...]:
        """Findings, one per kind and message, in order of their first occurrence."""
        return tuple(
            Finding(_subject(kind, names, None if severity == "warning" else MAX_NAMES_SHOWN), message, severity)
            for (kind, message, severity), names in self.names.items()
        )


def _subject(kind: str, names: list[str], most: int | None) -> str:
    if len(names) == 1:
        return f"{kind} '{names[0]}'" if names[0] else kind
    different = [f"'{name}'" for name in dict.fromkeys(names) if name]
    shown = ", ".join([*different[:most], *(["…"] if len(different[:most]) < len(different) else [])])
    return f"{len(names)} x {kind}" + (f" ({shown})" if shown else "")


def find_unsimulated(m: mujoco.MjModel) -> tuple[Finding, ...]:
    """Findings about all features of the model that are not simulated, in the order of the file's sections."""
    rules = (_world, _joints, _contacts, _constraints, _actuators, _sensors)
    return tuple(Finding(subject, message) for rule in rules for subject, message in rule(m))


Findings = Iterator[tuple[str, str]]
"""Subject and message of each finding."""


def _name(m: mujoco.MjModel, kind: mujoco.mjtObj, i: int, word: str) -> str:
    return f"{word} '{mujoco.mj_id2name(m, kind, i) or i}'"


def _world(m: mujoco.MjModel) -> Findings:
    if m.opt.density or m.opt.viscosity:
        yield (
            "option",
            f"fluid of density {m.opt.density:g} and viscosity {m.opt.viscosity:g}: drag is not simulated",
        )
    if m.opt.integrator == mujoco.mjtIntegrator.mjINT_DISCRETE:
        yield (
            "option",
            "integrator 'discrete': its joint treatment of constraints is not simulated, ImplicitStiff runs instead",
        )
    if m.opt.enableflags & mujoco.mjtEnableBit.mjENBL_OVERRIDE and m.ngeom:
        yield "option", "contact override"
    if m.opt.enableflags & mujoco.mjtEnableBit.mjENBL_DIAGEXACT:
        yield (
            "option",
            "flag 'diagexact': soft constraints use the inverse weights at the reference configuration",
        )
    if m.opt.noslip_iterations:
        yield "option", f"{m.opt.noslip_iterations} noslip iterations after the solver"
    if m.opt.solver != mujoco.mjtSolver.mjSOL_NEWTON:
        yield "option", f"solver '{mujoco.mjtSolver(m.opt.solver).name.removeprefix('mjSOL_')}': Newton's method runs"
    if m.nflex:
        yield "flex", f"{m.nflex} deformable object(s)"
    if m.nplugin:
        yield "plugin", f"{m.nplugin} plugin instance(s)"
    if m.nmocap:
        yield "mocap", f"{m.nmocap} mocap body(ies) stay where the file puts them"


def _joints(m: mujoco.MjModel) -> Findings:
    for j in range(m.njnt):
        subject = _name(m, mujoco.mjtObj.mjOBJ_JOINT, j, "joint")
        d = m.jnt_dofadr[j]
        if np.any(m.jnt_stiffnesspoly[j]):
            yield subject, "quadratic and cubic stiffness; the linear part is simulated"
        if np.any(m.dof_dampingpoly[d]):
            yield subject, "quadratic and cubic damping; the linear part is simulated"
        if m.jnt_plasticadr[j] >= 0:
            yield subject, "plastic yield of the spring"


def _contacts(m: mujoco.MjModel) -> Findings:
    off = m.opt.disableflags & (mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    if off:
        return
    colliding = np.count_nonzero(m.geom_contype | m.geom_conaffinity)
    if colliding > 1 and np.any(np.bitwise_and.outer(m.geom_contype, m.geom_conaffinity)):
        yield "contact", f"{colliding} colliding geom(s): they touch only if the simulator is given a contact model"
    for i in range(m.npair):
        if m.pair_adhesion[i]:
            yield _name(m, mujoco.mjtObj.mjOBJ_PAIR, i, "contact pair"), "adhesion"
    if m.npair:
        yield (
            "contact",
            f"{m.npair} contact pair(s): they touch only if the simulator is given a contact model",
        )


def _constraints(m: mujoco.MjModel) -> Findings:
    simulated = simulated_equalities(m)
    for i in range(m.neq):
        kind = mujoco.mjtEq(m.eq_type[i]).name.removeprefix("mjEQ_").lower()
        only = " holds only if the simulator is given MujocoContact or RigidContact" if i in simulated else ""
        yield _name(m, mujoco.mjtObj.mjOBJ_EQUALITY, i, "equality"), f"{kind} constraint{only}"
    fixed = simulated_tendons(m)
    for i in range(m.ntendon):
        subject = _name(m, mujoco.mjtObj.mjOBJ_TENDON, i, "tendon")
        if i not in fixed:
            yield subject, "spatial tendon with its springs, limits and friction"
            continue
        if np.any(m.tendon_stiffnesspoly[i]) or np.any(m.tendon_dampingpoly[i]) or m.tendon_plasticadr[i] >= 0:
            yield subject, "nonlinear stiffness or damping; the linear part is simulated"
        if m.tendon_limited[i] or m.tendon_frictionloss[i]:
            yield subject, "limits and friction act only if the simulator is given MujocoContact"


def _actuators(m: mujoco.MjModel) -> Findings:
    simulated = simulated_actuators(m)
    for i in range(m.nactuator):
        subject = _name(m, mujoco.mjtObj.mjOBJ_ACTUATOR, i, "actuator")
        gain = mujoco.mjtGain(m.actuator_gaintype[i]).name.removeprefix("mjGAIN_").lower()
        bias = mujoco.mjtBias(m.actuator_biastype[i]).name.removeprefix("mjBIAS_").lower()
        dynamics = mujoco.mjtDyn(m.actuator_dyntype[i]).name.removeprefix("mjDYN_").lower()
        transmission = mujoco.mjtTrn(m.actuator_trntype[i])
        if is_disabled_actuator(m, i):
            yield subject, "its group is disabled: it is left out"
            continue
        if transmission in TRANSMISSIONS and i not in simulated:
            yield subject, f"acts on {TRANSMISSIONS[transmission]}: it is left out"
            continue
        if i not in simulated:
            yield subject, f"actuator model of gain '{gain}' and bias '{bias}': it is left out"
            continue
        if dynamics != "none":
            yield subject, f"activation dynamics '{dynamics}': the control acts at once"
        if m.actuator_delay[i] > 0:
            yield from _interpolation(subject, int(m.actuator_history[i, 1]))
        if m.actuator_damping[i] or np.any(m.actuator_dampingpoly[i]):
            yield subject, "damping of the actuator"
        if m.actuator_armature[i]:
            yield subject, "armature of the actuator"
        on_tendon = transmission == mujoco.mjtTrn.mjTRN_TENDON
        joint = None if on_tendon else mujoco.mjtJoint(m.jnt_type[m.actuator_trnid[i, 0]])
        if joint in (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL) and m.actuator_biasprm[i, 2]:
            yield (
                subject,
                "implicit treatment of the velocity gain on a joint with several degrees of freedom",
            )


def _sensors(m: mujoco.MjModel) -> Findings:
    for i in range(m.nsensor):
        subject = _name(m, mujoco.mjtObj.mjOBJ_SENSOR, i, "sensor")
        kind = mujoco.mjtSensor(m.sensor_type[i]).name.removeprefix("mjSENS_").lower()
        if not is_simulated_sensor(m, i):
            yield subject, f"sensor of kind '{kind}'"
            continue
        if m.sensor_interval[i].any():
            yield subject, "sampling interval of the sensor"
        if m.sensor_delay[i] > 0:
            yield from _interpolation(subject, int(m.sensor_history[i, 1]))


def _interpolation(subject: str, kind: int) -> Findings:
    """Finding about the interpolation of a delay; only linear interpolation is simulated."""
    if INTERPOLATIONS[kind] != "linear":
        yield subject, f"interpolation '{INTERPOLATIONS[kind]}' of its delay: linear acts instead"
