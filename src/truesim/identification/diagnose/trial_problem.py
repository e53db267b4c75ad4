"""Problems with derivatives by finite differences: many of them share one compiled simulation.

Exact derivatives need a kernel for every set of free parameters. Here one kernel without derivatives takes all
parameters that any trial may free, and forward differences of it replace the Jacobian. They are exact enough to find
out by how much a residual falls.
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

    def _differentiate(
        self, own: np.ndarray, known: np.ndarray, segment: Segment, *weights: np.ndarray
    ) -> tuple[SimulatedSegment, Sensitivity]:
        bytes_each = sum(x[:1].nbytes for x in jax.tree.leaves(segment)) * (1 + own.shape[1] + 2 * segment.v.shape[1])
        step = max(1, VARIANTS_BYTES // bytes_each)
        parts = (slice(first, first + step) for first in range(0, len(own), step))
        done = [self._difference(*jax.tree.map(lambda x, k=k: x[k], (own, known, segment)), *weights) for k in parts]
        return jax.tree.map(lambda *x: np.concatenate(x), *done)

    def _difference(
        self, own: np.ndarray, known: np.ndarray, segment: Segment, *weights: np.ndarray
    ) -> tuple[SimulatedSegment, Sensitivity]:
        """Some segments with derivatives by finite differences."""
        assert self.wide is not None, "a trial belongs to a wider problem"
        assert self.members is not None, "a trial has a place in the wider problem"
        (count, size), nv = own.shape, segment.v.shape[1]
        variants = 1 + size + 2 * nv
        distinct, row = np.unique(own, axis=0, return_inverse=True)  # segments of one log have the same parameters
        theta = np.tile(self.wide.start, (variants, len(distinct), 1))
        theta[..., self.members] = distinct
        steps = np.arange(size)
        theta[1 + steps, :, self.members[steps]] += TRIAL_STEP

        def repeat(x: np.ndarray) -> np.ndarray:
            return np.broadcast_to(x, (variants, *np.shape(x))).reshape(variants * count, *np.shape(x)[1:])

        nodes = self._moved_nodes(Nodes(np.asarray(segment.q), np.asarray(segment.v)), size)
        moved = jax.tree.map(repeat, segment)._replace(q=nodes.q, v=nodes.v)
        values = self.wide.kernels.map.values(theta)[:, np.ravel(row)]
        out = self.wide.kernels.by_values(_flat(values), repeat(known), moved, *weights)
        r, q, v, memory = (np.asarray(x).reshape(variants, count, *np.shape(x)[1:]) for x in out)
        base = SimulatedSegment(r[0], q[0], v[0], memory[0])
        ends = np.broadcast_to(q[0], q[1:].shape)
        dq = self.tangent_space.difference(_flat(q[1:]), _flat(ends)).reshape(variants - 1, count, nv)
        state = np.concatenate([dq, v[1:] - v[0]], axis=-1)
        return base, Sensitivity(*(np.moveaxis(x, 0, -1) / TRIAL_STEP for x in (r[1:] - r[0], state)))

    def _moved_nodes(self, nodes: Nodes, size: int) -> Nodes:
        """Initial states of every variant: each component of the state is moved in one of the last variants."""
        count, nv = nodes.v.shape
        moves = np.zeros((1 + size + 2 * nv, count, 2 * nv))
        k = np.arange(2 * nv)
        moves[1 + size + k, :, k] = TRIAL_STEP
        q = np.broadcast_to(nodes.q, (len(moves), *nodes.q.shape))
        moved = self.tangent_space.integrate(_flat(q), _flat(moves[..., :nv]))
        return Nodes(np.asarray(moved), _flat(nodes.v + moves[..., nv:]))


def widen(problem: Problem, simulator: Any, parameters: tuple[Parameter, ...]) -> WideProblem:
    """A problem with more free parameters, for its compiled values.

    Args:
        problem: The problem.
        simulator: Its simulator, with room for the parameters.
        parameters: Parameters to free besides those that are.
    """
    every = ParameterSet((*problem.solved, *parameters, *problem.trained))
    own = {f.name: getattr(problem, f.name) for f in dataclasses.fields(Problem)}
    return WideProblem(**own | {"simulator": simulator, "parameters": every, "like": None, "selection": None})


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
    return TrialProblem(**own, wide=wide, members=members)


def _flat(x: np.ndarray) -> np.ndarray:
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])
