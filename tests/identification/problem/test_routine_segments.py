"""Segments with the file's contact, simulated by the routines."""

import dataclasses

import mujoco
import numpy as np
import pytest

from truesim.core.errors import TruesimError
from truesim.files.logs import Log
from truesim.files.robots.load import loads
from truesim.identification import identify
from truesim.identification.problem.build import build
from truesim.identification.problem.options import ProblemOptions

SLED = """<mujoco>
  <option timestep="0.004" cone="elliptic" tolerance="1e-14"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="sled" pos="0 0 .1">
      <joint name="along" type="slide" axis="1 0 0"/><joint name="up" type="slide" axis="0 0 1"/>
      <site name="top"/>
      <geom name="foot" type="sphere" size=".1" mass="1" friction="{friction}" solref="{time_constant} 1"
        solimp=".02 .95 .005" priority="1"/>
    </body>
  </worldbody>
  <actuator>
    <motor name="push" joint="along"/><motor name="press" joint="up"/>
  </actuator>
  {sensor}
</mujoco>"""
PATHS = ["geoms/foot.friction[0]", "geoms/foot.solref[0]"]


def pushed(friction: float, time_constant: float, noise: float = 1e-4) -> Log:
    """Log of a sled in MuJoCo that slides forward while it is pressed onto the floor."""
    m = mujoco.MjModel.from_xml_string(SLED.format(friction=friction, time_constant=time_constant, sensor=""))
    d = mujoco.MjData(m)
    time = m.opt.timestep * np.arange(300)
    controls = np.stack([9 + 2 * np.sin(17 * time), 6 * np.sin(23 * time) - 6], axis=1)
    rows = []
    for control in controls:
        d.ctrl[:] = control
        rows.append(np.array(d.qpos))
        mujoco.mj_step(m, d)
    measured = np.stack(rows) + noise * np.random.default_rng(0).normal(size=(len(rows), 2))
    columns = {"qpos/along": measured[:, 0], "qpos/up": measured[:, 1]}
    columns |= {"ctrl/push": controls[:, 0], "ctrl/press": controls[:, 1]}
    return Log(name="pushed", time=time, columns=columns)


@pytest.fixture(scope="module")
def model():
    return loads(SLED.format(friction=0.6, time_constant=0.03, sensor=""))


def test_derivatives_against_differences(model):
    """By contact parameters, a mass, a delay of the commands, and the initial state."""
    paths = [*PATHS, "bodies/sled.mass", "actuators/push.delay"]
    problem = build(model, [pushed(0.4, 0.05)], paths, ProblemOptions(contact="file"))
    random = np.random.default_rng(1)
    theta = problem.parameters.start + 0.1 * random.random(len(problem.parameters.start))
    nodes = problem.initial_nodes()
    simulated, found = problem.differentiate(theta, nodes)
    assert simulated.residual.shape[:2] == (problem.layout.size, 10)
    for k in range(len(theta)):
        step = 1e-6 * np.eye(len(theta))[k]
        ends = [problem.kernels.values(*problem.arguments(theta + s * step, nodes)) for s in (1, -1)]
        expected = (ends[0].residual - ends[1].residual) / 2e-6
        assert np.abs(expected).max() > 1e-6
        np.testing.assert_allclose(found.residual[..., k], expected, atol=1e-9 + 1e-6 * np.abs(expected).max())
    for k, name in enumerate(("q", "q", "v", "v")):
        step = 1e-6 * np.eye(2)[k % 2]
        at = [dataclasses.replace(nodes, **{name: getattr(nodes, name) + s * step}) for s in (1, -1)]
        ends = [problem.kernels.values(*problem.arguments(theta, x)) for x in at]
        expected = (ends[0].v - ends[1].v) / 2e-6
        column = found.state[:, 2:, len(theta) + k]
        np.testing.assert_allclose(
            column, expected, rtol=1e-4, atol=1e-5 * np.abs(found.state[..., len(theta) :]).max()
        )


def test_contact_parameters_are_recovered(model):
    """Friction and time constant of a log that MuJoCo made lie in their intervals, which are narrow."""
    fit = identify(model, [pushed(0.4, 0.05)], PATHS, contact="file")
    assert str(fit.status) == "converged"
    for path, truth in zip(PATHS, (0.4, 0.05), strict=True):
        estimate = next(e for e in fit.estimates if e.path == path)
        assert estimate.low < truth < estimate.high
        assert estimate.high - estimate.low < 0.1 * truth


def test_time_scale_is_refused(model):
    problem = build(model, [pushed(0.4, 0.05)], [*PATHS, "time_scale"], ProblemOptions(contact="file"))
    with pytest.raises(TruesimError, match="time scale cannot be combined with the file's contact"):
        problem.differentiate(problem.parameters.start, problem.initial_nodes())


def test_accelerometers_are_left_out():
    """They follow from the constraint forces of the step; only an explicit choice of one is an error."""
    felt = loads(
        SLED.format(friction=0.6, time_constant=0.03, sensor='<sensor><accelerometer name="felt" site="top"/></sensor>')
    )
    log = pushed(0.4, 0.05)
    columns = {**log.columns, **{f"sensor/felt/{axis}": np.zeros(300) for axis in "xyz"}}
    log = dataclasses.replace(log, columns=columns)
    problem = build(felt, [log], PATHS, ProblemOptions(contact="file"))
    assert [channel.name for channel in problem.channels] == ["qpos/along", "qpos/up"]
    with pytest.raises(TruesimError, match="sensor/felt is an accelerometer"):
        build(felt, [log], PATHS, ProblemOptions(contact="file", channels=["sensor/*", "qpos/*"]))
