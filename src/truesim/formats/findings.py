"""What a file holds that we do not simulate: collected while reading, and one rule per feature of a compiled model."""

from collections.abc import Iterator

import mujoco
import numpy as np

from truesim.formats.compiled_constraints import simulated_equalities
from truesim.formats.supported import sensor_simulated, simulated_actuators
from truesim.model.source import Finding

TRANSMISSIONS = {
    mujoco.mjtTrn.mjTRN_SLIDERCRANK: "a slider-crank",
    mujoco.mjtTrn.mjTRN_TENDON: "a tendon",
    mujoco.mjtTrn.mjTRN_SITE: "a site",
    mujoco.mjtTrn.mjTRN_BODY: "contacts of a body (adhesion)",
    mujoco.mjtTrn.mjTRN_SO3: "an orientation",
}
INTERPOLATIONS = ("zoh", "linear", "cubic")
"""How MuJoCo interpolates between delayed samples, by its own number."""


SHOWN = 3
"""So many names of a repeated finding are shown; of a warning, all."""


class Collector:
    """Gathers what is found while reading a file; the same thing found on many elements becomes one finding."""

    def __init__(self) -> None:
        self.names: dict[tuple[str, str, str], list[str]] = {}

    def add(self, kind: str, name: str, message: str, severity: str = "not simulated") -> None:
        """Note something about the element of this kind ("joint") and name."""
        self.names.setdefault((kind, message, severity), []).append(name)

    def findings(self) -> tuple[Finding, ...]:
        """One finding per kind and message, in the order in which they were first met."""
        return tuple(
            Finding(_subject(kind, names, None if severity == "warning" else SHOWN), message, severity)
            for (kind, message, severity), names in self.names.items()
        )


def _subject(kind: str, names: list[str], most: int | None) -> str:
    if len(names) == 1:
        return f"{kind} '{names[0]}'" if names[0] else kind
    different = [f"'{name}'" for name in dict.fromkeys(names) if name]
    shown = ", ".join([*different[:most], *(["…"] if len(different[:most]) < len(different) else [])])
    return f"{len(names)} x {kind}" + (f" ({shown})" if shown else "")


def find_unsimulated(m: mujoco.MjModel) -> tuple[Finding, ...]:
    """Everything in the model that the simulation leaves out, in the order of the file's sections."""
    rules = (_world, _bodies, _joints, _contacts, _constraints, _actuators, _sensors)
    return tuple(Finding(subject, message) for rule in rules for subject, message in rule(m))


Found = Iterator[tuple[str, str]]


def _name(m: mujoco.MjModel, kind: mujoco.mjtObj, i: int, word: str) -> str:
    return f"{word} '{mujoco.mj_id2name(m, kind, i) or i}'"


def _world(m: mujoco.MjModel) -> Found:
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
    if m.opt.disableactuator:
        yield "option", "disabled actuator groups: all actuators are simulated"
    if m.opt.enableflags & mujoco.mjtEnableBit.mjENBL_OVERRIDE and m.ngeom:
        yield "option", "contact override"
    if m.opt.enableflags & mujoco.mjtEnableBit.mjENBL_DIAGEXACT:
        yield (
            "option",
            "flag 'diagexact': soft constraints use the inverse weights at the reference configuration",
        )
    if m.nflex:
        yield "flex", f"{m.nflex} deformable object(s)"
    if m.nplugin:
        yield "plugin", f"{m.nplugin} plugin instance(s)"
    if m.nmocap:
        yield "mocap", f"{m.nmocap} mocap body(ies) stay where the file puts them"


def _bodies(m: mujoco.MjModel) -> Found:
    for b in np.flatnonzero(m.body_gravcomp).tolist():
        yield _name(m, mujoco.mjtObj.mjOBJ_BODY, b, "body"), f"gravity compensation of {m.body_gravcomp[b]:g}"


def _joints(m: mujoco.MjModel) -> Found:
    for j in range(m.njnt):
        subject = _name(m, mujoco.mjtObj.mjOBJ_JOINT, j, "joint")
        d = m.jnt_dofadr[j]
        if np.any(m.jnt_stiffnesspoly[j]):
            yield subject, "quadratic and cubic stiffness; the linear part is simulated"
        if np.any(m.dof_dampingpoly[d]):
            yield subject, "quadratic and cubic damping; the linear part is simulated"
        if m.jnt_plasticadr[j] >= 0:
            yield subject, "plastic yield of the spring"
        if m.jnt_actgravcomp[j]:
            yield subject, "gravity compensation by the actuator"


def _contacts(m: mujoco.MjModel) -> Found:
    off = m.opt.disableflags & (mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    if off:
        return
    colliding = np.count_nonzero(m.geom_contype | m.geom_conaffinity)
    if colliding > 1 and np.any(np.bitwise_and.outer(m.geom_contype, m.geom_conaffinity)):
        yield "contact", f"{colliding} colliding geom(s): they touch only if the simulator is given a contact law"
    if m.npair:
        yield "contact", f"{m.npair} explicit contact pair(s): they touch only if the simulator is given a contact law"


def _constraints(m: mujoco.MjModel) -> Found:
    simulated = simulated_equalities(m)
    for i in range(m.neq):
        kind = mujoco.mjtEq(m.eq_type[i]).name.removeprefix("mjEQ_").lower()
        only = " holds only if the simulator is given ContactComplementarity" if i in simulated else ""
        yield _name(m, mujoco.mjtObj.mjOBJ_EQUALITY, i, "equality"), f"{kind} constraint{only}"
    for i in range(m.ntendon):
        yield (
            _name(m, mujoco.mjtObj.mjOBJ_TENDON, i, "tendon"),
            "tendon with its springs, limits and friction",
        )


def _actuators(m: mujoco.MjModel) -> Found:
    simulated = simulated_actuators(m)
    for i in range(m.nactuator):
        subject = _name(m, mujoco.mjtObj.mjOBJ_ACTUATOR, i, "actuator")
        gain = mujoco.mjtGain(m.actuator_gaintype[i]).name.removeprefix("mjGAIN_").lower()
        bias = mujoco.mjtBias(m.actuator_biastype[i]).name.removeprefix("mjBIAS_").lower()
        dynamics = mujoco.mjtDyn(m.actuator_dyntype[i]).name.removeprefix("mjDYN_").lower()
        transmission = mujoco.mjtTrn(m.actuator_trntype[i])
        if transmission in TRANSMISSIONS:
            yield subject, f"acts on {TRANSMISSIONS[transmission]}: it is left out"
            continue
        if i not in simulated:
            yield subject, f"law of gain '{gain}' and bias '{bias}': it is left out"
            continue
        if dynamics != "none":
            yield subject, f"activation dynamics '{dynamics}': the control acts at once"
        if m.actuator_delay[i] > 0:
            yield from _interpolation(subject, m.actuator_history[i, 1])
        if m.actuator_damping[i] or np.any(m.actuator_dampingpoly[i]):
            yield subject, "damping of the actuator"
        if m.actuator_armature[i]:
            yield subject, "armature of the actuator"
        joint = mujoco.mjtJoint(m.jnt_type[m.actuator_trnid[i, 0]])
        if joint in (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL) and m.actuator_biasprm[i, 2]:
            yield (
                subject,
                "implicit treatment of the velocity gain on a joint with several degrees of freedom",
            )


def _sensors(m: mujoco.MjModel) -> Found:
    for i in range(m.nsensor):
        subject = _name(m, mujoco.mjtObj.mjOBJ_SENSOR, i, "sensor")
        kind = mujoco.mjtSensor(m.sensor_type[i]).name.removeprefix("mjSENS_").lower()
        if not sensor_simulated(m, i):
            yield subject, f"sensor of kind '{kind}'"
            continue
        if m.sensor_interval[i].any():
            yield subject, "sampling interval of the sensor"
        if m.sensor_delay[i] > 0:
            yield from _interpolation(subject, m.sensor_history[i, 1])


def _interpolation(subject: str, kind: int) -> Found:
    """Delays interpolate linearly."""
    if INTERPOLATIONS[kind] != "linear":
        yield subject, f"interpolation '{INTERPOLATIONS[kind]}' of its delay: linear acts instead"
