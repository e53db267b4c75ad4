"""Plans through rigid contact: smoothed derivatives, distances of contact points, poses, and threads."""

import numpy as np
import pytest

from tests.control.robots import PUSHER, cart_pole
from truesim.control import (
    Command,
    ContactDistance,
    Cost,
    FramePose,
    JointVelocity,
    Limit,
    PlanOptions,
    Posture,
    Task,
    TaskKernels,
    plan,
)
from truesim.core.errors import TruesimError
from truesim.files.robots import loads
from truesim.physics.contact import RigidContact
from truesim.physics.simulation import Simulator

GOAL = 0.4
WRIST = """<mujoco><compiler angle="radian"/><option timestep="0.02" gravity="0 0 0"><flag contact="disable"/></option>
  <worldbody><body name="hand"><joint name="ball" type="ball" damping=".1"/>
    <inertial pos="0 0 0" mass="1" diaginertia=".1 .2 .3"/><site name="palm" pos="0 0 .2" quat="0 1 0 0"/></body>
  </worldbody><actuator><motor name="x" joint="ball" gear="1 0 0"/><motor name="y" joint="ball" gear="0 1 0"/>
  <motor name="z" joint="ball" gear="0 0 1"/></actuator></mujoco>"""


def push(**changes) -> Task:
    """Push the puck to a place, where it rests."""
    model = loads(PUSHER)
    costs = {
        "effort": Cost(Command(), 1e-3),
        "puck": Cost(Posture([0.0, GOAL], joints=("puck",)), 100.0, "final"),
        "rest": Cost(JointVelocity(), 1.0, "final"),
    }
    simulator = Simulator.of(model, contact=RigidContact.of(model))
    return Task(**{"simulator": simulator, "steps": 40, "costs": costs} | changes)


@pytest.fixture(scope="module")
def kernels():
    """Compiled functions of the task."""
    return TaskKernels(push())


@pytest.mark.parametrize("force", [0.2, 0.5, 2.0])
def test_smoothing_finds_contacts_that_exact_derivatives_do_not(kernels, force):
    """From pushes that miss, touch or overshoot, tightened smoothing leads to the same cost; without it most do not."""
    guess, tightened = np.full((40, 1), force), PlanOptions(smoothing=(0.1, 1e-2, 1e-3))
    found = plan(push(), guess=guess, options=tightened, kernels=kernels)
    assert found.converged
    assert found.cost < 0.081
    assert abs(found.q[-1, 1] - GOAL) < 0.01
    gap = 0.3 + found.q[:, 1] - found.q[:, 0]
    assert gap.min() > -1e-6
    exact = plan(push(), guess=guess, kernels=kernels)
    assert exact.cost > 3 * found.cost


def test_stages_share_the_iterations(kernels):
    """The first stage does not use up all iterations, and their sum stays within the limit."""
    options = PlanOptions(smoothing=(0.1, 1e-3), iterations=60)
    found = plan(push(), guess=np.full((40, 1), 0.2), options=options, kernels=kernels)
    assert found.iterations <= 60
    assert found.cost < 1.0


def test_distances_of_contact_are_costs_and_limits():
    """A cost draws the bodies together, a limit keeps them apart, and both agree with the geometry."""
    costs = {"effort": Cost(Command(), 1e-3), "touch": Cost(ContactDistance(), 100.0, "final")}
    near = plan(push(costs=costs))
    assert near.converged
    assert abs(near.q[-1, 0] - 0.3) < 1e-3
    apart = plan(push(costs=costs, limits={"apart": Limit(ContactDistance(), 0.05, when="always")}))
    assert apart.converged
    np.testing.assert_allclose(0.3 + apart.q[-1, 1] - apart.q[-1, 0], 0.05, atol=2e-4)


def test_poses_are_reached():
    """A hand on a ball joint turns a site to a pose that is 2.5 rad away, about an oblique axis."""
    simulator = Simulator.of(loads(WRIST))
    axis = np.array([1.0, 2.0, -2.0]) / 3
    turn = np.array([np.cos(1.25), *np.sin(1.25) * axis])
    position = 0.2 * np.array(
        [
            2 * (turn[1] * turn[3] + turn[0] * turn[2]),
            2 * (turn[2] * turn[3] - turn[0] * turn[1]),
            1 - 2 * (turn[1] ** 2 + turn[2] ** 2),
        ]
    )
    w, x, y, z = turn
    palm = np.array([-x, w, z, -y])
    costs = {
        "effort": Cost(Command(), 1e-3),
        "pose": Cost(FramePose("palm", position, palm), 1e3, "final"),
        "rest": Cost(JointVelocity(), 10.0, "final"),
    }
    found = plan(Task(simulator, 50, costs))
    assert found.converged
    assert abs(found.q[-1] @ turn) > 1 - 1e-6


def test_threads_do_not_change_plans():
    """Two threads find the same commands to the last bit, for one problem and for several."""
    for tasks in (cart_pole(steps=30), [cart_pole(steps=30)] * 3):
        one, two = (plan(tasks, options=PlanOptions(starts=3, threads=threads)) for threads in (1, 2))
        for a, b in zip(*([x] if not isinstance(x, list) else x for x in (one, two)), strict=True):
            assert np.array_equal(a.commands, b.commands)
            assert a.iterations == b.iterations


def test_smoothing_without_rigid_contact_is_refused():
    """Smoothing that nothing would use is an error."""
    with pytest.raises(TruesimError, match="Smoothing is that of rigid contact"):
        plan(cart_pole(steps=5), options=PlanOptions(smoothing=(0.1,)))
    with pytest.raises(TruesimError, match="Contact distances need rigid contact"):
        cart_pole(costs={"touch": Cost(ContactDistance())})
