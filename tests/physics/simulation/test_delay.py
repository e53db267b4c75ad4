"""Delays of commands: what arrives, when, and its derivative in the delay."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evaluation import evaluate
from tests.robots import SMOOTH, robot, start
from truesim.core.errors import TruesimError
from truesim.physics.model import paths
from truesim.physics.simulation import History, Simulator, State, compile_jacobian, record, rollout

STEP = 0.0025
"""[s]"""
SLEDGE = f"""<mujoco><option timestep="{STEP}" gravity="0 0 0"><flag contact="disable"/></option><worldbody><body>
  <joint name="x" type="slide" axis="1 0 0"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody>
  <actuator><motor name="push" joint="x"/></actuator><sensor><actuatorfrc name="force" actuator="push"/></sensor>
</mujoco>"""
"""A mass of 1 kg whose velocity is the integral of its command."""
SERVO = f"""<mujoco><option timestep="{STEP}"><flag contact="disable"/></option><worldbody><body>
  <joint name="a" axis="0 1 0" damping="4.5" armature=".1"/><inertial pos="0 0 0" mass="1" diaginertia=".01 .01 .01"/>
  </body></worldbody><actuator><position name="servo" joint="a" kp="85" kv=".6"/></actuator></mujoco>"""


def delayed(text: str, seconds: float, **choices) -> Simulator:
    """A simulator whose first actuator has this delay."""
    model = robot(text)
    return Simulator.of(paths.write(model, f"actuators/{model.actuators.names[0]}.delay", seconds), **choices)


def commands(count: int, width: int = 1) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(count, width))


@pytest.mark.parametrize("seconds", [0.0125, 0.0113, 0.0001, 0.0])
def test_constant_steps_interpolate_as_minitaur_does(seconds):
    """`(1 - a) h[n] + a h[n + 1]` with n = floor(T / dt), a = T / dt - n; the first command was always there."""
    u = commands(20)
    simulator = delayed(SLEDGE, seconds, max_delay=0.02)
    velocity = evaluate(lambda s, u: rollout(s, s.initial_state(command=u[0]), u)[1].v[:, 0], simulator, u)
    n = int(seconds / STEP + 1e-9)
    a = seconds / STEP - n
    sample = np.concatenate([np.full(10, u[0, 0]), u[:, 0]])
    expected = [(1 - a) * sample[10 + k - n] + a * sample[10 + k - n - 1] for k in range(20)]
    np.testing.assert_allclose(np.diff(velocity, prepend=0) / STEP, expected, atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(
    steps=st.lists(st.floats(1e-4, 8e-3), min_size=12, max_size=12),
    seconds=st.floats(0, 0.015),
)
def test_jittered_steps_conserve_the_integral_of_the_command(steps, seconds):
    """However the steps fall, the momentum given is the integral of the command that has arrived."""
    steps, u = np.array(steps), commands(len(steps))[:, 0]
    time = np.concatenate([[0.0], np.cumsum(steps)])
    history, total = History.constant(u[:1], 0.0, 13), 0.0
    for k, (now, step) in enumerate(zip(time[:-1], steps, strict=True)):
        history = history.then(u[k : k + 1], now)
        total += step * float(history.mean(now, step, np.array([seconds]))[0])
    begins = np.concatenate([[-np.inf], time[1:-1]]) + seconds
    ends = np.concatenate([time[1:-1], [np.inf]]) + seconds
    held = np.clip(np.minimum(ends, time[-1]) - np.maximum(begins, 0), 0, None)
    np.testing.assert_allclose(total, held @ u, atol=1e-13)


def test_a_simulator_may_change_its_step():
    """Replacing the time step from step to step, as a jittered log asks for, keeps commands at their own times."""
    steps, u, seconds = np.array([2, 1, 4, 1, 3, 2, 2, 5, 1, 2]) * 1e-3, commands(10), 0.0037
    simulator = delayed(SLEDGE, seconds, timestep=1e-3)

    def run(simulator, steps, u):
        state = simulator.initial_state(command=u[0])
        advance = lambda x, row: (dataclasses.replace(simulator, timestep=row[0]).step(x, row[1])[0], None)  # noqa: E731
        return jax.lax.scan(advance, state, (steps, u))[0]

    end = evaluate(run, simulator, steps, u)
    fine = np.repeat(u[:, 0], (steps * 1e4).round().astype(int))
    late = np.concatenate([np.full(37, u[0, 0]), fine])[: len(fine)]
    np.testing.assert_allclose(end.v[0], late.sum() * 1e-4, rtol=1e-12)
    np.testing.assert_allclose(end.time, steps.sum(), rtol=1e-14)


@pytest.mark.parametrize("seconds", [0.0113, 0.0131])
def test_derivative_in_the_delay(seconds):
    """Inside a cell it agrees with central differences of a fiftieth of a step, through a whole motion."""
    simulator = delayed(SERVO, seconds, max_delay=0.03)
    u = np.sin(np.linspace(0, 3, 80) ** 2)[:, None]

    def angle(seconds):
        changed = dataclasses.replace(simulator, model=paths.write(simulator.model, "actuators/servo.delay", seconds))
        return rollout(changed, changed.initial_state(command=u[0]), u)[1].q[:, 0]

    h = STEP / 50
    derivative = jax.jit(jax.jacfwd(angle))(seconds)
    reverse = jax.jit(jax.grad(lambda d: angle(d)[-1]))(seconds)
    central = (np.asarray(angle(seconds + h)) - np.asarray(angle(seconds - h))) / (2 * h)
    assert np.max(np.abs(derivative - central)) < 1e-4 * np.max(np.abs(central))
    np.testing.assert_allclose(reverse, derivative[-1], rtol=1e-10)


def test_derivative_at_zero_delay_is_that_of_a_longer_one():
    """A fit may start at no delay: the derivative there is the one into the possible side."""
    history = History(np.array([[1.0], [1.0], [3.0]]), np.array([-0.2, -0.1, 0.0]))
    slope = jax.jacfwd(lambda d: history.mean(0.0, 0.1, d))(np.zeros(1))
    np.testing.assert_allclose(slope, [[-2.0 / 0.1]], rtol=1e-12)


def test_native_equals_xla_and_the_compiled_jacobian():
    """Both backends give the same motion, and the step-by-step sensitivities know the delay."""
    simulator = delayed(SMOOTH, 0.023, max_delay=0.03)
    state, u = start(simulator.model), commands(12, simulator.model.nu)
    native, xla = (rollout(simulator, state, u, backend=backend) for backend in ("native", "xla"))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12), native, xla)

    def simulator_of(seconds):
        return dataclasses.replace(simulator, model=paths.write(simulator.model, "actuators/actuator0.delay", seconds))

    x, X = compile_jacobian(simulator_of, np.array(0.023), state, u)(np.array(0.023), state, u)
    np.testing.assert_allclose(x, np.concatenate([xla[1].q, xla[1].v], axis=1), atol=1e-12)
    plain = evaluate(jax.jacfwd(lambda d: rollout(simulator_of(d), state, u, backend="xla")[1].q), 0.023)
    np.testing.assert_allclose(X[:, : simulator.model.nq, 0], plain, atol=1e-10)


def test_no_delay_is_no_delay():
    """Room for a delay changes nothing while it is zero; without a delay there is no history at all."""
    model = robot(SMOOTH)
    state, u = start(model), commands(10, model.nu)
    plain, roomy = Simulator.of(model), Simulator.of(model, max_delay=0.05)
    assert (plain.history, roomy.history) == (0, 6)
    ends = [rollout(simulator, state, u)[0] for simulator in (plain, roomy)]
    np.testing.assert_array_equal(ends[0].q, ends[1].q)
    np.testing.assert_array_equal(ends[0].v, ends[1].v)
    assert ends[0].history is None


def test_longer_delays_than_there_is_room_for_act_as_the_longest():
    """Beyond the history, the oldest command that is known holds."""
    u = commands(20)
    short = [dataclasses.replace(delayed(SLEDGE, seconds), history=4) for seconds in (3 * STEP, 0.5)]
    runs = [rollout(simulator, simulator.initial_state(command=u[0]), u)[1].v for simulator in short]
    np.testing.assert_allclose(runs[0][:-4], runs[1][:-4], atol=1e-12)


def test_a_motion_goes_on_from_its_end():
    """Two recordings, the second from the end of the first, are one; sensors see the delayed command."""
    simulator, u = delayed(SLEDGE, 0.007), commands(20)
    whole = evaluate(record, simulator, simulator.initial_state(command=u[0]), u)
    first = evaluate(record, simulator, simulator.initial_state(command=u[0]), u[:9])
    second = evaluate(record, simulator, first.end, u[9:])
    np.testing.assert_allclose(np.concatenate([first.v[:-1], second.v]), whole.v, atol=1e-13)
    np.testing.assert_allclose(whole.sensors["force"][:-1], whole.info.applied_force[:, 0], atol=1e-13)


def test_a_history_from_the_middle_of_a_log():
    """A motion that starts with the commands before it goes as if it had always run."""
    simulator, u, now = delayed(SLEDGE, 0.007), commands(20), 7 * STEP
    whole = evaluate(lambda s, u: rollout(s, s.initial_state(command=u[0]), u)[1].v, simulator, u)
    past = History.of(u[:7], np.arange(7) * STEP, simulator.history)
    middle = State(jnp.zeros(1), jnp.asarray(whole[6]), jnp.asarray(now), past)
    rest = evaluate(lambda s, x, u: rollout(s, x, u)[1].v, simulator, middle, u[7:])
    np.testing.assert_allclose(rest, whole[7:], atol=1e-13)
    early = History.of(u[:2], np.arange(2) * STEP, 4)
    np.testing.assert_array_equal(early.values, u[[0, 0, 0, 1]])


def test_traced_delays_need_room():
    """One sentence says what to give."""
    with pytest.raises(TruesimError, match="max_delay"):
        jax.jit(lambda d: delayed(SLEDGE, d).timestep)(0.01)
    assert jax.jit(lambda d: delayed(SLEDGE, d, max_delay=0.02).timestep)(0.01) == STEP
