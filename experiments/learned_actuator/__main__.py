"""Errors of learned actuators: `python -m experiments.learned_actuator [--quick]`."""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from experiments.learned_actuator.machine import KD, KP, RATE, SATURATION, excitation, policy_like, recorded, robot
from truesim.files.logs import Log, motion, prepare
from truesim.identification.learned_actuators import TrainingOptions, learn_actuators
from truesim.physics.actuators.forces import actuator_forces
from truesim.physics.blueprint import GRU, Lagged, Trained
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator, State, record

LAGS = (0.0, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03)
"""[s]"""
Pair = tuple[float, float]
TESTS, TEST_SECONDS, WINDOW = 3, 20.0, 0.5


def main(quick: bool) -> None:
    """Train on four minutes of excitation and test on policy-like motion."""
    seconds, training = (40.0, TrainingOptions(epochs=10)) if quick else (240.0, TrainingOptions())
    model = robot()
    logs = [recorded(excitation(seconds / 4, seed), seed, push=0.5) for seed in range(4)]
    tests = [recorded(policy_like(TEST_SECONDS, 100 + k), 100 + k) for k in range(TESTS)]
    networks = {"lagged MLP": Lagged(1 / RATE, LAGS), "GRU": GRU(24, interval=1 / RATE)}
    ideal, bounded = errors(model, tests, None), errors(robot(SATURATION), tests, None)
    print(f"Commands beyond what the motor can give: {100 * saturated(tests):.0f} % of the test samples.")
    heads = ("torque MAE [N m]", 18), ("of ideal", 10), ("of bounded", 12), ("motion [rad]", 14), ("of ideal", 10)
    print(" " * 28 + "".join(f"{head:>{width}}" for head, width in (*heads, ("CPU [s]", 9))))
    show("ideal PD", ideal, (ideal, bounded), 0.0)
    show("PD with the motor's bound", bounded, (ideal, bounded), 0.0)
    for kind, network in networks.items():
        for labels, column in (("torque labels", "torque/*"), ("motion only", None)):
            begin = time.process_time()
            trained = learn_actuators(model, logs, network, torque=column, training=training)
            show(f"{kind}, {labels}", errors(model, tests, trained), (ideal, bounded), time.process_time() - begin)


def show(what: str, found: Pair, models: tuple[Pair, Pair], cpu: float) -> None:
    """Print errors of torque and motion, relative to an ideal servo and to one with the motor's torque limit."""
    (torque, motion), (ideal, bounded) = found, models
    parts = f"{100 * torque / ideal[0]:8.1f} %{100 * torque / bounded[0]:10.1f} %"
    print(f"{what:28}{torque:18.4f}{parts}{motion:14.5f}{100 * motion / ideal[1]:8.1f} %{cpu:9.0f}", flush=True)


def saturated(tests: list[Log]) -> float:
    """Fraction of samples at which the servo demands more than the motor's torque limit."""
    asked = [
        KP * (log.column("ctrl/servo") - q) - KD * np.gradient(q, 1 / RATE)
        for log in tests
        for q in [log.column("qpos/joint")]
    ]
    return float(np.mean(np.abs(np.concatenate(asked)) > SATURATION))


def errors(model: Model, tests: list[Log], trained: Trained | None) -> Pair:
    """Mean absolute error of the torque along the measured motion, and of the motion in windows of half a second."""
    pairs = [_errors(model, log, trained) for log in tests]
    return float(np.mean([t for t, _ in pairs])), float(np.mean([q for _, q in pairs]))


def _errors(model: Model, log: Log, trained: Trained | None) -> tuple[float, float]:
    with jax.enable_x64(True):
        simulator = Simulator.of(model, blueprint=trained)
        shown = motion(prepare(log, model), model)
        command = log.column("ctrl/servo")[:, None]
        force = _forces(simulator, shown.q, shown.v, command)
        torque = float(np.nanmean(np.abs(force - log.column("torque/servo"))[RATE:-RATE]))
        return torque, _motion_error(simulator, log, shown.q, shown.v)


def _forces(simulator: Simulator, q: np.ndarray, v: np.ndarray, command: np.ndarray) -> np.ndarray:
    """Torque of the actuator along a measured motion."""

    def now(memory, sample):
        q, v, u = sample
        state = simulator.started(State(q, v, jnp.zeros(()), memory=memory), u)
        tap = simulator.tap(state, u)
        force = actuator_forces(simulator.model, q, v, u, tap).generalized[0]
        after = None if simulator.learned is None else simulator.learned.remembered(tap.seen, state.memory)
        return after, force

    samples = tuple(jnp.asarray(np.nan_to_num(x)) for x in (q, v, command))
    learned = simulator.learned
    memory = None if learned is None else learned.initial_memory()
    return np.asarray(jax.lax.scan(now, memory, samples)[1])


def _motion_error(simulator: Simulator, log: Log, q: np.ndarray, v: np.ndarray) -> float:
    """RMS error of positions in simulated windows; network memories are initialized on the previous window."""
    size, found = int(WINDOW * RATE), []
    command = log.column("ctrl/servo")[:, None]
    for start in range(2 * size, len(q) - size, 4 * size):
        warm = slice(start - size, start)
        memory = _memory(simulator, q[warm], v[warm], command[warm])
        state = State(jnp.asarray(q[start]), jnp.asarray(v[start]), jnp.zeros(()), memory=memory)
        moved = np.asarray(record(simulator, state, command[start : start + size]).q)[:-1]
        found.append(np.sqrt(np.mean((moved - q[start : start + size]) ** 2)))
    return float(np.median(found))


def _memory(simulator: Simulator, q: np.ndarray, v: np.ndarray, command: np.ndarray):
    """Memory of the networks after a measured motion."""
    learned = simulator.learned
    if learned is None:
        return None

    def now(memory, sample):
        q, v, u = sample
        tap = simulator.tap(State(q, v, jnp.zeros(()), memory=memory), u)
        actuator_forces(simulator.model, q, v, u, tap)
        return learned.remembered(tap.seen, memory), None

    samples = tuple(jnp.asarray(x) for x in (q, v, command))
    return jax.lax.scan(now, learned.initial_memory(), samples)[0]


if __name__ == "__main__":
    main("--quick" in sys.argv)
