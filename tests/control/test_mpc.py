"""Predictive control: swing-up in MuJoCo, deadlines, delays, other numbers without compiling, sampling, gymnasium."""

import mujoco
import numpy as np
import pytest

from tests.control.robots import CART_POLE, cart_pole
from truesim.bridges.gymnasium import GymnasiumPlant
from truesim.bridges.mujoco import MujocoPlant
from truesim.control import (
    Cost,
    Posture,
    PredictiveController,
    SamplingOptions,
    SamplingPlanner,
    SimulatedPlant,
    run_closed_loop,
)
from truesim.core.errors import TruesimError
from truesim.files.robots import loads
from truesim.physics.simulation import Simulator

MASS = "bodies/pole.mass"


@pytest.fixture(scope="module")
def controller():
    """A controller of the cart-pole, whose mass may change."""
    return PredictiveController(cart_pole(steps=60), inputs=(MASS,))


def test_it_swings_a_pole_up_in_mujoco(controller):
    """The pole stands after four seconds, although the plant is another simulator."""
    controller.reset(cart_pole().initial_state())
    loop = run_closed_loop(controller, MujocoPlant(mujoco.MjModel.from_xml_string(CART_POLE)), 200)
    np.testing.assert_allclose(loop.q[-1], [0.0, np.pi], atol=1e-2)
    assert np.abs(loop.commands).max() <= 10
    assert controller.report.iterations == 1


def test_a_deadline_falls_back_to_the_feedback(controller):
    """Without time for an iteration, the command is that of the plan with its feedback; the report says so."""
    q, v = np.array([0.0, np.pi - 0.05]), np.zeros(2)
    controller.reset(cart_pole().simulator.initial_state(q=q))
    controller(q, v, 0.0)
    controller.deadline = 1e-9
    try:
        first, second = controller(q, v, 0.02), controller(q + np.array([0.01, 0.0]), v, 0.02)
    finally:
        controller.deadline = None
    assert controller.report.iterations == 0
    assert controller.report.late
    assert abs(second[0] - first[0]) > 1e-6


def test_other_numbers_need_no_compiling(controller):
    """A changed mass changes the plan like a controller that was made with it; constants are refused."""
    controller.reset(cart_pole().initial_state())
    controller.replace({MASS: 0.2}, costs={"end": Cost(Posture([0.1, np.pi]), 100.0, "final")})
    assert float(controller.task.simulator.read(MASS)) == 0.2
    with pytest.raises(TruesimError, match="is a constant of this controller"):
        controller.replace({"bodies/cart.mass": 2.0})
    controller.replace({MASS: 0.1}, costs=cart_pole().costs)


def test_time_does_not_go_back(controller):
    """A time before the last one is refused."""
    controller.reset(cart_pole().initial_state())
    controller(np.zeros(2), np.zeros(2), 1.0)
    with pytest.raises(TruesimError, match="went back from 1 to 0"):
        controller(np.zeros(2), np.zeros(2), 0.5)


def test_delays_are_part_of_the_model():
    """With a delay of 50 ms the pole is held upright only if the controller knows of it."""
    simulator = Simulator.of(loads(CART_POLE), max_delay=0.06).replace({"actuators/push.delay": 0.05})
    start = simulator.initial_state(q=np.array([0.0, np.pi - 0.2]))
    task = cart_pole(steps=40, simulator=simulator, start=start)
    loop = run_closed_loop(PredictiveController(task), SimulatedPlant(simulator, start), 150)
    np.testing.assert_allclose(loop.q[-1], [0.0, np.pi], atol=1e-2)


@pytest.mark.parametrize("method", ["predictive", "mppi", "cross_entropy"])
def test_sampling_improves_on_its_start(method):
    """Every method finds commands of a much lower cost than standing still, and keeps the best."""
    planner = SamplingPlanner(cart_pole(), SamplingOptions(method, samples=64, rounds=20))
    found = planner.plan()
    assert found.cost < 0.5 * found.history[0]
    assert np.all(np.diff(found.history) <= 0)
    assert np.abs(found.commands).max() <= 10


class Integrator:
    """The smallest environment: a number that actions move."""

    def reset(self, seed=None):
        """Start at zero."""
        self.x = 0.0
        return np.array([self.x, 0.0]), {}

    def step(self, action):
        """Move; the episode ends beyond one."""
        self.x += float(action)
        return np.array([self.x, 0.0]), 1.0, self.x > 1, False, {}


def test_environments_are_plants():
    """Rewards add up until the episode ends, and time runs on."""
    plant = GymnasiumPlant(Integrator(), lambda o: (o[:1], o[1:]), period=0.1, action_of=lambda u: u[0])
    loop = run_closed_loop(lambda q, v, now: np.array([0.4]), plant, 5)
    assert plant.reward == 3.0
    assert plant.ended
    np.testing.assert_allclose(loop.time, 0.1 * np.arange(6))
    np.testing.assert_allclose(loop.q[-1], [1.2])
