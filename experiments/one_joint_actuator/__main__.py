"""Recovers friction, armature, encoder bias and delay of a servo from one chirp of 20 s at 400 Hz.

`python -m experiments.one_joint_actuator`. The data is made with MuJoCo at 20 kHz, the fit simulates at 2 kHz. At the
log's own 400 Hz the integrator, of first order, is half a step ahead of the truth, and the delay would come out 1.2 ms
longer.
"""

import jax
import numpy as np

from experiments.one_joint_actuator.machine import START, TRUTH, recorded, robot
from experiments.recorded import show
from truesim.data import Log
from truesim.formats import loads
from truesim.identify.api import identify
from truesim.identify.result import Fit

FREE = {
    "armature": "joints/joint.armature",
    "viscous": "joints/joint.damping",
    "dry": "joints/joint.frictionloss",
    "bias": "sensors/qpos/joint.bias",
    "delay": "actuators/servo.delay",
}
STEP = 0.5e-3
"""Step of the simulator in the fit [s]."""
ALLOWED = {"bias": 2e-3, "delay": 0.5e-3}
"""Errors that are allowed [rad, s]; of the others 5 %."""


def fit(log: Log) -> Fit:
    """What a log tells, from the robot's file on."""
    return identify(loads(robot(STEP, **START)), [log], list(FREE.values()))


def estimates(found: Fit) -> dict[str, tuple[float, float, float]]:
    """Value and interval of each unknown."""
    by_path = {e.path: e for e in found.estimates}
    return {name: (float(by_path[p].value), float(by_path[p].low), float(by_path[p].high)) for name, p in FREE.items()}


def allowed(name: str, truth: float) -> float:
    """Largest error that is allowed."""
    return ALLOWED.get(name, 0.05 * abs(truth))


def main() -> None:
    """Fits both logs and prints."""
    jax.config.update("jax_enable_x64", True)
    for delay in (12.5e-3, 11.3e-3):
        found = fit(recorded(delay))
        rows = []
        for name, (value, low, high) in estimates(found).items():
            truth = delay if name == "delay" else TRUTH[name]
            good = "yes" if np.abs(value - truth) <= allowed(name, truth) else "NO"
            rows.append((name, truth, value, low, high, allowed(name, truth), good))
        header = ("unknown", "truth", "value", "low", "high", "allowed error", "within")
        show(f"Delay {1e3 * delay:g} ms: {found.verdict.kind}, {found.solution.solve_seconds:.1f} s", header, rows)


if __name__ == "__main__":
    main()
