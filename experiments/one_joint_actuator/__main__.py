"""Friction, armature, encoder bias and delay of a servo from one chirp of 20 s at 400 Hz.

`python -m experiments.one_joint_actuator`. The data is simulated by MuJoCo at 20 kHz, the fit simulates at 2 kHz. At
the log's own 400 Hz the first-order integrator would be half a step ahead, and the estimated delay 1.2 ms too long.
"""

import jax
import numpy as np

from experiments.one_joint_actuator.machine import START, TRUTH, recorded, robot
from experiments.one_joint_actuator.unknowns import FREE, STEP, allowed
from experiments.recorded import show
from truesim.files.logs import Log
from truesim.files.robots import loads
from truesim.identification.fit import Fit
from truesim.identification.pipeline import identify


def fit(log: Log) -> Fit:
    """Fit of the robot's file to a log."""
    return identify(loads(robot(STEP, **START)), [log], list(FREE.values()))


def estimates(found: Fit) -> dict[str, tuple[float, float, float]]:
    """Value and interval of each free parameter."""
    by_path = {e.path: e for e in found.estimates}
    return {name: (float(by_path[p].value), float(by_path[p].low), float(by_path[p].high)) for name, p in FREE.items()}


def main() -> None:
    """Fit both logs and print."""
    jax.config.update("jax_enable_x64", True)
    for delay in (12.5e-3, 11.3e-3):
        found = fit(recorded(delay))
        rows = []
        for name, (value, low, high) in estimates(found).items():
            truth = delay if name == "delay" else TRUTH[name]
            good = "yes" if np.abs(value - truth) <= allowed(name, truth) else "NO"
            rows.append((name, truth, value, low, high, allowed(name, truth), good))
        header = ("unknown", "truth", "value", "low", "high", "allowed error", "within")
        show(f"Delay {1e3 * delay:g} ms: {found.status}, {found.solution.solve_seconds:.1f} s", header, rows)


if __name__ == "__main__":
    main()
