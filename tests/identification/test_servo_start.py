"""Starts of servos whose gains are far too large in the robot file."""

import jax
import numpy as np

from tests.identification.two_joint_arm import stream, xml
from truesim.files.logs import Log
from truesim.files.robots import loads
from truesim.identification.problem.build import build
from truesim.identification.servo_start import servo_start


def _start(factor: float):
    samples = stream(4.0)
    columns = {name: np.array([s[name] for s in samples]) for name in samples[0] if name != "time"}
    log = Log(np.array([s["time"] for s in samples]), columns, "run.csv")
    text = xml().replace('kp="100"', f'kp="{100 * factor:g}"').replace('kp="60"', f'kp="{60 * factor:g}"')
    problem = build(loads(text), [log], ("joints/*.damping", "actuators/*.kp", "actuators/*.delay"))
    with jax.enable_x64(True):
        theta = servo_start(problem, 0.5)
        return None if theta is None else dict(zip(problem.parameters.names, problem.values(theta)[0], strict=True))


def test_gains_many_times_too_large_are_scaled():
    """Each servo begins within a factor of two of its gain, others at the values of the file."""
    found = _start(20.0)
    assert found is not None
    assert 0.5 < found["actuators/a1.kp"] / 100 < 2
    assert 0.5 < found["actuators/a2.kp"] / 60 < 2
    assert abs(found["joints/elbow.damping"] - 0.3) < 0.02


def test_right_gains_stay():
    """Fits to good robot files begin with them."""
    assert _start(1.0) is None
