"""What networks do along the logs of a fit: how large their part is, and of what they have made it depend."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float
from truesim.identify.evaluate import errors, predictions
from truesim.identify.kernels import NATIVE
from truesim.identify.problem import Problem
from truesim.identify.weights import is_network
from truesim.model.kinds import BALL, HINGE
from truesim.simulate import Simulator, State
from truesim.simulate.augment import ports
from truesim.simulate.augment.learned import Listener, Network
from truesim.simulate.augment.memory import PREVIOUS
from truesim.simulate.backend import Backend
from truesim.simulate.compiled import compiled

LOGS, SAMPLES = 3, 2000
"""Logs, and samples of each, that are looked at."""
BINS, POINTS, GRID = 24, 300, 81
"""Of an input's range; of a picture; of a curve."""
BEYOND = 0.3
"""A curve goes on beyond what was seen by this part of it on either side."""


class Seen(NamedTuple):
    """What passed a network at one sample, or at many, stacked."""

    features: Float[Array, "*samples features"]
    """Inputs over their typical sizes: a row each, or one after the other."""
    before: Float[Array, "*samples rows width"]
    """The physics' own value."""
    after: Float[Array, "*samples rows width"]


@dataclasses.dataclass(frozen=True)
class Effect:
    """What one network does, in the unit of its output."""

    term: float
    """Root mean square of the physics' own value."""
    change: float
    """Root mean square of what the network makes of it, less that."""
    unit: str
    input: str
    """The input that its output depends on most."""
    input_unit: str
    seen: tuple[float, float]
    """Range of this input in the logs."""
    x: tuple[float, ...]
    curves: dict[str, tuple[float, ...]]
    """What it adds (gives, if it replaces) over `x`, by the name of a row, other inputs at their medians."""
    points: tuple[tuple[float, float], ...]
    """The same at samples of the logs."""


class _Recorder(Listener):
    """Remembers what passes the networks."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.passed: dict[str, Seen] = {}

    def _changed(self, network: Network, value: Array) -> Array:
        rows, features = np.array(network.rows), network.features([self._value(name) for name in network.inputs])
        after = super()._changed(network, value)
        own = (jnp.reshape(x, (x.shape[0], -1))[rows] for x in (value, after))
        self.passed[network.name] = Seen(features, *own)
        return after


def effects(problem: Problem, theta: Float[np.ndarray, "size"]) -> dict[str, Effect]:
    """Effects of the networks that change forces, by name."""
    simulator = problem.simulator_at(theta)
    learned = simulator.learned
    assert learned is not None, "a problem with a blueprint has networks"
    passed = _passed(problem, simulator)
    return {n.name: _effect(simulator, n, passed[n.name]) for n in learned.networks if n.name in passed}


def silent_errors(problem: Problem, theta: Float[np.ndarray, "size"], window: float) -> dict[str, float] | None:
    """Median open-loop errors with all networks silent; none if a network has taken the place of physics."""
    if problem.blueprint is None or any(rule.mode == "replace" for rule in problem.blueprint.rules):
        return None
    own = np.concatenate([np.full(p.size, is_network(p)) for p in problem.parameters])
    plan = getattr(problem.blueprint, "blueprint", problem.blueprint)
    with jax.enable_x64(True):
        fresh = plan.build(problem.simulator)
        start = np.concatenate([np.asarray(fresh.weights(k)) for k in range(len(plan.rules))])
    still = theta.copy()
    still[own] = start
    return {row: e.median for row, e in errors(problem, list(predictions(problem, still, window))).items()}


def _passed(problem: Problem, simulator: Simulator) -> dict[str, Seen]:
    """What passed each network at samples of the logs, one after the other."""

    def along(q: Array, v: Array, command: Array) -> dict[str, Seen]:
        def now(memory: Any, sample: tuple[Array, Array, Array]) -> tuple[Any, dict[str, Seen]]:
            q, v, u = sample
            state = simulator.started(State(q, v, jnp.zeros(()), memory=memory), u)
            equation = simulator.equation(u, None, state)
            learned = simulator.learned
            assert learned is not None, "it has networks"
            before = learned.first_memory() if state.memory is None else state.memory
            tap = equation.shown(_Recorder(learned, (simulator.model, q), before), q, v)
            equation.applied(q, v, tap)
            return learned.remembered(tap.seen, state.memory), dict(tap.passed)

        first = simulator.started(State(q[0], v[0], jnp.zeros(())), command[0]).memory
        return jax.lax.scan(now, first, (q, v, command))[1]

    size = min(SAMPLES, *(len(r.time) for r in problem.recordings))
    motions = [(r.q[:size], r.v[:size], r.command[:size]) for r in problem.recordings[:LOGS]]
    with jax.enable_x64(True):
        backend: Backend = "xla" if problem.trained.size > NATIVE else "native"
        found = [compiled(along, *motions[0], backend=backend)(*motion) for motion in motions]
    return jax.tree.map(lambda *x: np.concatenate(x), *found)


def _effect(simulator: Simulator, network: Network, passed: Seen) -> Effect:
    """The effect of a network at the row and component where it is largest."""
    added = passed.after if network.mode == "replace" else passed.after - passed.before
    row, part = np.unravel_index(np.argmax(np.mean(added**2, axis=0)), added.shape[1:])
    y = added[:, row, part]
    features = passed.features if network.sharing == "whole" else passed.features[:, row]
    names, units, scales = _inputs(simulator, network)
    k = int(np.argmax([_explained(x, y) for x in features.T]))
    x = features[:, k] * scales[k]
    low, high = float(x.min()), float(x.max())
    grid = np.linspace(low - BEYOND * (high - low), high + BEYOND * (high - low), GRID)
    some = np.linspace(0, len(x) - 1, min(POINTS, len(x))).astype(int)
    rows = ports.names(simulator, ports.port(network.output))
    curves = (
        {}
        if network.head is not None or network.recurrent or network.mode == "scale"
        else _curves(network, np.median(passed.features, axis=0), (k, grid / scales[k]), int(part))
    )
    changes = passed.after - passed.before
    return Effect(
        term=float(np.sqrt(np.mean(passed.before**2))),
        change=float(np.sqrt(np.mean(changes**2))),
        unit=_unit(simulator, network.output, int(part)),
        input=names[k],
        input_unit=units[k],
        seen=(low, high),
        x=tuple(grid.tolist()),
        curves={rows[network.rows[r]]: tuple(values.tolist()) for r, values in curves.items()},
        points=tuple(zip(x[some].tolist(), y[some].tolist(), strict=True)),
    )


def _curves(network: Network, middle: np.ndarray, sweep: tuple[int, np.ndarray], part: int) -> dict[int, np.ndarray]:
    """What a network gives as one input goes along a range, for each of its rows that differs from the others."""
    k, grid = sweep
    with jax.enable_x64(True):
        if network.sharing == "whole":
            x = np.tile(middle, (len(grid), 1))
            x[:, k] = grid
            given = network.size * np.asarray(jax.vmap(lambda x: network.run(x, None)[0])(x))
            width = given.shape[1] // len(network.rows)
            return {r: given[:, r * width + part] for r in range(len(network.rows))}
        x = np.tile(middle, (len(grid), 1, 1))
        x[:, :, k] = grid[:, None]
        given = network.size * np.asarray(jax.vmap(lambda x: network.run(x, None)[0])(x))
    return {r: given[:, r, part] for r in range(len(network.rows))}


def _inputs(simulator: Simulator, network: Network) -> tuple[list[str], list[str], list[float]]:
    """Name, unit and typical size of each feature."""
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
    """Unit of a component of a port; of those that differ between hinges and slides, the one that this robot has."""
    port = ports.port(name)
    units = port.unit.split(", ")
    unit = units[part * len(units) // port.width]
    turning = all(kind in (HINGE, BALL) for kind in simulator.model.joints.kinds)
    return unit.partition("|")[0] if turning else unit.replace("|", " or ")


def _explained(x: Float[np.ndarray, "samples"], y: Float[np.ndarray, "samples"]) -> float:
    """Which part of the variance of y its mean in bins of x accounts for."""
    edges = np.quantile(x, np.linspace(0, 1, BINS + 1)[1:-1])
    bins = np.searchsorted(edges, x)
    counts = np.maximum(np.bincount(bins, minlength=BINS), 1)
    means = np.bincount(bins, y, minlength=BINS) / counts
    return float(np.var(means[bins]) / max(np.var(y), 1e-300))
