"""Free parameters of the servo, and their accepted errors."""

FREE = {
    "armature": "joints/joint.armature",
    "viscous": "joints/joint.damping",
    "coulomb": "joints/joint.frictionloss",
    "bias": "sensors/qpos/joint.bias",
    "delay": "actuators/servo.delay",
}
STEP = 0.5e-3
"""Step of the simulator in the fit [s]."""
ALLOWED = {"bias": 2e-3, "delay": 0.5e-3}
"""Largest accepted errors [rad, s]; 5 % for the others."""


def allowed(name: str, truth: float) -> float:
    """Largest accepted error of a parameter."""
    return ALLOWED.get(name, 0.05 * abs(truth))
