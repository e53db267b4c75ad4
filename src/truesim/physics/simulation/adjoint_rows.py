"""Derivatives of the acceleration of a step on fixed arrays: the adjoint of the routines, and the kernel after it."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from truesim import native
from truesim.native.runtime.program import PreparedCall
from truesim.physics.routines.engine import Engine
from truesim.physics.simulation.step_adjoint import StepNumbers

FEWEST_SLOTS = 4
"""Contact slots of the smallest kernel, others have twice as many; larger compiles fewer kernels, with idle slots."""
Tables = Mapping[str, np.ndarray]
"""Parameters of the routines by name, with or without a batch axis."""
Copy = tuple[np.ndarray, np.ndarray]
"""An array and what is copied into it."""


class AdjointRows:
    """Rows of derivatives at states, one for each cotangent; a call may be repeated while the numbers change."""

    def __init__(
        self,
        engine: Engine,
        kernel: Callable[[int, int], native.Kernel],
        states: Sequence[np.ndarray],
        cotangents: np.ndarray,
        tables: Tables,
        steps: bool = False,
    ):
        """Take the arrays.

        Args:
            engine: The routines.
            kernel: From a number of contact slots and of threads to the kernel of `compile_pullback_of_step`.
            states: `(q, v, acceleration, control)`, shape (batch, ...).
            cotangents: Cotangents of the acceleration of the integrator, shape (batch or 1, count, nv).
            tables: Parameters that differ from the engine's.
            steps: Also take the step from these states, whose acceleration is then where the solver starts.
        """
        self._engine, self._kernel = engine, kernel
        self.states = [np.ascontiguousarray(x, engine.dtype) for x in states]
        self.cotangents = cotangents
        self.tables = {name: np.ascontiguousarray(x) for name, x in tables.items()}
        self._adjoint = engine.prepare_adjoint(self.states, self.cotangents, steps)
        self._calls: dict[tuple[int, int, int], tuple[PreparedCall, list[Copy]]] = {}

    def set(self, states: Sequence[np.ndarray], cotangents: np.ndarray, tables: Tables) -> None:
        """Copy other numbers into the arrays, which must be this object's own."""
        for own, x in zip(self.states, states, strict=True):
            own[...] = x
        if cotangents is not self.cotangents:
            self.cotangents[...] = cotangents
        for name, x in tables.items():
            self.tables[name][...] = x

    @property
    def after(self) -> list[np.ndarray]:
        """Configuration, velocity and acceleration after the step, if it is taken; the next call overwrites them."""
        return self._adjoint.after

    def __call__(self, threads: int) -> tuple[np.ndarray, dict[str, np.ndarray], list[np.ndarray], np.ndarray]:
        """Cotangents of `[dq, v, u]`, of the moving tables and of slot columns, in rows; and the contact slots.

        The next call overwrites them.
        """
        most, slots = self._adjoint(self.tables, threads), FEWEST_SLOTS
        while slots < most:
            slots *= 2
        key = slots, threads, self._adjoint.slots.shape[1]  # where there is not enough room, they are replaced
        if key not in self._calls:
            self._calls[key] = self._prepare(slots, threads)
        call, copies = self._calls[key]
        for to, x in copies:
            to[...] = x
        by_state, by_tables, *by_slots = call()
        return by_state, by_tables, by_slots, self._adjoint.slots[:, :slots]

    def _prepare(self, slots: int, threads: int) -> tuple[PreparedCall, list[Copy]]:
        """The kernel on the arrays, and copies to be made before it."""
        found, shapes, copies = self._adjoint, self._engine.model.shape, []
        batch, count, nv = found.y.shape

        def of_rows(x: np.ndarray) -> np.ndarray:
            """Values of each row; of a single instance they are the same for all rows."""
            if batch == 1:
                return x[0]
            if count == 1 and x.flags.c_contiguous:
                return x
            repeated = np.empty((batch, count, *x.shape[1:]), x.dtype)
            copies.append((repeated, x[:, None]))
            return repeated.reshape(batch * count, *x.shape[1:])

        q, v, _, u = map(of_rows, self.states)
        numbers = StepNumbers(
            of_rows(found.solved), of_rows(found.integrated), found.y.reshape(-1, nv), found.z.reshape(-1, nv)
        )
        tables = {name: of_rows(x) if x.ndim > len(shapes(name)) else x for name, x in self.tables.items()}
        kernel = self._kernel(slots, threads)
        return kernel.prepare(tables, q, v, u, numbers, of_rows(found.slots[:, :slots])), copies
