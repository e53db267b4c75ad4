"""Objectives: what a search makes small, for many candidates side by side."""

import abc
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float


class Equations(NamedTuple):
    """Cost, gradient and Gauss-Newton matrix of one candidate, or of many, stacked."""

    cost: Float[Array, "*batch"]
    """Half the sum of squares; not finite where the simulation is not."""
    gradient: Float[Array, "*batch size"]
    """J^T r"""
    matrix: Float[Array, "*batch size size"]
    """J^T J"""


FAR = 2.0
"""How far from the start a coordinate without bounds is drawn."""


class Box(NamedTuple):
    """The coordinates that a search may try, and the first it does."""

    low: Float[np.ndarray, "size"]
    high: Float[np.ndarray, "size"]
    start: Float[np.ndarray, "size"]
    reach: float | Float[np.ndarray, "size"] = np.inf
    """How far from the start others are drawn, where bounds are wider."""

    @property
    def region(self) -> tuple[Float[np.ndarray, "size"], Float[np.ndarray, "size"]]:
        """Between which coordinates starts are drawn."""
        low, high = np.maximum(self.low, self.start - self.reach), np.minimum(self.high, self.start + self.reach)
        return np.where(np.isfinite(low), low, self.start - FAR), np.where(np.isfinite(high), high, self.start + FAR)

    @property
    def width(self) -> Float[np.ndarray, "size"]:
        """Scale of each coordinate: how far apart starts can be."""
        low, high = self.region
        return high - low


class AbstractObjective(abc.ABC):
    """Half a sum of squares over coordinates within bounds."""

    box: Box
    steps: int
    """Simulated steps that one evaluation takes."""
    threads: int
    """Over which the candidates of a batch are split."""

    @abc.abstractmethod
    def costs(self, theta: Float[np.ndarray, "batch size"]) -> Float[np.ndarray, "batch"]:
        """Cost of every candidate."""


class AbstractLeastSquares(AbstractObjective):
    """An objective that has derivatives too."""

    @abc.abstractmethod
    def equations(self, theta: Float[np.ndarray, "batch size"]) -> Equations:
        """Cost and normal equations of every candidate."""


class Residuals(AbstractLeastSquares):
    """Half the sum of squares of any residual that JAX can trace: each candidate is a lane of one native kernel."""

    def __init__(
        self,
        residual: Callable[[Float[Array, "size"]], Float[Array, "rows"]],
        low: Float[np.ndarray, "size"],
        high: Float[np.ndarray, "size"],
        start: Float[np.ndarray, "size"] | None = None,
        *,
        steps: int = 1,
        threads: int = 1,
    ):
        """Compiles nothing yet.

        Args:
            residual: From coordinates to the numbers that should vanish.
            low: Lower bounds.
            high: Upper bounds.
            start: First candidate; the middle of the bounds by default.
            steps: Simulated steps within one residual.
            threads: Over which batches are split.
        """
        low, high = np.asarray(low, float), np.asarray(high, float)
        start = (low + high) / 2 if start is None else np.asarray(start, float)
        if not np.all((low < high) & (low <= start) & (start <= high)):
            raise TruesimError(f"The start {start.tolist()} must lie between {low.tolist()} and {high.tolist()}.")
        self.residual, self.box = residual, Box(low, high, start)
        self.steps, self.threads = steps, threads
        self._kernels: dict[str, native.Kernel] = {}

    def costs(self, theta: Float[np.ndarray, "batch size"]) -> Float[np.ndarray, "batch"]:
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
                self._kernels[name] = native.compile(f, self.box.start, threads=self.threads)
        return self._kernels[name]


def _half_square(r: Array) -> Array:
    return jnp.sum(r * r) / 2
