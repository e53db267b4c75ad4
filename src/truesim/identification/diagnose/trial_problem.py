"""Problems with derivatives by finite differences: many of them share one compiled simulation.

Exact derivatives need a kernel for every set of free parameters. Here one kernel without derivatives takes all
parameters that any trial may free, and forward differences of it replace the Jacobian. They are exact enough to find
out by how much a residual falls. Columns of the parameters that are free in any case and of the initial states, most of
all, change little from iteration to iteration: they are kept for some of them, as in a chord method.
"""

import dataclasses
import functools
from typing import Any

import jax
import numpy as np

from truesim.core.typing import Float, Int
from truesim.identification.problem.kernels import TimedKernel
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.segments import Nodes
from truesim.identification.problem.shooting import Segment, Sensitivity, SimulatedSegment
from truesim.physics.parameters import Parameter, ParameterSet

VARIANTS_BYTES = 1 << 25
"""Size of the segments with moved parameters and states that are simulated at a time. Larger needs more memory."""
TRIAL_STEP = 1e-6
"""Step of the differences, in coordinates and in states [rad, m, rad/s or m/s]."""
MAX_MOVE = 0.25
"""Distance of any coordinate within which columns of the initial states and of parameters that are free in any case are
kept. Larger is faster, and trials that begin far from their end do not come there."""


@dataclasses.dataclass
class KeptColumns:
    """Derivatives of an earlier iteration."""

    sensitivity: Sensitivity | None = None
    at: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))
    """Coordinates of each segment's parameters there."""


@dataclasses.dataclass(frozen=True)
class WideProblem(Problem):
    """A problem in which every parameter is free that any trial may free."""

    @functools.cached_property
    def start(self) -> Float[np.ndarray, " slots"]:
        """Coordinates of the start values, exactly."""
        return np.concatenate([p.transform.coordinates(p.start) for p in self.slots])


@dataclasses.dataclass(frozen=True)
class TrialProblem(Problem):
    """Some of the segments of a wider problem, with only some of its parameters free."""

    wide: WideProblem | None = None
    """The problem whose compiled values are used; all its other parameters keep their start."""
    members: Int[np.ndarray, " own"] | None = None
    """Coordinates of this problem's slots among those of the wider problem's."""
    freed: int = 0
    """Number of slots, the last ones, of parameters that are free in this trial only."""
    kept: KeptColumns = dataclasses.field(default_factory=KeptColumns)

    @functools.cached_property
    def kernel(self) -> TimedKernel:
        """Segments with derivatives by finite differences."""
        return TimedKernel(self._differentiate, 0.0)

    def simulate(self, theta: Float[np.ndarray, " size"], nodes: Nodes) -> SimulatedSegment:
        """Simulate all segments."""
        assert self.wide is not None, "a trial belongs to a wider problem"
        own, *rest = self.arguments(theta, nodes)
        every = np.tile(self.wide.start, (len(own), 1))
        every[:, self.members] = own
        return self.wide.kernels.values(every, *rest)

    def begin(self, earlier: Sensitivity, theta: Float[np.ndarray, " size"]) -> None:
        """Begin with the columns of a trial that had fewer parameters and ended where this one starts.

        Args:
            earlier: Derivatives of the other trial.
            theta: Coordinates at which this one starts.
        """
        nx, size = 2 * self.simulator.model.nv, self.slots.size
        before = earlier.state.shape[-1] - nx

        def widened(x: Any) -> np.ndarray:
            added = np.zeros((*x.shape[:-1], size - before))
            return np.concatenate([x[..., :before], added, x[..., before:]], axis=-1)

        self.kept.sensitivity = Sensitivity(widened(earlier.residual), widened(earlier.state))
        self.kept.at = theta[self.columns[self.layout.log]]

    def _differentiate(
        self, own: np.ndarray, known: np.ndarray, segment: Segment, *weights: np.ndarray
    ) -> tuple[SimulatedSegment, Sensitivity]:
        size, every = own.shape[1], np.arange(own.shape[1] + 2 * segment.v.shape[1])
        before, whole = self.kept.sensitivity, len(own) == len(self.layout.log)
        reused = whole and self.kept.at.shape == own.shape and bool(np.abs(self.kept.at - own).max() < MAX_MOVE)
        columns = every[size - self.freed : size] if reused else every
        bytes_each = sum(x[:1].nbytes for x in jax.tree.leaves(segment)) * (1 + len(columns))
        step = max(1, VARIANTS_BYTES // bytes_each)
        parts = (slice(first, first + step) for first in range(0, len(own), step))
        done = [
            self._difference(columns, *jax.tree.map(lambda x, k=k: x[k], (own, known, segment)), *weights)
            for k in parts
        ]
        simulated, found = jax.tree.map(lambda *x: np.concatenate(x), *done)
        if before is not None and reused:
            merged = [np.array(x) for x in before]
            for x, new in zip(merged, found, strict=True):
                x[..., columns] = new
            return simulated, Sensitivity(*merged)
        if whole:
            self.kept.sensitivity, self.kept.at = found, own.copy()
        return simulated, found

    def _difference(
        self,
        columns: Int[np.ndarray, " some"],
        own: np.ndarray,
        known: np.ndarray,
        segment: Segment,
        *weights: np.ndarray,
    ) -> tuple[SimulatedSegment, Sensitivity]:
        """Some segments with some columns of their derivatives by finite differences."""
        assert self.wide is not None, "a trial belongs to a wider problem"
        assert self.members is not None, "a trial has a place in the wider problem"
        (count, size), nv, variants = own.shape, segment.v.shape[1], 1 + len(columns)
        distinct, row = np.unique(own, axis=0, return_inverse=True)  # segments of one log have the same parameters
        theta = np.tile(self.wide.start, (variants, len(distinct), 1))
        theta[..., self.members] = distinct
        moved = columns[columns < size]
        theta[1 + np.arange(len(moved)), :, self.members[moved]] += TRIAL_STEP

        def repeat(x: np.ndarray) -> np.ndarray:
            return np.broadcast_to(x, (variants, *np.shape(x))).reshape(variants * count, *np.shape(x)[1:])

        states = columns[columns >= size] - size
        nodes = self._moved_nodes(Nodes(np.asarray(segment.q), np.asarray(segment.v)), len(moved), states)
        several = jax.tree.map(repeat, segment)._replace(q=nodes.q, v=nodes.v)
        values = self.wide.kernels.map.values(theta)[:, np.ravel(row)]
        out = self.wide.kernels.by_values(_flat(values), repeat(known), several, *weights)
        r, q, v, memory = (np.asarray(x).reshape(variants, count, *np.shape(x)[1:]) for x in out)
        base = SimulatedSegment(r[0], q[0], v[0], memory[0])
        ends = np.broadcast_to(q[0], q[1:].shape)
        dq = self.tangent_space.difference(_flat(q[1:]), _flat(ends)).reshape(variants - 1, count, nv)
        state = np.concatenate([dq, v[1:] - v[0]], axis=-1)
        return base, Sensitivity(*(np.moveaxis(x, 0, -1) / TRIAL_STEP for x in (r[1:] - r[0], state)))

    def _moved_nodes(self, nodes: Nodes, parameters: int, states: Int[np.ndarray, " some"]) -> Nodes:
        """Initial states of every variant: the last ones have moved components, after those of moved parameters."""
        count, nv = nodes.v.shape
        moves = np.zeros((1 + parameters + len(states), count, 2 * nv))
        moves[1 + parameters + np.arange(len(states)), :, states] = TRIAL_STEP
        q = np.broadcast_to(nodes.q, (len(moves), *nodes.q.shape))
        moved = self.tangent_space.integrate(_flat(q), _flat(moves[..., :nv]))
        return Nodes(np.asarray(moved), _flat(nodes.v + moves[..., nv:]))


def widen(problem: Problem, simulator: Any, parameters: tuple[Parameter, ...], level: int = 0) -> WideProblem:
    """A problem with more free parameters, for its compiled values.

    Args:
        problem: The problem.
        simulator: Its simulator, with room for the parameters.
        parameters: Parameters to free besides those that are.
        level: Optimization level of the kernel: 1 for hundreds of calls with many variants.
    """
    every = ParameterSet((*problem.solved, *parameters, *problem.trained))
    own = {f.name: getattr(problem, f.name) for f in dataclasses.fields(Problem)}
    return WideProblem(
        **own | {"simulator": simulator, "parameters": every, "like": None, "selection": None, "level": level}
    )


def trial(
    wide: WideProblem, solved: ParameterSet, freed: Int[np.ndarray, " some"], segments: Int[np.ndarray, " segments"]
) -> TrialProblem:
    """The problem with some of the wider problem's additional parameters free, on some segments.

    Args:
        wide: A problem from `widen`.
        solved: Parameters that are free in any case, the first of the wider problem's.
        freed: Indices of further parameters of the wider problem.
        segments: Segments to use.
    """
    every = wide.solved.parameters
    chosen = ParameterSet((*solved, *(every[k] for k in freed), *wide.trained))
    first = wide.slots.size - sum(p.size for p in every[len(solved) :])
    places = [np.arange(s.start, s.stop) for s in ParameterSet(every[len(solved) :]).slices()]
    members = np.concatenate([np.arange(first), *(first + places[k - len(solved)] for k in freed)])
    own = {f.name: getattr(wide, f.name) for f in dataclasses.fields(Problem)}
    own |= {"parameters": chosen, "like": wide, "selection": segments}
    return TrialProblem(**own, wide=wide, members=members, freed=len(members) - first)


def _flat(x: np.ndarray) -> np.ndarray:
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])
