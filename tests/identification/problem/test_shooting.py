"""Simulated segments and their derivatives, with dry friction, a delay, per-log values and rotations."""

import dataclasses

import numpy as np
import pytest

from tests.identification.recorded import record
from tests.robots import robot
from truesim.identification.problem.build import build
from truesim.identification.problem.options import ProblemOptions
from truesim.identification.problem.segments import Nodes
from truesim.physics.model import paths

CART = """
<mujoco><compiler angle="radian"/><option timestep="0.005"><flag contact="disable"/></option><worldbody>
  <body name="cart"><joint name="rail" type="slide" axis="1 0 0" frictionloss=".4" damping=".3"/>
    <inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/>
    <body name="pendulum"><joint name="swing" axis="0 1 0" damping=".02" frictionloss=".03"/>
      <inertial pos=".02 0 -.3" mass=".5" diaginertia=".02 .02 .001"/>
      <body name="load" pos="0 0 -.5"><inertial pos="0 0 0" mass=".2"
         diaginertia=".001 .001 .001"/></body></body></body>
</worldbody><actuator><motor name="push" joint="rail" gear="3"/></actuator></mujoco>"""
"""A slide and a hinge."""
CART_FREE = (
    "bodies/pendulum.mass",
    "bodies/pendulum.com[0]",
    "joints/rail.frictionloss",
    "joints/swing.damping",
    "actuators/push.delay",
    "sensors/qpos/swing.bias",
    "time_scale",
)
PER_LOG = {
    "*": {"actuators/push.gain": "column:strength", "joints/rail.damping": "free"},
    "one": {"bodies/load.mass": 0.2},
    "two": {"bodies/load.mass": 0.35},
}
MOVING = ([0.0, 0.4], [2.0, 3.0])
TURNING = """
<mujoco><compiler angle="radian"/><option timestep="0.005"><flag contact="disable"/></option><worldbody>
  <body name="drone" pos="0 1 1"><freejoint name="flight"/><inertial pos=".01 0 0" mass="1" diaginertia=".01 .015 .02"/>
    <body name="head" pos=".1 0 0" quat="1 .1 0 .2"><joint name="neck" type="ball" damping=".05"/>
      <inertial pos=".02 0 .1" mass=".5" diaginertia=".01 .02 .02"/></body></body></worldbody></mujoco>"""
"""A free joint that carries a ball joint."""
WHIRLING = (
    [0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, *np.array([1.0, 0.2, -0.1, 0.3]) / np.sqrt(1.14)],
    [0.1, 0.2, 2.0, 3.0, -1.0, 2.0, 1.0, -2.0, 0.5],
)


def cart_log(name: str, mass: float, damping: float):
    """The cart with a load and with damping of its own; the motor's strength varies along the log."""
    text = CART.replace('mass=".2"', f'mass="{mass}"').replace('damping=".3"', f'damping="{damping}"')

    def strength(t):
        return 1 + 0.3 * np.sin(5 * t)

    log = record(text, lambda t: [strength(t) * np.cos(9 * t)], 0.3, every=2, start=MOVING, name=name)
    duty = {"strength": strength(log.time), "ctrl/push": log.columns["ctrl/push"] / strength(log.time)}
    return dataclasses.replace(log, columns={**log.columns, **duty})


@pytest.fixture(scope="module")
def cart():
    """Two logs, and two steps from sample to sample."""
    found = build(
        robot(CART), [cart_log("one", 0.2, 0.3), cart_log("two", 0.35, 0.5)], CART_FREE, ProblemOptions(per_log=PER_LOG)
    )
    assert found.substeps == 2
    return found


@pytest.fixture(scope="module")
def turning():
    """Rotations, in one log."""
    log = record(TURNING, lambda t: [], 0.2, start=WHIRLING)
    return build(robot(TURNING), [log], ["joints/neck.damping", "bodies/head.com[0]"])


def test_the_truth_leaves_no_residual(cart, turning):
    """With known loads, a varying gain and a damping for each log, segments follow MuJoCo's motion; rotations too."""
    truth, names, places = cart.parameters.start.copy(), cart.parameters.names, cart.parameters.slices()
    assert names[-2:] == ["joints/rail.damping@one", "joints/rail.damping@two"]
    truth[places[names.index("actuators/push.delay")]] = 0.0
    truth[places[names.index("sensors/qpos/swing.bias")]] = 0.0
    truth[places[-1]] = cart.parameters.parameters[-1].transform.coordinates(0.5)
    for problem, theta, (_, v) in ((cart, truth, MOVING), (turning, turning.parameters.start, WHIRLING)):
        nodes, heads = problem.initial_nodes(), np.flatnonzero(~problem.layout.follows)
        nodes.v[heads] = v
        simulated, _ = problem.differentiate(theta, nodes)
        assert np.abs(simulated.residual[heads]).max() < 1e-9


@pytest.fixture(scope="module", params=["cart", "turning"])
def differentiated(request):
    """A problem, a point away from its start, and the derivatives there."""
    problem = request.getfixturevalue(request.param)
    rng = np.random.default_rng(0)
    theta = problem.parameters.start + 0.2 * rng.uniform(size=problem.parameters.size)
    for name, place in zip(problem.parameters.names, problem.parameters.slices(), strict=True):
        if name.endswith("delay"):
            theta[place] = 0.73  # [10 ms]; derivatives in a delay have a kink where it is a multiple of the step
    nodes = problem.initial_nodes()
    return problem, theta, nodes, problem.differentiate(theta, nodes)


def agree(quotient, exact) -> bool:
    """Whether a difference quotient is the derivative, to 1e-6 of its largest number."""
    return bool(np.abs(quotient - exact).max() <= 1e-6 * np.abs(exact).max())


STEP = 1e-5


def test_derivatives_by_parameters_agree_with_differences(differentiated):
    """Residuals and the state at the end, by every coordinate of every parameter, to 1e-6."""
    problem, theta, nodes, (simulated, sensitivity) = differentiated
    for k in range(problem.parameters.size):
        moved = STEP * np.eye(problem.parameters.size)[k]
        (plus, _), (minus, _) = (problem.differentiate(theta + d, nodes) for d in (moved, -moved))
        own = np.array([list(row).index(k) if k in row else -1 for row in problem.columns])[problem.layout.log]
        mine = own >= 0
        J = sensitivity.residual[mine, :, :, own[mine]]
        r = (plus.residual - minus.residual) / (2 * STEP)
        assert agree(r[mine], J), k
        assert not np.any(r[~mine])
        X = sensitivity.state[mine, :, own[mine]]
        assert agree(ends(problem, plus, minus, simulated)[mine], X), k


def test_derivatives_by_first_states_agree_with_differences(differentiated):
    """In the tangent space: rotations of ball and free joints turn in the body."""
    problem, theta, nodes, (simulated, sensitivity) = differentiated
    nv = nodes.v.shape[1]
    for k in range(2 * nv):
        moved = np.zeros((problem.layout.size, 2 * nv))
        moved[:, k] = STEP
        (plus, _), (minus, _) = (
            problem.differentiate(
                theta, Nodes(problem.tangent_space.integrate(nodes.q, d[:, :nv]), nodes.v + d[:, nv:])
            )
            for d in (moved, -moved)
        )
        J = sensitivity.residual[..., k - 2 * nv]
        assert agree((plus.residual - minus.residual) / (2 * STEP), J), k
        X = sensitivity.state[..., k - 2 * nv]
        assert agree(ends(problem, plus, minus, simulated), X), k


def ends(problem, plus, minus, simulated):
    """Difference quotient of the states at the end, in the tangent space."""
    q = problem.tangent_space.difference(plus.q, simulated.q) - problem.tangent_space.difference(minus.q, simulated.q)
    return np.concatenate([q, plus.v - minus.v], axis=1) / (2 * STEP)


def test_the_robots_own_delay_takes_part():
    """Free or not, there is room for it."""
    model = paths.write(robot(CART), "actuators/push.delay", 0.02)
    assert build(model, [cart_log("one", 0.2, 0.3)], ["bodies/cart.mass"]).simulator.history >= 4
