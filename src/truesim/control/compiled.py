"""Compiled functions of one task structure: expansions, backward pass, forward pass, and the values of its terms."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.control.passes import CommandBox, Motion, Policy, backward_pass, forward_pass, gains, simulated_cost
from truesim.control.routine_passes import RoutinePasses
from truesim.control.servos import servo_forces
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
        self.moving, self.bounded = bound_structure(task)
        self.multipliers = max(sum(f.limits[end].values()) for end in (False, True))
        self.threads = threads
        width = rows.shape[1] + (self.multipliers + 1 if self.multipliers else 0)
        self._row, self._theta = np.zeros(width), theta
        self._cache = KernelCache()
        self.routines: RoutinePasses | None = None
        if f.simulator.constraint_contact is not None:
            with float64():
                self.routines = RoutinePasses(f, self._kernel, self.bounded, threads)

    def prepare(self, name: str, args: tuple[Any, ...], results: tuple[Any, ...]) -> Callable[[], Any]:
        """Call of `expand`, `backward` or `forward` on fixed arrays, which writes into the given results."""
        if self.routines is None:
            return self._kernel(name).prepare(*args, results=results)
        compute = getattr(self.routines, name)

        def call() -> None:
            for mine, new in zip(results, compute(*args), strict=True):
                mine[...] = new

        return call

    def use_steps(self, steps: Any) -> None:
        """Take steps and Jacobians from another simulator, in place of the routines of the file's contact.

        Args:
            steps: Object with the `rollout` of the routines and the `jacobian` of their derivatives.
        """
        assert self.routines is not None, "only passes by the routines take steps from elsewhere"
        self.routines.engine = self.routines.derivatives = steps

    def expand(self, *args: Any) -> tuple[np.ndarray, np.ndarray]:
        """Expansions and defects of knots: states, commands, next states, designed numbers, `theta` and rows."""
        return (self._kernel("expand") if self.routines is None else self.routines.expand)(*args)

    def backward(self, *args: Any) -> Policy:
        """Policies: expansions and defects, the end, commands, their bounds, and the damping."""
        return (self._kernel("backward") if self.routines is None else self.routines.backward)(*args)

    def forward(self, *args: Any) -> Motion:
        """Motions: motion, policy, step length, bounds and numbers, as in `forward_pass`."""
        return (self._kernel("forward") if self.routines is None else self.routines.forward)(*args)

    def values(self, final: bool, *args: Any) -> TermValues:
        """Terms at running knots or at the last one: state, command, designed numbers, `theta` and row."""
        return self._kernel("final values" if final else "running values")(*args)

    def cost(self, *args: Any) -> np.ndarray:
        """Costs of simulations: initial state, commands and numbers."""
        return (self._kernel("cost") if self.routines is None else self.routines.cost)(*args)

    def advance(self, z: np.ndarray, commands: np.ndarray, timestep: float, theta: np.ndarray) -> np.ndarray:
        """State after steps of another length, each with its command."""
        if self.routines is not None:
            return self.routines.advance(z, commands, timestep, theta)
        kernel = self._cache.get(("advance", len(commands)), lambda: self._compile_advance(len(commands)))
        return kernel(z, commands, np.float64(timestep), theta)

    def bounds(self, *args: Any) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of commands: state, designed numbers, `theta`, and bounds that do not depend on the state."""
        return self._kernel("bounds")(*args)

    def change(self, *args: Any) -> np.ndarray:
        """Small changes from one state to another."""
        return self._kernel("change")(*args)

    def moved(self, *args: Any) -> np.ndarray:
        """States after small changes."""
        return self._kernel("moved")(*args)

    def _kernel(self, name: str) -> native.Kernel:
        return self._cache.get(name, lambda: self._compile(name))

    def _compile_advance(self, steps: int) -> Compiled:
        f = self.functions

        def advance(z: Array, commands: Array, timestep: Array, theta: Array) -> Array:
            def step(z: Array, u: Any) -> tuple[Array, None]:
                return f.step(z, u, jnp.zeros(0), theta, timestep), None

            return jax.lax.scan(step, z, commands)[0]

        with float64():
            return compile(advance, np.zeros(f.nz), np.zeros((steps, f.nu)), np.float64(1), self._theta)

    def _compile(self, name: str) -> Compiled:
        f, T = self.functions, self.functions.steps
        z, u, p, theta, row = np.zeros(f.nz), np.zeros(f.nu), np.zeros(f.np), self._theta, self._row
        zs, us, rows = np.zeros((T + 1, f.nz)), np.zeros((T, f.nu)), np.zeros((T + 1, len(row)))
        n, one = f.nx + f.np, np.float64(1)
        gaps, moving = np.zeros((T, f.nx)), np.array(self.moving, int)
        box = CommandBox(u, u) if self.bounded else None

        def backward(expansions: tuple, end: tuple, u: Array, bounds: tuple, damping: Array) -> Policy:
            return backward_pass(f, expansions, end, u, bounds if box else None, moving, damping)

        def knot_gains(H: Array, Qu: Array, Qux: Array, box: CommandBox | None) -> tuple[Array, Array]:
            return gains(H, Qu, Qux, box, moving)

        def forward(motion: tuple, policy: tuple, length: Array, bounds: tuple, numbers: tuple) -> Motion:
            return forward_pass(f, motion, policy, length, bounds, numbers)

        def follow(raw: Array, nudge: Array, z: Array, u: Array, feedback: Array, *rest: Any) -> tuple[Array, Array]:
            here, (length, bounds) = f.moved(raw, nudge), rest
            return here, jnp.clip(u + feedback @ jnp.concatenate([length[None], f.change(here, z)]), *bounds)

        expanded = np.zeros((T, f.expansion_size)), gaps
        policy = np.zeros((T, f.nu, n + 1)), gaps, p
        examples: dict[str, tuple[Any, ...]] = {
            "expand": (f.expand, z, u, z, p, theta, row),
            "backward": (backward, expanded, (zs, p, theta, row), us, (us, us), one),
            "forward": (forward, (zs, us, p), policy, one, (u, u), (theta, rows)),
            "running values": (lambda *args: f.terms(*args, final=False), z, u, p, theta, row),
            "final values": (lambda *args: f.terms(*args, final=True), z, u, p, theta, row),
            "cost": (lambda *args: simulated_cost(f, *args), z, us, (theta, rows)),
            "cost expansion": (f.expand_cost, z, u, p, theta, row),
            "end expansion": (f.expand_end, z, p, theta, row),
            "gains": (knot_gains, np.eye(f.nu), u, np.zeros((f.nu, n)), box),
            "follow": (follow, z, np.zeros(f.nx), z, u, np.zeros((f.nu, n + 1)), one, (u, u)),
            "bounds": (f.bounds, z, p, theta, u, u),
            "change": (f.change, z, z),
            "moved": (f.moved, z, np.zeros(f.nx)),
        }
        with float64():
            return native.compile(*examples[name], threads=self.threads)


def bound_structure(task: Task) -> tuple[tuple[int, ...], bool]:
    """Commands that their bounds leave free to move, and whether any of these has a bound."""
    low, high = task.command_bounds()
    moving, forces = np.flatnonzero(low < high), servo_forces(task.simulator)
    bounded = bool(np.isfinite([low[moving], high[moving]]).any())
    return tuple(moving.tolist()), bounded or forces is not None
