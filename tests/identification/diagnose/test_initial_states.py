"""Initial states of windows from the positions before them."""

import numpy as np

import truesim as ts
from truesim.files.robots import loads
from truesim.identification.diagnose.initial_states import choose_lead_ins
from truesim.identification.problem.build import build
from truesim.identification.problem.options import ProblemOptions

XML = """<mujoco><worldbody><body name="rod"><joint name="hinge" axis="0 1 0"/>
<inertial pos="0 0 -0.2" mass="1" diaginertia="0.02 0.02 0.002"/></body></worldbody></mujoco>"""


def recording(noise: float, frequency: float):
    """A sine of one radian at 1 kHz with white noise [rad]."""
    time = np.arange(0, 3, 1e-3)
    q = np.sin(2 * np.pi * frequency * time) + noise * np.random.default_rng(0).standard_normal(len(time))
    model = loads(XML)
    return build(model, [ts.Log(time, {"qpos/hinge": q}, "run")], (), ProblemOptions()).recordings[0]


def test_noisy_slow_positions_take_a_longer_lead_in():
    assert choose_lead_ins(recording(1e-3, 0.3), 0.025).item() == 0.1


def test_fast_motion_keeps_the_shortest_lead_in():
    assert choose_lead_ins(recording(1e-6, 6.0), 0.025).item() == 0.025
