"""Learned actuators: trained with and without labels, refused at another rate, bounded by the motor."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from truesim import Log, Simulator, TruesimError, record
from truesim.files.robots import loads
from truesim.identification.learned_actuators import LEARNED_ACTUATORS, TrainingOptions, learn_actuators
from truesim.physics.blueprint import GRU, Lagged, Trained, read_networks, write_networks

STEP = 0.0025
TEXT = """<mujoco><option timestep="0.0025"/><worldbody><body name="link">
  <joint name="joint" axis="0 1 0"/><inertial pos="0 0 -.2" mass="1" diaginertia=".02 .02 .001"/></body></worldbody>
  <actuator><position name="servo" joint="joint" kp="{}" kv="1" forcerange="-{} {}"/></actuator></mujoco>"""
LAGGED = Lagged(STEP, (0.0, 0.005, 0.01), (16,))


def logged(seed: int, seconds: float = 20.0) -> Log:
    """A motion of a servo that is weaker than its model says, with its torque."""
    machine = loads(TEXT.format(12, 2.0, 2.0))
    time, rng = np.arange(0, seconds, STEP), np.random.default_rng(seed)
    f, p = rng.uniform(0.2, 3, 6), rng.uniform(0, 6.28, 6)
    target = 0.25 * np.sin(2 * np.pi * np.outer(time, f) + p).sum(axis=1)
    with jax.enable_x64(True):
        simulator = Simulator.of(machine)
        motion = record(simulator, simulator.initial_state(), jnp.asarray(target)[:, None])
    q, v, u = (np.asarray(x)[:, 0] for x in (motion.q, motion.v, motion.command))
    torque = np.clip(12 * (u - q) - v, -2, 2)
    columns = {"qpos/joint": q, "ctrl/servo": u, "torque/servo": torque}
    return Log(np.asarray(motion.time), columns, name=f"run{seed}")


def apart(trained: Trained | None, log: Log) -> float:
    """Largest distance of half a second's motion from a log [rad]."""
    model = loads(TEXT.format(20, 8, 8))
    with jax.enable_x64(True):
        simulator = Simulator.of(model, blueprint=trained)
        steps = 200
        command = log.column("ctrl/servo")[:steps, None]
        q = np.asarray(record(simulator, simulator.initial_state(command=command[0]), jnp.asarray(command)).q)[:, 0]
    return float(np.abs(q - log.column("qpos/joint")[: steps + 1]).max())


@pytest.mark.parametrize("labels", ["torque/*", None])
def test_a_weak_servo_is_learned(labels):
    """From its torque or from its motion alone, a network moves nearer to the machine than the model does."""
    model = loads(TEXT.format(20, 8, 8))
    training = TrainingOptions(epochs=25, batch=8)
    trained = learn_actuators(model, [logged(0), logged(1)], LAGGED, torque=labels, training=training)
    fresh = logged(7, seconds=2.0)
    assert apart(trained, fresh) < 0.25 * apart(None, fresh)


def test_another_rate_is_refused(tmp_path):
    """A history of samples means nothing at another step, also after it was kept in files."""
    model = loads(TEXT.format(20, 8, 8))
    trained = learn_actuators(model, [logged(0, 6.0)], GRU(4, interval=STEP), training=TrainingOptions(epochs=1))
    write_networks(trained, tmp_path)
    again = read_networks(tmp_path)
    with jax.enable_x64(True):
        assert Simulator.of(model, blueprint=again).learned is not None
        with pytest.raises(TruesimError, match=r"0\.0025 s.*0\.001 s"):
            Simulator.of(model, timestep=0.001, blueprint=again)
    with pytest.raises(TruesimError, match=r"sampled every 0\.0025 s"):
        learn_actuators(model, [logged(0, 2.0)], Lagged(0.002, (0.0, 0.01)))
    with pytest.raises(TruesimError, match="needs its sampling interval"):
        learn_actuators(model, [logged(0, 2.0)], GRU(4))


def test_the_motor_bounds_the_network():
    """However large the network's number is, the joint feels no more than the motor's bound."""
    model = loads(TEXT.format(20, 8, 8))
    trained = learn_actuators(model, [logged(0, 6.0)], LAGGED, training=TrainingOptions(epochs=1))
    huge = Trained(trained.blueprint, {LEARNED_ACTUATORS: 1e3 * trained.weights[LEARNED_ACTUATORS]})
    with jax.enable_x64(True):
        simulator = Simulator.of(model, blueprint=huge)
        state = simulator.initial_state(command=jnp.ones(1))
        applied = simulator.equation(jnp.ones(1), None, state).applied(state.q, state.v)
    assert np.abs(np.asarray(applied)).max() == pytest.approx(8.0)


def test_it_drops_into_any_robot(tmp_path):
    """From files, with its lags, into a robot of two servos: each is driven as the one that it was learned from."""
    model = loads(TEXT.format(20, 8, 8))
    write_networks(learn_actuators(model, [logged(0, 6.0)], LAGGED, training=TrainingOptions(epochs=1)), tmp_path)
    trained = read_networks(tmp_path)
    assert trained.rules[0].network == LAGGED
    body = """<body name="{0}" pos="0 {1} 0"><joint name="{0}" axis="0 1 0"/>
      <inertial pos="0 0 -.2" mass="1" diaginertia=".02 .02 .001"/></body>"""
    servo = '<position name="{0}" joint="{0}" kp="20" kv="1" forcerange="-8 8"/>'
    pair = loads(
        f"""<mujoco><option timestep="0.0025"/><worldbody>{body.format("a", 0)}{body.format("b", 1)}</worldbody>
        <actuator>{servo.format("a")}{servo.format("b")}</actuator></mujoco>"""
    )
    command = np.random.default_rng(0).normal(size=(40, 2))
    with jax.enable_x64(True):
        twin = Simulator.of(pair, blueprint=trained)
        both = record(twin, twin.initial_state(), jnp.asarray(command)).q
        alone = Simulator.of(model, blueprint=trained)
        for k in range(2):
            one = record(alone, alone.initial_state(), jnp.asarray(command[:, [k]])).q
            np.testing.assert_allclose(both[:, k], one[:, 0], atol=1e-9)


def test_the_past_begins_as_the_present():
    """Before its first step a lagged network has seen what it sees then: no kick at the start."""
    with jax.enable_x64(True):
        net = LAGGED.make(3, 1, silent=False)
        x, h = jnp.array([0.3, -0.2, 0.5]), jnp.zeros(net.hidden)
        first, h = net(x, h)
        second, _ = net(x, h)
        assert float(jnp.abs(first - second).max()) == 0.0
        moved, _ = net(2 * x, h)
        assert float(jnp.abs(moved - first).max()) > 0.0
