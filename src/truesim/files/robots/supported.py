"""Kinds of MuJoCo's elements that are simulated, with their names."""

import mujoco
import numpy as np

from truesim.physics.model.kinds import BALL, FREE, HINGE, SLIDE, AbstractJointKind

JOINT_KINDS: dict[mujoco.mjtJoint, AbstractJointKind] = {
    mujoco.mjtJoint.mjJNT_FREE: FREE,
    mujoco.mjtJoint.mjJNT_BALL: BALL,
    mujoco.mjtJoint.mjJNT_SLIDE: SLIDE,
    mujoco.mjtJoint.mjJNT_HINGE: HINGE,
}
INTEGRATOR_NAMES = {
    mujoco.mjtIntegrator.mjINT_EULER: "Euler",
    mujoco.mjtIntegrator.mjINT_RK4: "RK4",
    mujoco.mjtIntegrator.mjINT_IMPLICIT: "implicit",
    mujoco.mjtIntegrator.mjINT_IMPLICITFAST: "implicitfast",
    mujoco.mjtIntegrator.mjINT_DISCRETE: "discrete",
}
JOINT_TRANSMISSIONS = (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT)
SCALAR_JOINTS = (mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE)
SENSOR_KINDS = {
    mujoco.mjtSensor.mjSENS_JOINTPOS: "jointpos",
    mujoco.mjtSensor.mjSENS_JOINTVEL: "jointvel",
    mujoco.mjtSensor.mjSENS_BALLQUAT: "ballquat",
    mujoco.mjtSensor.mjSENS_BALLANGVEL: "ballangvel",
    mujoco.mjtSensor.mjSENS_JOINTACTFRC: "jointactuatorfrc",
    mujoco.mjtSensor.mjSENS_ACTUATORPOS: "actuatorpos",
    mujoco.mjtSensor.mjSENS_ACTUATORVEL: "actuatorvel",
    mujoco.mjtSensor.mjSENS_ACTUATORFRC: "actuatorfrc",
    mujoco.mjtSensor.mjSENS_FRAMEPOS: "framepos",
    mujoco.mjtSensor.mjSENS_FRAMEQUAT: "framequat",
    mujoco.mjtSensor.mjSENS_FRAMEXAXIS: "framexaxis",
    mujoco.mjtSensor.mjSENS_FRAMEYAXIS: "frameyaxis",
    mujoco.mjtSensor.mjSENS_FRAMEZAXIS: "framezaxis",
    mujoco.mjtSensor.mjSENS_FRAMELINVEL: "framelinvel",
    mujoco.mjtSensor.mjSENS_FRAMEANGVEL: "frameangvel",
    mujoco.mjtSensor.mjSENS_VELOCIMETER: "velocimeter",
    mujoco.mjtSensor.mjSENS_GYRO: "gyro",
    mujoco.mjtSensor.mjSENS_ACCELEROMETER: "accelerometer",
}
OBJECT_KINDS = {
    mujoco.mjtObj.mjOBJ_JOINT: "joint",
    mujoco.mjtObj.mjOBJ_ACTUATOR: "actuator",
    mujoco.mjtObj.mjOBJ_BODY: "body",
    mujoco.mjtObj.mjOBJ_XBODY: "xbody",
    mujoco.mjtObj.mjOBJ_GEOM: "geom",
    mujoco.mjtObj.mjOBJ_SITE: "site",
}


def simulated_tendons(m: mujoco.MjModel) -> list[int]:
    """Indices of the fixed tendons: those whose path consists of hinges and slides alone."""
    joints = mujoco.mjtWrap.mjWRAP_JOINT
    return [
        i
        for i in range(m.ntendon)
        if np.all(m.wrap_type[m.tendon_adr[i] : m.tendon_adr[i] + m.tendon_num[i]] == joints)
    ]


def simulated_actuators(m: mujoco.MjModel) -> list[int]:
    """Indices of enabled actuators on a joint or fixed tendon, with one control, fixed or affine gain and bias."""
    tendons = simulated_tendons(m)
    gains = (mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtGain.mjGAIN_AFFINE)
    biases = (mujoco.mjtBias.mjBIAS_NONE, mujoco.mjtBias.mjBIAS_AFFINE)
    return [
        i
        for i in range(m.nactuator)
        if (
            mujoco.mjtTrn(m.actuator_trntype[i]) in JOINT_TRANSMISSIONS
            or (m.actuator_trntype[i] == mujoco.mjtTrn.mjTRN_TENDON and int(m.actuator_trnid[i, 0]) in tendons)
        )
        and mujoco.mjtGain(m.actuator_gaintype[i]) in gains
        and mujoco.mjtBias(m.actuator_biastype[i]) in biases
        and m.actuator_ctrlnum[i] == 1
        and not is_disabled_actuator(m, i)
    ]


def is_disabled_actuator(m: mujoco.MjModel, i: int) -> bool:
    """True if the file disables the group of actuator `i`."""
    return bool(m.opt.disableactuator & (1 << int(m.actuator_group[i])))


def is_simulated_sensor(m: mujoco.MjModel, i: int) -> bool:
    """True if sensor `i` is simulated."""
    if mujoco.mjtSensor(m.sensor_type[i]) not in SENSOR_KINDS:
        return False
    if mujoco.mjtObj(m.sensor_objtype[i]) not in OBJECT_KINDS:
        return False
    if m.sensor_refid[i] >= 0 and mujoco.mjtObj(m.sensor_reftype[i]) not in OBJECT_KINDS:
        return False
    oriented = SENSOR_KINDS[mujoco.mjtSensor(m.sensor_type[i])] in (
        "framequat",
        "framexaxis",
        "frameyaxis",
        "framezaxis",
    )
    inertial = mujoco.mjtObj.mjOBJ_BODY
    if (oriented and m.sensor_objtype[i] == inertial) or (m.sensor_refid[i] >= 0 and m.sensor_reftype[i] == inertial):
        return False  # principal axes: an orientation that inertia alone does not fix
    if m.sensor_objtype[i] == mujoco.mjtObj.mjOBJ_ACTUATOR:
        return int(m.sensor_objid[i]) in simulated_actuators(m)
    return True
