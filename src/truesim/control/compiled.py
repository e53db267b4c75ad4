"""Compiled functions of one task structure: expansions, backward pass, forward pass, and the values of its terms."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from truesim.control.passes import Motion, Policy, backward_pass, forward_pass, simulated_cost
from truesim.control.task import Task
from truesim.control.transcription import TermValues, Transcription
from truesim.core.precision import float64
from truesim.core.typing import Array
from truesim.physics.simulation.backend import KernelCache, plain_jax
from truesim.physics.simulation.kernels import Compiled, compile  # noqa: A004


class TaskKernels:
    """Compiled functions of one task structure; each is compiled when it is first used."""

    def __init__(self, task: Task, inputs: Sequence[str] = (), threads: int = 1):
        """Prepare the functions.

        Args:
            task: A task; its structure is fixed, its numbers may change.
            inputs: Paths of numbers of the robot that may change without compiling anew.
            threads: Number of threads.
        """
        with float64(), plain_jax():
            self.functions = f = Transcription(task, inputs)
            theta, rows = f.pack(task)
        low, high = task.command_bounds()
        self.bounded = bool(np.any(np.isfinite(low)) or np.any(np.isfinite(high)))
        self.multipliers = max(sum(f.limits[end].values()) for end in (False, True))
        self.threads = threads
        width = rows.shape[1] + (self.multipliers + 1 if self.multipliers else 0)
        self._row, self._theta = np.zeros(width), theta
        self._cache = KernelCache()

    def expand(self, *args: Any) -> tuple[np.ndarray, np.ndarray]:
        """Expansions and defects of knots: states, commands, next states, designed numbers, `theta` and rows."""
        return self._kernel("expand")(*args)

    def backward(self, *args: Any) -> Policy:
        """Policies: expansions and defects, the end, commands, their bounds, and the damping."""
        return self._kernel("backward")(*args)

    def forward(self, *args: Any) -> Motion:
        """Motions: motion, policy, step length, bounds and numbers, as in `forward_pass`."""
        return self._kernel("forward")(*args)

    def values(self, final: bool, *args: Any) -> TermValues:
        """Terms at running knots or at the last one: state, command, designed numbers, `theta` and row."""
        return self._kernel("final values" if final else "running values")(*args)

    def cost(self, *args: Any) -> np.ndarray:
        """Costs of simulations: initial state, commands and numbers."""
        return self._kernel("cost")(*args)

    def change(self, *args: Any) -> np.ndarray:
        """Small changes from one state to another."""
        return self._kernel("change")(*args)

    def moved(self, *args: Any) -> np.ndarray:
        """States after small changes."""
        return self._kernel("moved")(*args)

    def _kernel(self, name: str) -> Compiled:
        return self._cache.get(name, lambda: self._compile(name))

    def _compile(self, name: str) -> Compiled:
        f, T = self.functions, self.functions.steps
        z, u, p, theta, row = np.zeros(f.nz), np.zeros(f.nu), np.zeros(f.np), self._theta, self._row
        zs, us, rows = np.zeros((T + 1, f.nz)), np.zeros((T, f.nu)), np.zeros((T + 1, len(row)))
        n, one = f.nx + f.np, np.float64(1)
        gaps, bounded = np.zeros((T, f.nx)), self.bounded

        def backward(expansions: tuple, end: tuple, u: Array, bounds: tuple, damping: Array) -> Policy:
            room = (bounds[0] - u, bounds[1] - u) if bounded else None
            return backward_pass(f, expansions, end, room, damping)

        def forward(motion: tuple, policy: tuple, length: Array, bounds: tuple, numbers: tuple) -> Motion:
            return forward_pass(f, motion, policy, length, bounds, numbers)

        expanded = np.zeros((T, f.expansion_size)), gaps
        policy = np.zeros((T, f.nu, n + 1)), gaps, p
        examples: dict[str, tuple[Any, ...]] = {
            "expand": (f.expand, z, u, z, p, theta, row),
            "backward": (backward, expanded, (z, p, theta, row), us, (us, us), one),
            "forward": (forward, (zs, us, p), policy, one, (u, u), (theta, rows)),
            "running values": (lambda *args: f.terms(*args, final=False), z, u, p, theta, row),
            "final values": (lambda *args: f.terms(*args, final=True), z, u, p, theta, row),
            "cost": (lambda *args: simulated_cost(f, *args), z, us, (theta, rows)),
            "change": (f.change, z, z),
            "moved": (f.moved, z, np.zeros(f.nx)),
        }
        with float64():
            return compile(*examples[name], threads=self.threads)
