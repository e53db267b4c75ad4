"""Kinds of disturbances that a network could learn."""

import enum


class DisturbanceKind(enum.StrEnum):
    """Kind of a candidate; the text is used in tables and in `suggest.json`."""

    VISCOUS_DAMPING = "viscous damping"
    JOINT_FRICTION = "dry friction"
    LOADED_FRICTION = "friction under load"
    LINEAR_SPRING = "linear spring"
    SPRING = "spring"
    JOINT_LIMIT = "stop"
    GRAVITY_FACTOR = "gravity by a factor"
    CORIOLIS_FACTOR = "Coriolis forces by a factor"
    MOTOR_FACTOR = "motor torque by a factor"
    INERTIA_FACTOR = "mass and inertia by a factor"
    DRAG = "drag"
    LAG = "lag"
    MOTOR_CURVE = "motor curve"
    FRICTION_COEFFICIENT = "friction by another coefficient"
    CONTACT_FRICTION_FACTOR = "friction by a factor"
    CONTACT_FRICTION = "friction"
    NORMAL_FORCE = "normal force"
    ENCODER_ERROR = "encoder error"
