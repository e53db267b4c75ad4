"""Rollouts and step Jacobians by the routines as programs of the JAX primitive, with their derivatives.

They run on NumPy arrays of a batch; `native.runtime.host` is the entry through which XLA calls them.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from truesim.native.runtime.cache import ArrayType
from truesim.native.runtime.host import HostProgram, share
from truesim.physics.routines.engine import Engine
from truesim.physics.simulation.step_derivatives import StepDerivatives


@dataclasses.dataclass(frozen=True)
class RolloutProgram:
    """Rollouts of an engine with some tables as inputs, and their derivatives, as programs of the JAX primitive."""

    derivatives: StepDerivatives
    digest: str
    names: tuple[str, ...]
    """Tables that are inputs."""
    steps: int

    @functools.cached_property
    def inputs(self) -> list[ArrayType]:
        """Configuration, velocity, acceleration, commands, tables."""
        sizes, real = self.engine.sizes, self.engine.dtype
        shapes = [(sizes["nq"],), (sizes["nv"],), (sizes["nv"],), (self.steps, sizes["nu"])]
        return [(shape, real) for shape in (*shapes, *map(self.engine.model.shape, self.names))]

    @functools.cached_property
    def outputs(self) -> list[ArrayType]:
        """Configurations, velocities, accelerations and iterations of each step."""
        sizes, real = self.engine.sizes, self.engine.dtype
        real_outputs = [((self.steps, sizes[n]), real) for n in ("nq", "nv", "nv")]
        return [*real_outputs, ((self.steps,), np.dtype(np.int32))]

    @property
    def engine(self) -> Engine:
        """The routines."""
        return self.derivatives.engine

    def program(self) -> HostProgram:
        """The rollout."""
        return share(
            HostProgram(self._identity("rollout"), self._run, self.inputs, self.outputs, self.tangent, self.pullback)
        )

    def _identity(self, *parts: Any) -> str:
        return "\0".join(map(str, (*parts, self.digest, self.engine.dtype, self.steps, *self.names)))

    def _run(self, arrays: list[np.ndarray], batch: int, threads: int) -> list[np.ndarray]:
        q, v, start, ctrl = self._widen(arrays[:4], batch)
        rolled = self.engine.rollout(q, v, start, ctrl, threads, self._tables(arrays))
        return [rolled.qpos, rolled.qvel, rolled.warmstart, rolled.iterations]

    def _widen(self, arrays: Sequence[np.ndarray], batch: int) -> list[np.ndarray]:
        given = self.inputs[:4] if len(arrays) == 4 else self.outputs[:3]
        shapes = [(batch, *shape) for shape, _ in given]
        return [x if x.shape == s else np.broadcast_to(x, s) for x, s in zip(arrays, shapes, strict=True)]

    def _tables(self, arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        return dict(zip(self.names, arrays[4 : len(self.inputs)], strict=True))

    def _moving(self, moving: tuple[bool, ...]) -> tuple[str, ...]:
        own = tuple(name for name, moves in zip(self.names, moving[4:], strict=True) if moves)
        self.derivatives.prepare(self.names, own)
        return own

    def _steps_of(self, arrays: Sequence[np.ndarray], batch: int) -> tuple[list[list[np.ndarray]], list[np.ndarray]]:
        """State and control before each step, with the acceleration of the step itself; and results of the rollout."""
        q, v, _, ctrl = self._widen(arrays[:4], batch)
        count = len(self.inputs)
        results = self._widen(arrays[count : count + 3], batch)
        before = [
            [q if t == 0 else results[0][:, t - 1], v if t == 0 else results[1][:, t - 1], results[2][:, t], ctrl[:, t]]
            for t in range(self.steps)
        ]
        return before, results

    def pullback(self, moving: tuple[bool, ...], given: tuple[bool, ...]) -> HostProgram:
        """Program of the cotangents of the moving inputs; none pass through accelerations, which only warm-start."""
        names = self._moving(moving)
        moves = [i for i, m in zip(self.inputs, moving, strict=True) if m]
        known = [o for o, g in zip(self.outputs[:3], given, strict=True) if g]

        def run(arrays: list[np.ndarray], batch: int, threads: int) -> list[np.ndarray]:
            rest = iter(arrays[len(self.inputs) + len(self.outputs) :])
            found = self._pull(arrays, [next(rest) if g else None for g in given], names, batch, threads)
            return [x for x, m in zip(found, moving, strict=True) if m]

        identity = self._identity("pullback", moving, given)
        return share(HostProgram(identity, run, self.inputs + self.outputs + known, moves))

    def _pull(
        self, arrays: list[np.ndarray], given: list[Any], moving: tuple[str, ...], batch: int, threads: int
    ) -> list[Any]:
        """Cotangents of all inputs."""
        before, results = self._steps_of(arrays, batch)
        tables, space, (nv, nu) = (
            self._tables(arrays),
            self.derivatives.space,
            (self.engine.sizes[n] for n in ("nv", "nu")),
        )
        to_q, to_v, _ = given
        displacement, velocity = (np.zeros((batch, nv), self.engine.dtype) for _ in range(2))
        control = np.zeros((batch, self.steps, nu), self.engine.dtype)
        totals: dict[str, Any] = dict.fromkeys(moving, 0.0)
        for t in reversed(range(self.steps)):
            if to_q is not None:
                displacement = displacement + space.pull(results[0][:, t], to_q[..., t, :])
            if to_v is not None:
                velocity = velocity + to_v[..., t, :]
            pulled = self.derivatives.pull(
                before[t], results[1][:, t], (displacement, velocity), tables, moving, threads
            )
            displacement, velocity, control[:, t] = pulled.displacement, pulled.velocity, pulled.control
            totals = {name: totals[name] + pulled.tables[name] for name in moving}
        start = np.zeros((batch, nv), self.engine.dtype)
        own = [totals.get(name) for name in self.names]
        return [space.lift(before[0][0], displacement), velocity, start, control, *own]

    def tangent(self, moving: tuple[bool, ...]) -> HostProgram:
        """Program of the tangents of configurations, velocities and accelerations, the last of which are zero."""
        names = self._moving(moving)
        moves = [i for i, m in zip(self.inputs, moving, strict=True) if m]

        def run(arrays: list[np.ndarray], batch: int, threads: int) -> list[np.ndarray]:
            rest = iter(arrays[len(self.inputs) + len(self.outputs) :])
            return self._push(arrays, [next(rest) if m else None for m in moving], names, batch, threads)

        inputs = self.inputs + self.outputs + moves
        return share(HostProgram(self._identity("tangent", moving), run, inputs, self.outputs[:3]))

    def _push(
        self, arrays: list[np.ndarray], given: list[Any], moving: tuple[str, ...], batch: int, threads: int
    ) -> list[np.ndarray]:
        """Tangents of the results."""
        before, results = self._steps_of(arrays, batch)
        tables, space, nv = self._tables(arrays), self.derivatives.space, self.engine.sizes["nv"]
        zero = np.zeros((batch, nv), self.engine.dtype)
        q = before[0][0]
        displacement = zero if given[0] is None else space.project(q, np.broadcast_to(given[0], q.shape))
        x = np.concatenate([displacement, zero if given[1] is None else np.broadcast_to(given[1], zero.shape)], axis=1)
        tangents = [np.zeros_like(r) for r in results]
        by_name = dict(zip(self.names, given[4:], strict=True))
        for t in range(self.steps):
            A, B, C = self.derivatives.jacobian(before[t], results[1][:, t], tables, moving, threads)
            x = _products(A, x)
            if given[3] is not None:
                x = x + _products(B, given[3][..., t, :])
            for name in moving:
                shape = self.engine.model.shape(name)
                change = np.broadcast_to(by_name[name], (batch, *shape)).reshape(batch, -1)
                x = x + _products(C[name], change)
            tangents[0][:, t], tangents[1][:, t] = space.push(results[0][:, t], x[:, :nv]), x[:, nv:]
        return tangents

    def jacobian(self) -> HostProgram:
        """Program of the state after one step and its Jacobians by state and control, in the tangent space."""
        sizes, real = self.engine.sizes, self.engine.dtype
        nx = 2 * sizes["nv"]
        shapes = [(sizes["nq"],), (sizes["nv"],), (sizes["nv"],), (nx, nx), (nx, sizes["nu"])]

        def run(arrays: list[np.ndarray], batch: int, threads: int) -> Sequence[np.ndarray]:
            q, v, start, ctrl = self._widen(arrays[:4], batch)
            return self.derivatives.linearize([q, v, start, ctrl[:, 0]], self._tables(arrays), threads)

        self.derivatives.prepare(self.names, ())
        return share(HostProgram(self._identity("jacobian"), run, self.inputs, [(shape, real) for shape in shapes]))


def _products(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Products of a batch of matrices with vectors of a batch, or with one vector."""
    return np.matmul(matrices, vectors[..., None])[..., 0]
