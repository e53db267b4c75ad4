"""Windows of rigid throws as a least-squares problem: each starts at a state of the reference."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.cube_throw.models import Compliant
from experiments.cube_throw.scene import SUBSTEPS
from truesim import native
from truesim.core.typing import Array, Float
from truesim.optimize import AbstractLeastSquares, Equations, SearchSpace
from truesim.physics.simulation import Simulator, State

REACH = 1.0
"""Typical distance of a hop from the best point of its chain, in logarithms of parameters and in weights."""


class Windows(NamedTuple):
    """Segments of equal length."""

    q: Float[np.ndarray, "windows 7"]
    """Initial configuration of each window."""
    v: Float[np.ndarray, "windows 6"]
    motion: Float[np.ndarray, "windows steps 7"]
    """Configurations after each step that follows."""

    @classmethod
    def of(
        cls, throws: "Windows", velocities: Float[np.ndarray, "throws steps 6"], begins: range, steps: int
    ) -> "Windows":
        """Windows of whole throws that begin after these numbers of steps."""
        q = np.concatenate([throws.q[:, None], throws.motion], axis=1)
        v = np.concatenate([throws.v[:, None], velocities], axis=1)
        found = [(q[k, b], v[k, b], q[k, b + 1 : b + 1 + steps]) for k in range(len(q)) for b in begins]
        return cls(*map(np.stack, zip(*found, strict=True)))


def motion(simulator: Simulator, q: Float[Array, "7"], v: Float[Array, "6"], steps: int) -> Float[Array, "steps 7"]:
    """Configurations after every step of the reference."""
    constants = simulator.constants()

    def advance(state: State, _: None) -> tuple[State, Array]:
        step = lambda state, _: (simulator.step(state, jnp.zeros(0), constants)[0], None)  # noqa: E731
        state, _ = jax.lax.scan(step, state, length=SUBSTEPS)
        return state, state.q

    return jax.lax.scan(advance, State(q, v, jnp.zeros(())), None, length=steps)[1]


class Follower:
    """Motions of a family's cubes; windows are batch elements."""

    def __init__(self, family: Compliant, steps: int):
        def move(numbers: Array, q: Array, v: Array) -> Array:
            return motion(family.simulator(numbers), q, v, steps)

        with jax.enable_x64(True):
            self._move = native.compile(move, family.start, np.zeros(7), np.zeros(6))

    def __call__(self, numbers: Float[np.ndarray, " size"], windows: Windows) -> Float[np.ndarray, "windows steps 7"]:
        """Configurations after every step."""
        return self._move(np.tile(numbers, (len(windows.q), 1)), windows.q, windows.v)


class Shooting(AbstractLeastSquares):
    """Squared differences of configurations; a batch element is one direction of a candidate in a window."""

    def __init__(self, family: Compliant, windows: Windows):
        self.windows, self.threads = windows, 1
        self.space = SearchSpace(family.low, family.high, family.start, REACH)
        count, steps = windows.motion.shape[:2]
        self.steps = count * steps * SUBSTEPS * len(family.start)

        def along(numbers: Array, direction: Array, q: Array, v: Array) -> tuple[Array, Array]:
            move = lambda x: motion(family.simulator(x), q, v, steps)  # noqa: E731
            return jax.jvp(move, (numbers,), (direction,))

        with jax.enable_x64(True):
            self._along = native.compile(along, family.start, family.start, windows.q[0], windows.v[0])

    def costs(self, theta: Float[np.ndarray, "batch size"]) -> Float[np.ndarray, " batch"]:
        """Half the sum of squares over the number of windows, of every candidate."""
        return self.equations(theta).cost

    def equations(self, theta: Float[np.ndarray, "batch size"]) -> Equations:
        """Cost and normal equations of every candidate."""
        return Equations(*map(np.stack, zip(*(self._equations(x) for x in theta), strict=True)))

    def _equations(self, numbers: Float[np.ndarray, " size"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        size, count = len(numbers), len(self.windows.q)
        q, v = (np.tile(x, (size, 1)) for x in self.windows[:2])
        directions = np.repeat(np.eye(size), count, axis=0)
        moved, tangents = self._along(np.tile(numbers, (size * count, 1)), directions, q, v)
        r = (moved[:count] - self.windows.motion).ravel() / np.sqrt(count)
        J = tangents.reshape(size, -1).T / np.sqrt(count)
        return np.array(r @ r / 2), J.T @ r, J.T @ J
