"""Objectives of a search: costs and normal equations of a batch of candidates."""

import abc
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float

UNBOUNDED_REACH = 2.0
"""Distance from the start within which a coordinate without bounds is drawn."""


class Equations(NamedTuple):
    """Cost, gradient and Gauss-Newton matrix of one candidate or of a batch."""

    cost: Float[Array, "*batch"]
    """Half the sum of squares; not finite where the simulation diverged."""
    gradient: Float[Array, "*batch size"]
    """J^T r"""
    matrix: Float[Array, "*batch size size"]
    """J^T J"""


class SearchSpace(NamedTuple):
    """Bounds of the coordinates, the first candidate, and the region from which starts are drawn."""

    low: Float[np.ndarray, " size"]
    high: Float[np.ndarray, " size"]
    start: Float[np.ndarray, " size"]
    reach: float | Float[np.ndarray, " size"] = np.inf
    """Largest distance of drawn coordinates from the start, where bounds are wider."""

    @property
    def region(self) -> tuple[Float[np.ndarray, " size"], Float[np.ndarray, " size"]]:
        """Lower and upper ends of the region from which starts are drawn."""
        low, high = np.maximum(self.low, self.start - self.reach), np.minimum(self.high, self.start + self.reach)
        return (
            np.where(np.isfinite(low), low, self.start - UNBOUNDED_REACH),
            np.where(np.isfinite(high), high, self.start + UNBOUNDED_REACH),
        )

    @property
    def width(self) -> Float[np.ndarray, " size"]:
        """Scale of each coordinate: width of the region from which starts are drawn."""
        low, high = self.region
        return high - low


class AbstractObjective(abc.ABC):
    """Half a sum of squares over coordinates within bounds."""

    space: SearchSpace
    steps: int
    """Simulated steps of one evaluation."""
    threads: int
    """Threads that share a batch."""

    @abc.abstractmethod
    def costs(self, theta: Float[np.ndarray, "batch size"]) -> Float[np.ndarray, " batch"]:
        """Cost of every candidate."""


class AbstractLeastSquares(AbstractObjective):
    """An objective with derivatives."""

    @abc.abstractmethod
    def equations(self, theta: Float[np.ndarray, "batch size"]) -> Equations:
        """Cost and normal equations of every candidate."""


class Residuals(AbstractLeastSquares):
    """Half the sum of squares of a residual that JAX can trace, compiled to a batched native kernel."""

    def __init__(
        self,
        residual: Callable[[Float[Array, " size"]], Float[Array, " rows"]],
        low: Float[np.ndarray, " size"],
        high: Float[np.ndarray, " size"],
        start: Float[np.ndarray, " size"] | None = None,
        *,
        steps: int = 1,
        threads: int = 1,
    ):
        """Check the bounds; kernels are compiled on first use.

        Args:
            residual: Function from coordinates to residuals.
            low: Lower bounds.
            high: Upper bounds.
            start: First candidate; the middle of the bounds by default.
            steps: Simulated steps within one residual.
            threads: Threads that share a batch.
        """
        low, high = np.asarray(low, float), np.asarray(high, float)
        start = (low + high) / 2 if start is None else np.asarray(start, float)
        if not np.all((low < high) & (low <= start) & (start <= high)):
            raise TruesimError(f"The start {start.tolist()} must lie between {low.tolist()} and {high.tolist()}.")
        self.residual, self.space = residual, SearchSpace(low, high, start)
        self.steps, self.threads = steps, threads
        self._kernels: dict[str, native.Kernel] = {}

    def costs(self, theta: Float[np.ndarray, "batch size"]) -> Float[np.ndarray, " batch"]:
        """Cost of every candidate."""
        return self._kernel("cost", self._cost)(theta)

    def equations(self, theta: Float[np.ndarray, "batch size"]) -> Equations:
        """Cost and normal equations of every candidate."""
        return self._kernel("equations", self._equations)(theta)

    def __getstate__(self) -> dict:
        return {**vars(self), "_kernels": {}}

    def _cost(self, theta: Array) -> Array:
        return _half_square(self.residual(theta))

    def _equations(self, theta: Array) -> Equations:
        r, J = self.residual(theta), jax.jacfwd(self.residual)(theta)
        return Equations(_half_square(r), J.T @ r, J.T @ J)

    def _kernel(self, name: str, f: Callable) -> native.Kernel:
        if name not in self._kernels:
            with jax.enable_x64(True):
                self._kernels[name] = native.compile(f, self.space.start, threads=self.threads)
        return self._kernels[name]


def _half_square(r: Array) -> Array:
    return jnp.sum(r * r) / 2
