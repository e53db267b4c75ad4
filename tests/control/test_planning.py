"""Plans: linear-quadratic problems in one iteration, stationary points of random robots, limits, designs, mistakes."""

import dataclasses

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import solve_discrete_are

from tests.control.robots import CART_POLE, MASSES, cart_pole, masses, pendulum
from tests.random_trees import mjcf, random_configuration, seeds, skeletons
from truesim.control import (
    Command,
    Cost,
    CustomQuantity,
    FramePosition,
    JointVelocity,
    Limit,
    PlanOptions,
    PlanStatus,
    Posture,
    Task,
    TaskKernels,
    plan,
)
from truesim.core.errors import TruesimError
from truesim.files.robots import loads
from truesim.files.robots.compiled import from_compiled
from truesim.physics.dynamics import difference
from truesim.physics.simulation import Simulator, compile_rollout, linearize, rollout

TIGHT = PlanOptions(tolerance=1e-12)


@pytest.fixture(scope="module")
def swing_up():
    """A plan of the cart-pole's swing-up."""
    return plan(cart_pole(), options=TIGHT)


def test_linear_quadratic_problem_takes_one_iteration():
    """Commands equal those of the finite-horizon Riccati recursion after a single step; the second finds no gain."""
    task = masses()
    found = plan(task, options=PlanOptions(damping=1e-12))
    assert found.converged
    assert found.iterations == 1
    simulator, dt = task.simulator, float(task.simulator.timestep)
    A, B = (np.asarray(x) for x in linearize(simulator, task.start, jnp.zeros(2)))
    Q, R = np.diag([1.0, 2.0, 0.5, 0.5]), 0.1 * np.eye(2)
    V, gains = Q, []
    for _ in range(task.steps):
        K = np.linalg.solve(dt * R + B.T @ V @ B, B.T @ V @ A)
        V = dt * Q + A.T @ V @ (A - B @ K)
        gains.insert(0, K)
    x = np.concatenate([task.start.q, task.start.v])
    for k, K in enumerate(gains):
        np.testing.assert_allclose(found.commands[k], -K @ x, atol=1e-9)
        x = A @ x - B @ K @ x


def test_first_gain_is_the_stationary_one_far_from_the_end():
    """With a long horizon the first feedback is that of SciPy's algebraic Riccati equation."""
    task = masses(steps=400)
    found = plan(task)
    dt = float(task.simulator.timestep)
    A, B = (np.asarray(x) for x in linearize(task.simulator, task.start, jnp.zeros(2)))
    Q, R = dt * np.diag([1.0, 2.0, 0.5, 0.5]), dt * 0.1 * np.eye(2)
    P = solve_discrete_are(A, B, Q, R)
    np.testing.assert_allclose(found.gains[0], -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A), atol=1e-5)


@settings(max_examples=2)
@given(skeletons(largest=2), seeds, st.booleans())
def test_the_projected_gradient_vanishes(skeleton, seed, bounded):
    """For random robots, also with quaternions, the gradient is zero at the solution or points out of the box."""
    m, model = _with_motors(skeleton, seed)
    rng = np.random.default_rng(seed)
    simulator = Simulator.of(model, timestep=0.02)
    start = simulator.initial_state(q=random_configuration(m, rng), v=0.3 * rng.normal(size=model.nv))
    target = np.asarray(start.q)
    costs = {
        "effort": Cost(Command(), 1.0),
        "posture": Cost(Posture(target), 3.0, "always"),
        "velocity": Cost(JointVelocity(), 1.0, "always"),
    }
    bounds = np.tile([-0.2, 0.3], (model.nu, 1)) if bounded else None
    task = Task(simulator, 4, costs, start=start, bounds=bounds)
    found = plan(task, options=TIGHT)
    assert found.converged
    simulate = compile_rollout(simulator, start, found.commands)

    def cost(commands):
        """Cost of a batch of commands, from simulations."""
        _, states = simulate(simulator, start, commands)
        away = np.array([[difference(model, q, target) for q in motion] for motion in states.q])
        end = 0.5 * (3 * np.sum(away**2, axis=2) + np.sum(states.v**2, axis=2))
        return end[:, -1] + 0.02 * (end[:, :-1].sum(1) + 0.5 * np.sum(commands**2, axis=(1, 2)))

    step = 1e-4
    shifts = step * np.eye(found.commands.size).reshape(-1, *found.commands.shape)
    values = cost(np.concatenate([found.commands + shifts, found.commands - shifts, found.commands[None]]))
    n = found.commands.size
    gradient = ((values[:n] - values[n : 2 * n]) / (2 * step)).reshape(found.commands.shape)
    first = 0.02 * 0.5 * float(start.v @ start.v)
    np.testing.assert_allclose(found.gradient, gradient, atol=1e-6 * (1 + np.abs(gradient).max()))
    np.testing.assert_allclose(values[-1] + first, found.cost, rtol=1e-9)
    moved = np.clip(found.commands - gradient, *task.command_bounds()) - found.commands
    assert np.abs(moved).max() < 1e-5 * (1 + np.abs(found.commands).max())


def _with_motors(skeleton, seed: int):
    """The tree with a motor on every joint, as MuJoCo compiles it, and ours."""
    spec = mujoco.MjSpec.from_string(mjcf(skeleton, seed))
    rng = np.random.default_rng(seed)
    for k, joint in enumerate(spec.joints):
        joint.name = f"j{k}"
        gear = rng.uniform(0.5, 2, 6)
        spec.add_actuator(name=f"m{k}", trntype=mujoco.mjtTrn.mjTRN_JOINT, target=joint.name, gear=gear)
    m = spec.compile()
    return m, from_compiled(m, None)


def test_plans_replay_in_mujoco(swing_up):
    """The commands lead MuJoCo along the planned motion: both have the same physics."""
    m = mujoco.MjModel.from_xml_string(CART_POLE)
    d = mujoco.MjData(m)
    for k, command in enumerate(swing_up.commands):
        np.testing.assert_allclose(d.qpos, swing_up.q[k], atol=1e-9)
        d.ctrl[:] = command
        mujoco.mj_step(m, d)
    np.testing.assert_allclose(d.qpos, swing_up.q[-1], atol=1e-9)


def test_swing_up_converges_to_a_stationary_point(swing_up):
    """Commands stay in their box, and the gradient of the commands within it vanishes."""
    assert swing_up.converged
    inside = np.abs(swing_up.commands) < 10 - 1e-6
    assert np.abs(swing_up.gradient[inside]).max() < 1e-4
    assert not inside.all()
    assert np.abs(swing_up.commands).max() <= 10


def test_warm_start_converges_at_once(swing_up):
    """A plan as the guess is recognized as converged."""
    again = plan(cart_pole(), guess=swing_up)
    assert again.iterations <= 1
    np.testing.assert_allclose(again.cost, swing_up.cost, rtol=1e-9)


def test_fixed_commands_stay():
    """A command without room keeps its value, and the other one is optimal, within its bounds, beside it."""
    bounds = np.array([[-0.8, 0.5], [0.2, 0.2]])
    found = plan(masses().replace(bounds=bounds), options=TIGHT)
    assert found.converged
    np.testing.assert_array_equal(found.commands[:, 1], 0.2)
    first, slope = found.commands[:, 0], found.gradient[:, 0]
    inside = (first > -0.8) & (first < 0.5)
    assert inside.any()
    assert not inside.all()
    np.testing.assert_allclose(slope[inside], 0.0, atol=1e-6)
    assert (slope[first == -0.8] > 0).all()
    assert (slope[first == 0.5] < 0).all()
    still = plan(masses().replace(bounds=np.array([[0.1, 0.1], [0.2, 0.2]])))
    assert still.converged
    np.testing.assert_array_equal(still.commands, np.tile([0.1, 0.2], (30, 1)))


def test_saturated_servos_move_as_motors_within_a_box():
    """A servo whose force is limited reaches the optimum of a motor with that range, and never asks for more."""
    servo = '<general name="a" joint="hinge" gainprm="300" biastype="affine" biasprm="0 -300 -20" forcelimited="true" '
    found = plan(pendulum(servo + 'forcerange="-6 6"/>'), options=TIGHT)
    motor = plan(pendulum('<motor name="a" joint="hinge" ctrllimited="true" ctrlrange="-6 6"/>'), options=TIGHT)
    assert found.converged
    assert motor.converged
    np.testing.assert_allclose(found.cost, motor.cost, rtol=1e-7)
    asked = 300 * (found.commands - found.q[:-1]) - 20 * found.v[:-1]
    np.testing.assert_allclose(asked, motor.commands, atol=2e-3)
    assert (np.abs(asked) > 5.99).sum() > 5
    assert np.abs(asked).max() <= 6.0
    start = plan(pendulum(servo + 'forcerange="-6 6"/>'), guess=np.full((50, 1), 3.0), options=TIGHT)
    np.testing.assert_allclose(start.cost, motor.cost, rtol=1e-7)


def test_infeasible_guess_closes_its_defects(swing_up):
    """From states that no command reaches, the same minimum is found, and the motion obeys the physics."""
    line = np.linspace(swing_up.q[0], swing_up.q[-1], len(swing_up.q))
    guess = dataclasses.replace(swing_up, q=line, commands=0 * swing_up.commands)
    found = plan(cart_pole(), guess=guess, options=TIGHT)
    assert found.converged
    _, states = rollout(cart_pole().simulator, cart_pole().initial_state(), jnp.asarray(found.commands))
    np.testing.assert_allclose(found.q[1:], states.q, atol=1e-9)


def test_batches_equal_single_problems(swing_up):
    """Problems in a batch take the same steps as alone."""
    easier = cart_pole(costs=cart_pole().costs | {"effort": Cost(Command(), 1e-3)})
    both = plan([cart_pole(), easier], options=TIGHT)
    np.testing.assert_allclose(both[0].commands, swing_up.commands, atol=1e-9)
    np.testing.assert_allclose(both[1].cost, plan(easier, options=TIGHT).cost, rtol=1e-9)


def test_limits_hold():
    """The cart stays on a short track, and the end is reached exactly."""
    limits = {
        "track": Limit(Posture([0.0, 0.0], joints=("slide",)), -0.5, 0.5, "always"),
        "end": Limit(Posture([0.0, np.pi]), 0.0, 0.0, "final"),
    }
    task = cart_pole(steps=100, costs={"effort": Cost(Command(), 1e-2)}, limits=limits)
    found = plan(task, options=PlanOptions(iterations=1000))
    assert found.converged, found.message
    assert np.abs(found.q[:, 0]).max() <= 0.5 + 1e-4
    np.testing.assert_allclose(found.q[-1], [0.0, np.pi], atol=1e-4)


def test_unreachable_goal_says_so():
    """A goal beyond the reach of the commands ends with the least violation and a sentence that names the limit."""
    limits = {"far": Limit(Posture([50.0, 0.0], joints=("slide",)), 0.0, 0.0, "final")}
    found = plan(cart_pole(steps=10, limits=limits), options=PlanOptions(stages=4))
    assert found.status is PlanStatus.LIMITS_VIOLATED
    assert "far by" in found.message


def test_free_final_time_is_optimal():
    """With a price on time, the cost at other time steps is higher, and the time ends inside its bounds."""
    costs = cart_pole().costs | {"time": Cost(CustomQuantity(lambda knot: jnp.ones(1)), 2.0)}
    found = plan(cart_pole(costs=costs, design={"timestep": (0.01, 0.1)}), options=TIGHT)
    assert found.converged
    step = found.design["timestep"]
    assert 0.011 < step < 0.099
    np.testing.assert_allclose(np.diff(found.time), step, rtol=1e-9)
    for other in (0.97 * step, 1.03 * step):
        fixed = cart_pole(costs=costs, simulator=Simulator.of(loads(CART_POLE), timestep=other))
        assert plan(fixed, guess=found.commands).cost > found.cost


def test_shared_design_suits_all_tasks():
    """One pole for two tasks: the sum of the costs is stationary in its mass, and both plans have the same one."""
    goals = [0.3, -0.5]
    tasks = [
        cart_pole(
            steps=20,
            costs={
                "effort": Cost(Command(), 1e-2),
                "tip": Cost(FramePosition("tip", [x, 0.0, -0.5]), 10.0, "final"),
                "mass": Cost(CustomQuantity(lambda knot: knot.simulator.model.bodies.mass[1:] - 0.3), 20.0),
            },
            design={"bodies/pole.mass": (0.05, 1.0)},
        )
        for x in goals
    ]
    both = plan(tasks, shared_design=True, options=TIGHT)
    mass = both[0].design["bodies/pole.mass"]
    assert both[1].design["bodies/pole.mass"] == mass
    total = sum(p.cost for p in both)
    for other in (0.9 * mass, 1.1 * mass):
        fixed = [t.replace(design={}, simulator=t.simulator.replace({"bodies/pole.mass": other})) for t in tasks]
        assert sum(p.cost for p in plan(fixed)) > total


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"bounds": np.array([[1.0, -1.0]])}, "push are 1 to -1"),
        ({"bounds": np.zeros((2, 2))}, r"shape \(2, 2\)"),
        ({"steps": 0}, "0 steps"),
        ({"costs": {}}, "at least one cost"),
        ({"costs": {"a": Cost(Posture([0.0]))}}, "needs the 2 coordinates"),
        ({"costs": {"a": Cost(FramePosition("tup", [0.0, 0, 0]))}}, "did you mean 'tip'"),
        ({"costs": {"a": Cost(Command(), -1.0)}}, "weights are not negative"),
        ({"costs": {"a": Cost(Command(), 1.0, "final")}}, "the last knot does not have"),
        ({"limits": {"a": Limit(Command(), 1.0, -1.0)}}, "leaves nothing"),
        ({"costs": {"a": Cost(Posture([0.0, 0.0]), [1.0, 2, 3])}}, r"weight of a has shape \(3,\)"),
        ({"limits": {"a": Limit(Posture([0.0, 0.0]), [0.0, 0, 0])}}, r"bound of a has shape \(3,\)"),
        ({"bounds": np.array([[np.nan, 1.0]])}, "no command lies between"),
        ({"design": {"bodies/pole.mas": (0, 1)}}, "did you mean 'mass'"),
        ({"design": {"timestep": (0, 1)}}, "must be positive"),
    ],
)
def test_mistakes_are_one_sentence(change, sentence):
    """Infeasible bounds, unknown names and wrong sizes are refused when the task is made."""
    with pytest.raises(TruesimError, match=sentence):
        cart_pole(**change)


def test_cost_that_is_not_a_number_is_named():
    """NaN in a cost names the term and the knot."""
    bad = Cost(CustomQuantity(lambda knot: jnp.sqrt(knot.state.q[:1] - 1.0)))
    with pytest.raises(TruesimError, match="The cost bad is not a number at knot 0"):
        plan(cart_pole(steps=5, costs=cart_pole().costs | {"bad": bad}))


def test_derivative_that_is_not_a_number_is_refused():
    """A cost with an infinite derivative at the guess says so, instead of stalling."""
    bad = Cost(CustomQuantity(lambda knot: jnp.sqrt(knot.state.q[:1] ** 2)))
    with pytest.raises(TruesimError, match="derivatives of the task are not numbers"):
        plan(cart_pole(steps=5, costs=cart_pole().costs | {"bad": bad}))


def test_costs_that_end_are_not_left():
    """Where a cost is no number beyond a place, steps across it are refused, and the best motion is finite."""
    wall = Cost(CustomQuantity(lambda knot: jnp.sqrt(0.05 - knot.state.q[:1])))
    found = plan(cart_pole(steps=30, costs=cart_pole().costs | {"wall": wall}))
    assert np.isfinite(found.cost)
    assert found.q[:-1, 0].max() <= 0.05


def test_out_of_iterations_returns_the_best_motion():
    """An optimization that does not converge says so, and its cost is lower than that of the guess."""
    task = cart_pole()
    found = plan(task, options=PlanOptions(iterations=3))
    assert found.status is PlanStatus.OUT_OF_ITERATIONS
    assert "did not converge" in found.message
    assert found.cost < plan(task, options=PlanOptions(iterations=1)).cost


def test_kernels_serve_other_numbers():
    """Compiled functions of one task solve another with other targets and weights."""
    kernels = TaskKernels(cart_pole())
    other = cart_pole(costs=cart_pole().costs | {"end": Cost(Posture([0.4, np.pi]), 50.0, "final")})
    assert plan(other, kernels=kernels).cost == plan(other).cost
    with pytest.raises(TruesimError, match="same robot"):
        plan(cart_pole(steps=7), kernels=kernels)
    narrow = cart_pole(bounds=np.array([[-5.0, 5.0]]))
    assert np.abs(plan(narrow, kernels=kernels).commands).max() <= 5.0
    with pytest.raises(TruesimError, match="same bounds of commands"):
        plan([cart_pole(), narrow])
    with pytest.raises(TruesimError, match="other fixed or bounded commands"):
        plan(cart_pole(bounds=np.zeros((1, 2))), kernels=kernels)


def test_costs_of_the_last_knot_are_optional():
    """Masses on springs are held near a place by running costs alone."""
    model = loads(MASSES)
    task = Task(Simulator.of(model), 10, {"place": Cost(Posture([0.1, 0.0])), "effort": Cost(Command(), 1e-3)})
    found = plan(task)
    assert found.converged
    assert 0 < found.q[-1, 0] < 0.1
