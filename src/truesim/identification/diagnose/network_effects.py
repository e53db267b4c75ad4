"""Effects of trained networks along the logs of a fit: size, and dependence on their inputs."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float
from truesim.identification.diagnose.evaluation import errors, predictions
from truesim.identification.problem.kernels import MAX_NATIVE_WEIGHTS
from truesim.identification.problem.network_weights import is_network
from truesim.identification.problem.problem import Problem
from truesim.physics.augmentation.learned import Listener, PortNetwork
from truesim.physics.augmentation.memory import PREVIOUS
from truesim.physics.blueprint import ports
from truesim.physics.model.kinds import BALL, HINGE
from truesim.physics.simulation import Simulator, State, kernels
from truesim.physics.simulation.backend import Backend

EFFECT_LOGS, EFFECT_SAMPLES = 3, 2000
"""Maximum number of logs, and of samples of each. Larger is more representative and slower."""
EFFECT_BINS = 24
"""Bins of an input's range for the explained variance. Larger resolves steeper dependence and overfits more."""
EFFECT_POINTS, CURVE_POINTS = 300, 81
"""Maximum number of points of a figure, and number of points of a curve. Larger makes larger files."""
CURVE_MARGIN = 0.3
"""Extension of a curve on either side of the data, as a fraction of its range. Larger shows more extrapolation."""


class NetworkSamples(NamedTuple):
    """Inputs and outputs of a network at one sample, or stacked over samples."""

    features: Float[Array, "*samples features"]
    """Inputs divided by their scales, for each row or for all rows together."""
    before: Float[Array, "*samples rows width"]
    """Value of the physical model."""
    after: Float[Array, "*samples rows width"]
    """Value after the network."""


@dataclasses.dataclass(frozen=True)
class Effect:
    """Effect of one network, in the unit of its output."""

    term: float
    """Root mean square of the value of the physical model."""
    change: float
    """Root mean square of the change by the network."""
    unit: str
    input: str
    """Input that explains most of the variance of the output."""
    input_unit: str
    seen: tuple[float, float]
    """Range of this input in the logs."""
    x: tuple[float, ...]
    curves: dict[str, tuple[float, ...]]
    """Added value (output, if the network replaces a value) over `x` by row, with other inputs at their medians."""
    points: tuple[tuple[float, float], ...]
    """Input and added value at samples of the logs."""


class _Recorder(Listener):
    """Records inputs and outputs of the networks."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.samples: dict[str, NetworkSamples] = {}

    def _changed(self, network: PortNetwork, value: Array) -> Array:
        rows, features = np.array(network.rows), network.features([self._value(name) for name in network.inputs])
        after = super()._changed(network, value)
        own = (jnp.reshape(x, (x.shape[0], -1))[rows] for x in (value, after))
        self.samples[network.name] = NetworkSamples(features, *own)
        return after


def effects(problem: Problem, theta: Float[np.ndarray, " size"]) -> dict[str, Effect]:
    """Effects of the networks by name, for networks of the equation of motion."""
    simulator = problem.simulator_at(theta)
    learned = simulator.learned
    assert learned is not None, "a problem with a blueprint has networks"
    samples = _sample(problem, simulator)
    return {n.name: _effect(simulator, n, samples[n.name]) for n in learned.networks if n.name in samples}


def errors_without_networks(
    problem: Problem, theta: Float[np.ndarray, " size"], window: float
) -> dict[str, float] | None:
    """Median open-loop errors with all networks at their start; none if a network replaces physics."""
    if problem.blueprint is None or any(rule.mode == "replace" for rule in problem.blueprint.rules):
        return None
    own = np.concatenate([np.full(p.size, is_network(p)) for p in problem.parameters])
    spec = getattr(problem.blueprint, "blueprint", problem.blueprint)
    with jax.enable_x64(True):
        fresh = spec.build(problem.simulator)
        start = np.concatenate([np.asarray(fresh.weights(k)) for k in range(len(spec.rules))])
    without = theta.copy()
    without[own] = start
    return {row: e.median for row, e in errors(problem, list(predictions(problem, without, window))).items()}


def _sample(problem: Problem, simulator: Simulator) -> dict[str, NetworkSamples]:
    """Inputs and outputs of each network at samples of the logs, concatenated."""

    def along(q: Array, v: Array, command: Array) -> dict[str, NetworkSamples]:
        def advance(memory: Any, sample: tuple[Array, Array, Array]) -> tuple[Any, dict[str, NetworkSamples]]:
            q, v, u = sample
            state = simulator.started(State(q, v, jnp.zeros(()), memory=memory), u)
            equation = simulator.equation(u, None, state)
            learned = simulator.learned
            assert learned is not None, "it has networks"
            before = learned.initial_memory() if state.memory is None else state.memory
            tap = equation.show_state(_Recorder(learned, (simulator.model, q), before), q, v)
            equation.applied(q, v, tap)
            return learned.remembered(tap.seen, state.memory), dict(tap.samples)

        first = simulator.started(State(q[0], v[0], jnp.zeros(())), command[0]).memory
        return jax.lax.scan(advance, first, (q, v, command))[1]

    size = min(EFFECT_SAMPLES, *(len(r.time) for r in problem.recordings))
    motions = [(r.q[:size], r.v[:size], r.command[:size]) for r in problem.recordings[:EFFECT_LOGS]]
    with jax.enable_x64(True):
        backend: Backend = "xla" if problem.trained.size > MAX_NATIVE_WEIGHTS else "native"
        found = [kernels.compile(along, *motions[0], backend=backend)(*motion) for motion in motions]
    return jax.tree.map(lambda *x: np.concatenate(x), *found)


def _effect(simulator: Simulator, network: PortNetwork, samples: NetworkSamples) -> Effect:
    """Effect of a network at the row and component where it is largest."""
    added = samples.after if network.mode == "replace" else samples.after - samples.before
    row, part = np.unravel_index(np.argmax(np.mean(added**2, axis=0)), added.shape[1:])
    y = np.asarray(added)[:, row, part]
    features = samples.features if network.sharing == "whole" else samples.features[:, row]
    names, units, scales = _inputs(simulator, network)
    k = int(np.argmax([_explained(x, y) for x in features.T]))
    x = features[:, k] * scales[k]
    low, high = float(x.min()), float(x.max())
    grid = np.linspace(low - CURVE_MARGIN * (high - low), high + CURVE_MARGIN * (high - low), CURVE_POINTS)
    shown = np.linspace(0, len(x) - 1, min(EFFECT_POINTS, len(x))).astype(int)
    rows = ports.names(simulator, ports.port(network.output))
    curves = (
        {}
        if network.head is not None or network.recurrent or network.mode == "scale"
        else _curves(network, np.median(samples.features, axis=0), (k, grid / scales[k]), int(part))
    )
    changes = samples.after - samples.before
    return Effect(
        term=float(np.sqrt(np.mean(samples.before**2))),
        change=float(np.sqrt(np.mean(changes**2))),
        unit=_unit(simulator, network.output, int(part)),
        input=names[k],
        input_unit=units[k],
        seen=(low, high),
        x=tuple(grid.tolist()),
        curves={rows[network.rows[r]]: tuple(values.tolist()) for r, values in curves.items()},
        points=tuple(zip(x[shown].tolist(), y[shown].tolist(), strict=True)),
    )


def _curves(
    network: PortNetwork, median: np.ndarray, sweep: tuple[int, np.ndarray], part: int
) -> dict[int, np.ndarray]:
    """Outputs of a network over a sweep of one input, by row."""
    k, grid = sweep
    with jax.enable_x64(True):
        if network.sharing == "whole":
            x = np.tile(median, (len(grid), 1))
            x[:, k] = grid
            output = network.size * np.asarray(jax.vmap(lambda x: network.run(x, None)[0])(x))
            width = output.shape[1] // len(network.rows)
            return {r: output[:, r * width + part] for r in range(len(network.rows))}
        x = np.tile(median, (len(grid), 1, 1))
        x[:, :, k] = grid[:, None]
        output = network.size * np.asarray(jax.vmap(lambda x: network.run(x, None)[0])(x))
    return {r: output[:, r, part] for r in range(len(network.rows))}


def _inputs(simulator: Simulator, network: PortNetwork) -> tuple[list[str], list[str], list[float]]:
    """Name, unit and scale of each feature."""
    names, units, scales = [], [], []
    for name, beside, scale in zip(network.inputs, network.beside, network.scales, strict=True):
        port = ports.port(name.removeprefix(PREVIOUS))
        rows: list[str] = [""]
        if network.sharing == "whole":
            known = ports.names(simulator, port)
            rows = [f" of {n}" for n in (known if beside else [known[r] for r in network.rows])]
        parts = [f" {c}" for c in port.components] or [""]
        names += [f"{name}{part}{row}" for row in rows for part in parts]
        units += [_unit(simulator, port.name, c) for _ in rows for c in range(port.width)]
        scales += [scale] * (len(rows) * len(parts))
    return names, units, scales


def _unit(simulator: Simulator, name: str, part: int) -> str:
    """Unit of a component of a port; for ports of joints, the angular or the linear unit if all joints are alike."""
    port = ports.port(name)
    units = port.unit.split(", ")
    unit = units[part * len(units) // port.width]
    rotational = all(kind in (HINGE, BALL) for kind in simulator.model.joints.kinds)
    return unit.partition("|")[0] if rotational else unit.replace("|", " or ")


def _explained(x: Float[np.ndarray, " samples"], y: Float[np.ndarray, " samples"]) -> float:
    """Fraction of the variance of y that its mean in bins of x explains."""
    edges = np.quantile(x, np.linspace(0, 1, EFFECT_BINS + 1)[1:-1])
    bins = np.searchsorted(edges, x)
    counts = np.maximum(np.bincount(bins, minlength=EFFECT_BINS), 1)
    means = np.bincount(bins, y, minlength=EFFECT_BINS) / counts
    return float(np.var(means[bins]) / max(np.var(y), 1e-300))
