"""Expansions and passes of tasks with the file's contact: steps by the routines, all else by small kernels.

The routines simulate a batch of steps, with their Jacobians, in one call. The forward pass calls them knot by knot for
all step lengths at once; the backward pass is that of `passes` on NumPy arrays, whose products are too large for code
without loops. All methods have the arguments and results of those of `TaskKernels`.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from truesim.control.passes import CommandBox, Motion, Policy, first_carry, riccati_step
from truesim.control.transcription import Transcription
from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float
from truesim.physics.routines.engine import Rollout
from truesim.physics.simulation import StepRoutine
from truesim.physics.simulation.kernels import compile  # noqa: A004
from truesim.physics.simulation.table_step import reason_against

Tables = dict[str, np.ndarray]
"""Parameters of the routines by name, with a leading batch axis."""


class RoutinePasses:
    """Passes of one task structure whose steps are those of `StepRoutine`."""

    def __init__(
        self, functions: Transcription, kernel: Callable[[str], Callable[..., Any]], bounded: bool, threads: int
    ):
        """Prepare the routines.

        Args:
            functions: Functions of the task.
            kernel: Compiled functions by name, as `TaskKernels` makes them.
            bounded: True if any command has bounds.
            threads: Number of threads that share a batch of steps.
        """
        simulator = functions.simulator
        reason = reason_against(simulator)
        if functions.np:
            reason = f"{functions.design[0]} is designed with the motion"
        if reason is not None:
            advice = (
                " PredictiveController plans without a delay that all actuators share." if simulator.history else ""
            )
            raise TruesimError(f"A plan with the file's contact is not possible here: {reason}.{advice}")
        self.functions, self._kernel, self._bounded, self._threads = functions, kernel, bounded, threads
        found: list[StepRoutine] = []

        def tables(theta: Array) -> Any:
            found.append(StepRoutine.of(functions.simulator_at(jnp.zeros(0), theta) if functions.inputs else simulator))
            return found[-1].tables

        theta = np.zeros(functions.theta_size)
        self._tables_of = compile(tables, theta) if functions.inputs else tables
        if not found:
            tables(jnp.asarray(theta))
        self.engine, self.derivatives = found[-1].engine, found[-1].derivatives
        self._known: dict[bytes, Tables] = {}
        model = simulator.model
        self._q = slice(0, model.nq)
        self._v = slice(model.nq, model.nq + model.nv)
        self._time = model.nq + model.nv
        self._acceleration = slice(self._time + 1, self._time + 1 + model.nv)
        self._timestep = float(simulator.timestep)

    def expand(
        self, z: np.ndarray, u: np.ndarray, after: np.ndarray, p: np.ndarray, theta: np.ndarray, row: np.ndarray
    ) -> tuple[Float[np.ndarray, "*batch size"], Float[np.ndarray, "*batch nx"]]:
        """Expansions and defects of knots."""
        batch = z.shape[:-1]
        flat, commands = z.reshape(-1, z.shape[-1]), np.ascontiguousarray(u.reshape(-1, u.shape[-1]))
        tables = self._tables(theta, len(flat))
        arrived = self._step(flat, commands, tables)
        before = flat[:, self._q], flat[:, self._v], arrived[:, self._acceleration]
        states = [np.ascontiguousarray(x) for x in (*before, commands)]
        A, B, _ = self.derivatives.jacobian(states, arrived[:, self._v], tables, (), self._threads)
        costs = self._kernel("cost expansion")(z, u, p, theta, row)
        parts = [x.reshape(*batch, -1) for x in (A, B, costs)]
        return np.concatenate(parts, axis=-1), self._kernel("change")(arrived.reshape(z.shape), after)

    def backward(
        self,
        expansions: tuple[np.ndarray, np.ndarray],
        end: tuple[np.ndarray, ...],
        u: np.ndarray,
        bounds: tuple[np.ndarray, np.ndarray],
        damping: np.ndarray,
    ) -> Policy:
        """Policies of problems, one after the other."""
        if u.ndim == 2:
            return self._backward(expansions, end, (bounds[0] - u, bounds[1] - u), np.asarray(damping))
        each = [
            self._backward(
                (expansions[0][i], expansions[1][i]),
                tuple(x[i] for x in end),
                (bounds[0] - u[i], bounds[1] - u[i]),
                damping[i],
            )
            for i in range(len(u))
        ]
        return Policy(*(np.stack(x) for x in zip(*each, strict=True)))

    def _backward(
        self, expansions: tuple[np.ndarray, np.ndarray], end: tuple, room: tuple[np.ndarray, np.ndarray], damping: Any
    ) -> Policy:
        f, gains = self.functions, self._kernel("gains")
        vectors, gaps = expansions
        carry = first_carry(*self._kernel("end expansion")(end[0][-1], *end[1:]))
        feedback, gradient = np.empty((f.steps, f.nu, f.nx + 1)), np.empty((f.steps, f.nu))
        for k in reversed(range(f.steps)):
            knot = CommandBox(room[0][k], room[1][k]) if self._bounded else None
            carry, (feedback[k], gradient[k]) = riccati_step(
                f.unpack(vectors[k]), gaps[k], carry, damping, lambda *args, knot=knot: gains(*args, knot)
            )
        return Policy(feedback, gradient, np.stack([carry.first, carry.change]), np.zeros((0, 2)))

    def forward(
        self, motion: tuple, policy: tuple, length: np.ndarray, bounds: tuple[np.ndarray, np.ndarray], numbers: tuple
    ) -> Motion:
        """Motions of a batch of step lengths, of one problem or of one each."""
        f, count = self.functions, len(length)
        (z, u, p), (feedback, gaps, _), (theta, rows) = motion, policy, numbers
        follow, tables = self._kernel("follow"), self._tables(theta, count)
        states, commands = np.empty((count, f.steps + 1, f.nz)), np.empty((count, f.steps, f.nu))
        raw = np.array(np.broadcast_to(z[..., 0, :], (count, f.nz)))
        nudge = np.zeros((count, f.nx))
        for k in range(f.steps):
            knot = z[..., k, :], u[..., k, :], feedback[..., k, :, :]
            states[:, k], commands[:, k] = follow(raw, nudge, *knot, length, bounds)
            raw = self._step(states[:, k], commands[:, k], tables)
            nudge = (length - 1)[:, None] * gaps[..., k, :]
        states[:, -1] = self._kernel("moved")(raw, nudge)
        cost = self._cost(states, commands, theta, rows)
        return Motion(states, commands, np.broadcast_to(p, (count, f.np)), cost)

    def cost(self, z: np.ndarray, u: np.ndarray, numbers: tuple[np.ndarray, np.ndarray]) -> Float[np.ndarray, " b"]:
        """Costs of simulations of a batch of commands, from one state or from one each."""
        states = np.empty((len(u), u.shape[1] + 1, self.functions.nz))
        states[:, 0] = z
        tables = self._tables(numbers[0], len(u))
        found = self._roll(states[:, 0], u, tables)
        arrays = found.qpos, found.qvel, found.warmstart
        for at, x in zip((self._q, self._v, self._acceleration), arrays, strict=True):
            states[:, 1:, at] = x
        states[:, 1:, self._time] = states[:, :1, self._time] + self._timestep * np.arange(1, u.shape[1] + 1)
        return self._cost(states, u, *numbers)

    def advance(
        self, z: np.ndarray, commands: np.ndarray, timestep: float, theta: np.ndarray
    ) -> Float[np.ndarray, " nz"]:
        """State after steps of another length, each with its command."""
        tables = {**self._tables(theta, 1), "timestep": np.array([timestep])}
        found = self._roll(z[None], commands[None], tables)
        after = z.copy()
        after[self._q], after[self._v] = found.qpos[0, -1], found.qvel[0, -1]
        after[self._time], after[self._acceleration] = z[self._time] + timestep * len(commands), found.warmstart[0, -1]
        return after

    def _cost(self, z: np.ndarray, u: np.ndarray, theta: np.ndarray, rows: np.ndarray) -> Float[np.ndarray, " b"]:
        """Augmented costs of motions."""
        running, final, p = self._kernel("running values"), self._kernel("final values"), np.zeros(0)
        every = np.broadcast_to(theta[..., None, :], (*u.shape[:2], theta.shape[-1]))
        each = np.broadcast_to(rows, (len(u), *rows.shape[-2:]))
        parts = [
            running(np.ascontiguousarray(z[:, :-1]), u, p, every, np.ascontiguousarray(each[:, :-1])).residuals,
            final(np.ascontiguousarray(z[:, -1]), np.zeros_like(u[0, 0]), p, theta, each[:, -1]).residuals[:, None],
        ]
        return sum((0.5 * np.square(r).sum((1, 2)) for r in parts), np.zeros(len(u)))

    def _step(self, z: np.ndarray, u: np.ndarray, tables: Tables) -> Float[np.ndarray, "b nz"]:
        """States after a step."""
        found = self._roll(z, u[:, None], tables)
        after = np.empty_like(z)
        after[:, self._q], after[:, self._v] = found.qpos[:, 0], found.qvel[:, 0]
        after[:, self._time], after[:, self._acceleration] = z[:, self._time] + self._timestep, found.warmstart[:, 0]
        return after

    def _roll(self, z: np.ndarray, u: np.ndarray, tables: Tables) -> Rollout:
        """Simulations from a batch of states."""
        q, v, acceleration = (z[:, at] for at in (self._q, self._v, self._acceleration))
        return self.engine.rollout(q, v, acceleration, u, self._threads, tables)

    def _tables(self, theta: np.ndarray, count: int) -> Tables:
        """Parameters of the routines for `theta` of one problem or of one of each batch element."""
        if not self.functions.inputs:
            return {}
        rows, at = np.unique(theta.reshape(-1, theta.shape[-1]), axis=0, return_inverse=True)
        each = [self._tables_at(row) for row in rows]
        at = np.broadcast_to(at.ravel(), (count,))
        return {name: np.stack([own[name] for own in each])[at] for name in each[0]}

    def _tables_at(self, theta: np.ndarray) -> Tables:
        key = theta.tobytes()
        if key not in self._known:
            self._known = {key: self._tables_of(theta)}
        return self._known[key]
