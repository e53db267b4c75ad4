"""Compiled kernels of segments: values, forward-mode derivatives and reverse-mode gradients.

Without networks, or with small ones, each segment is a batch element of a native kernel. Products with thousands of
shared weights are matrix products over many segments: XLA compiles those for a fixed batch size.
"""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.typing import Array, Float
from truesim.identification.problem.routine_segments import RoutineSegments
from truesim.identification.problem.shooting import Segment, Sensitivity, Shooting, SimulatedSegment
from truesim.physics.dynamics import difference
from truesim.physics.parameters import ParameterSet
from truesim.physics.parameters.value_map import ValueMap
from truesim.physics.simulation.backend import plain_jax

MAX_NATIVE_WEIGHTS = 1000
"""Network weights beyond which XLA compiles the kernels. Larger uses native kernels for larger networks."""
XLA_BATCH_SIZE = 128
"""Segments that an XLA kernel simulates at once. Larger wastes more work on padding."""
MAX_BATCH_WITH_DERIVATIVES = 1000
"""Segments beyond which predictions have a kernel of their own. Larger wastes more time on derivatives that nobody
reads; smaller compiles a second kernel for less."""
SEGMENT_ARGUMENTS = 3
"""Leading arguments that differ between segments: values of parameters, known values, the segment."""
_SCALAR = np.zeros(())
_SEGMENT = SimulatedSegment(_SCALAR, _SCALAR, _SCALAR, _SCALAR)
"""Structure of the results of a segment."""

MakeShooting = Callable[[Array | None], Shooting]
"""Builds the shooting from shared weights, or from none."""


class Pullback(NamedTuple):
    """A gradient in parts, to be summed over the first axes."""

    theta: Float[Array, "*segments slots"]
    """By the values or coordinates of the parameters of each segment's log."""
    weights: Float[Array, "*parts weights"]
    """By the weights that all segments share."""


@dataclasses.dataclass(frozen=True)
class TimedKernel:
    """A compiled function and its compilation time."""

    run: Callable[..., Any]
    seconds: float
    """[s]"""

    def __call__(self, *args: Any) -> Any:
        """Run the function."""
        return self.run(*args)


@dataclasses.dataclass(frozen=True)
class SegmentKernels:
    """Functions of the segments of a problem, each compiled on first use.

    Their first argument are coordinates of the parameters. The compiled functions take physical values instead, so
    that they depend neither on start values nor on transforms; derivatives are converted after each call.
    """

    make: MakeShooting
    """Builds the shooting, by physical values, from shared weights."""
    example: tuple[Any, ...]
    """Arguments for one segment: coordinates, known values, the segment; then shared weights, if there are any."""
    slots: ParameterSet
    """Parameters of one log."""
    parts: tuple[Any, ...] = ()
    """Everything that the shooting is made from, with NaN in the place of each value that is an argument."""
    level: int = 1
    """Optimization level of LLVM; see `ProblemOptions.level`."""
    by_routines: bool = False
    """True if the routines of MuJoCo's constraint model simulate the steps."""

    @functools.cached_property
    def values(self) -> TimedKernel:
        """Segments without derivatives."""
        kernel = self.by_values
        return TimedKernel(lambda theta, *args: kernel(self.map.values(theta), *args), kernel.seconds)

    @functools.cached_property
    def by_values(self) -> TimedKernel:
        """Segments without derivatives; the first argument are physical values instead of coordinates."""
        structure = native.KernelStructure("values of segments", self.parts, _SEGMENT)
        if self.by_routines:
            return self._of_routines(RoutineSegments.values)
        return self._compile(lambda shooting: shooting.shoot, structure)

    @functools.cached_property
    def derivatives(self) -> TimedKernel:
        """Segments with their derivatives."""
        structure = native.KernelStructure(
            "derivatives of segments", self.parts, (_SEGMENT, Sensitivity(_SCALAR, _SCALAR))
        )
        kernel = (
            self._of_routines(RoutineSegments.derivatives)
            if self.by_routines
            else self._compile(lambda shooting: shooting.differentiate, structure)
        )

        def run(theta: np.ndarray, *args: Any) -> tuple[SimulatedSegment, Sensitivity]:
            simulated, found = kernel(self.map.values(theta), *args)
            return simulated, Sensitivity(*(self.map.chain(theta, np.asarray(x)) for x in found))

        return TimedKernel(run, kernel.seconds)

    def predict(self, theta: np.ndarray, known: np.ndarray, segment: Segment, *weights: np.ndarray) -> SimulatedSegment:
        """Segments without derivatives, by the kernel of derivatives if that is compiled and there are few segments."""
        compiled = "derivatives" in vars(self) and not self.by_routines
        if compiled and len(segment.q) <= MAX_BATCH_WITH_DERIVATIVES:
            return self.derivatives(theta, known, segment, *weights)[0]
        return self.values(theta, known, segment, *weights)

    @functools.cached_property
    def pullback(self) -> TimedKernel:
        """Reverse-mode gradient by parameters and shared weights."""
        structure = native.KernelStructure("gradient of segments", self.parts, Pullback(_SCALAR, _SCALAR))
        example = self._example if len(self.example) > SEGMENT_ARGUMENTS else (*self._example, np.zeros(0))
        kernel = compile_pullback(self.make, example, structure, self.level)

        def run(theta: np.ndarray, *args: Any) -> Pullback:
            found = kernel(self.map.values(theta), *args)
            return found._replace(theta=self.map.chain(theta, np.array(found.theta)))

        return TimedKernel(run, kernel.seconds)

    def _of_routines(self, method: Callable[..., Any]) -> TimedKernel:
        return _timed(lambda: functools.partial(method, self._routines))

    @functools.cached_property
    def _routines(self) -> RoutineSegments:
        return RoutineSegments(self.make(None), self._example)

    def _compile(
        self, method: Callable[[Shooting], Callable[..., Any]], structure: native.KernelStructure
    ) -> TimedKernel:
        return compile_segments(lambda weights: method(self.make(weights)), self._example, structure, self.level)

    @functools.cached_property
    def map(self) -> ValueMap:
        """Map from coordinates to physical values."""
        return ValueMap(self.slots)

    @functools.cached_property
    def _example(self) -> tuple[Any, ...]:
        """Arguments of the compiled functions for one segment."""
        return self.map.values(self.example[0]), *self.example[1:]


def compile_segments(
    make: Callable[[Array | None], Callable[..., Any]],
    example: tuple[Any, ...],
    structure: native.KernelStructure | None = None,
    level: int = 1,
) -> TimedKernel:
    """Compile a function of physical values, known values and a segment for batches of segments.

    Args:
        make: Builds the function from weights that all segments share.
        example: Arguments for one segment; then those weights, if there are any.
        structure: Everything that the function is made from.
        level: Optimization level of LLVM.
    """

    def run(values: Array, known: Array, segment: Segment, *weights: Array) -> Any:
        return make(weights[0] if weights else None)(values, known, segment)

    if _uses_xla(example):
        return _timed(lambda: _BatchedKernel(jax.vmap(run, (0, 0, 0, None)), example))
    return _timed(lambda: native.compile(run, *example, structure=structure, level=level))


def compile_pullback(
    make: MakeShooting, example: tuple[Any, ...], structure: native.KernelStructure | None = None, level: int = 1
) -> TimedKernel:
    """Compile the gradient of a weighted sum of residuals and end states, in reverse mode, for batches of segments.

    The compiled function takes the shared weights after the segment, then the cotangents of residuals and end states.

    Args:
        make: Builds the shooting from the shared weights.
        example: Arguments for one segment: physical values, known values, the segment, shared weights.
        structure: Everything that the shooting is made from.
        level: Optimization level of LLVM.
    """

    def outputs(values: Array, known: Array, segment: Segment, weights: Array) -> tuple[Array, Array]:
        shooting = make(weights if weights.size else None)
        simulated = shooting.shoot(values, known, segment)
        dq = difference(shooting.model, simulated.q, jax.lax.stop_gradient(simulated.q))
        return simulated.residual, jnp.concatenate([dq, simulated.v])

    def pull_back(
        f: Callable, values: Array, known: Array, segment: Segment, weights: Array, *cotangents: Array
    ) -> Pullback:
        _, vjp = jax.vjp(lambda values, weights: f(values, known, segment, weights), values, weights)
        return Pullback(*vjp(cotangents))

    with jax.enable_x64(True):
        cotangents = jax.eval_shape(outputs, *example)
    if _uses_xla(example):
        batched = jax.vmap(outputs, (0, 0, 0, None))

        def run(*args: Any) -> Pullback:
            by_values, weights = pull_back(batched, *args)
            return Pullback(by_values, weights[None])

        return _timed(lambda: _BatchedKernel(run, (*example, *cotangents)))
    pullback = functools.partial(pull_back, outputs)
    return _timed(lambda: native.compile(pullback, *example, *cotangents, structure=structure, level=level))


def _uses_xla(example: tuple[Any, ...]) -> bool:
    return len(example) > SEGMENT_ARGUMENTS and example[SEGMENT_ARGUMENTS].size > MAX_NATIVE_WEIGHTS


def _timed(make: Callable[[], Callable[..., Any]]) -> TimedKernel:
    begin = time.perf_counter()
    with jax.enable_x64(True):
        kernel = make()
    return TimedKernel(kernel, time.perf_counter() - begin)


class _BatchedKernel:
    """An XLA kernel of a fixed batch size that takes any number of segments, as native kernels do."""

    def __init__(self, f: Callable[..., Any], example: tuple[Any, ...]):
        """Compile the kernel.

        Args:
            f: Takes `XLA_BATCH_SIZE` segments in all its arguments but the weights.
            example: Arguments for one segment, with the weights in their place.
        """

        def batch(x: Any) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct((XLA_BATCH_SIZE, *np.shape(x)), np.float64)

        self._ranks = [jax.tree.map(np.ndim, part) for part in example]
        shapes = [part if k == SEGMENT_ARGUMENTS else jax.tree.map(batch, part) for k, part in enumerate(example)]
        with plain_jax():
            self._run = jax.jit(f).lower(*shapes).compile()

    def __call__(self, *args: Any) -> Any:
        own = [k for k in range(len(args)) if k != SEGMENT_ARGUMENTS]
        ranked = [pair for k in own for pair in zip(*map(jax.tree.leaves, (args[k], self._ranks[k])), strict=True)]
        count = next(len(x) for x, rank in ranked if np.ndim(x) > rank)
        done = [self._batch(args, first, count) for first in range(0, count, XLA_BATCH_SIZE)]
        return jax.tree.map(lambda *x: np.concatenate(x), *done)

    def _batch(self, args: tuple[Any, ...], first: int, count: int) -> Any:
        """Run the segments from `first` on; padding repeats the last segment with zero cotangents."""
        element = np.arange(first, first + XLA_BATCH_SIZE)
        at, inside = np.minimum(element, count - 1), element < count

        def select(x: np.ndarray, rank: int) -> np.ndarray:
            return x[at] if np.ndim(x) > rank else np.broadcast_to(x, (XLA_BATCH_SIZE, *np.shape(x)))

        shared = SEGMENT_ARGUMENTS
        parts = [part if k == shared else jax.tree.map(select, part, self._ranks[k]) for k, part in enumerate(args)]
        parts[shared + 1 :] = [x * inside.reshape(-1, *[1] * (x.ndim - 1)) for x in parts[shared + 1 :]]
        with jax.enable_x64(True):
            return jax.tree.map(lambda x: np.asarray(x)[: inside.sum()], self._run(*parts))
