"""Costs of a measured trajectory for any JAX function from parameters to a trajectory.

The trajectory function is compiled once, with its derivatives, to a kernel that takes a batch of parameters.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from truesim import native
from truesim.core.errors import TruesimError
from truesim.core.typing import Float

Cost = Callable[[Float[np.ndarray, "batch size"]], tuple[Float[np.ndarray, " batch"], Float[np.ndarray, "batch size"]]]
"""Function that returns costs and gradients of a batch of coordinates."""
DIVERGED_TRAJECTORY_RESIDUAL = 1e6
"""Residual of a simulation that diverged, in units of its noise."""


class Trajectories:
    """Trajectory function, noise of its measurements and prior of its parameters."""

    def __init__(
        self,
        predict: Callable[[Any], Any],
        theta: Float[np.ndarray, " size"],
        *,
        noise: float | np.ndarray = 1.0,
        prior: tuple[np.ndarray, np.ndarray] | None = None,
    ):
        """Compile the trajectory and its derivatives.

        Args:
            predict: JAX function from parameters to an array whose first axis are samples.
            theta: Example of the parameters.
            noise: Standard deviation of measurements: one number, or an array that broadcasts to a trajectory.
            prior: Mean and standard deviation of each parameter; a flat prior by default.
        """
        theta = np.asarray(theta, float)
        with jax.enable_x64(True):
            self._kernel = native.compile(lambda t: _with_derivatives(predict, t), theta)
        self.shape = tuple(np.shape(self._kernel(theta)[0]))
        self.noise = np.broadcast_to(np.asarray(noise, float), self.shape)
        size = len(theta)
        mean, std = prior or (np.zeros(size), np.full(size, np.inf))
        self.prior = np.broadcast_to(np.asarray(mean, float), size), np.broadcast_to(np.asarray(std, float), size)

    def predict(self, theta: Float[np.ndarray, "batch size"]) -> np.ndarray:
        """Trajectories of a batch of parameters."""
        return self._kernel(theta)[0]

    def residual(self, theta: np.ndarray, measured: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residuals of measurements and prior, in standard deviations, and their derivatives.

        Args:
            theta: Parameters, or a batch of them.
            measured: Measurements, in the shape of a trajectory; NaN where nothing was measured.
        """
        r, J = self._misfit(theta, measured)
        mean, std = self.prior
        by = np.broadcast_to(np.diag(1 / std), (*theta.shape[:-1], len(std), len(std)))
        return np.concatenate([r, (theta - mean) / std], axis=-1), np.concatenate([J, by], axis=-2)

    def negative_log_posterior(self, measured: np.ndarray) -> Cost:
        """Negative logarithm of prior times likelihood, up to a constant."""

        def cost(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            r, J = self.residual(theta, measured)
            return (r**2).sum(axis=-1) / 2, np.einsum("sn,snp->sp", r, J)

        return cost

    def huber(self, measured: np.ndarray, threshold: float = 1.0) -> Cost:
        """Mean Huber loss of the measurements in their own unit, without noise levels and prior."""

        def cost(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            r, J = self._misfit(theta, measured, scaled=False)
            count = max(int(np.isfinite(measured).sum()), 1)
            size, pull = np.abs(r), np.clip(r, -threshold, threshold)
            loss = np.where(size <= threshold, r**2 / 2, threshold * (size - threshold / 2))
            return loss.sum(axis=-1) / count, np.einsum("sn,snp->sp", pull, J) / count

        return cost

    def _misfit(self, theta: np.ndarray, measured: np.ndarray, scaled: bool = True) -> tuple[np.ndarray, np.ndarray]:
        if np.shape(measured) != self.shape:
            raise TruesimError(f"The measurements have the shape {np.shape(measured)}; trajectories have {self.shape}.")
        values, J = self._kernel(theta)
        noise = self.noise if scaled else np.ones(self.shape)
        seen = np.isfinite(measured)
        r = np.where(seen, (values - np.where(seen, measured, 0.0)) / noise, 0.0)
        finite = np.isfinite(r)
        J = np.where((seen & finite)[..., None], J / noise[..., None], 0.0)
        flat = (*theta.shape[:-1], -1)
        return np.where(finite, r, DIVERGED_TRAJECTORY_RESIDUAL).reshape(flat), J.reshape(*flat, theta.shape[-1])


def _with_derivatives(predict: Callable[[Any], Any], theta: Any) -> tuple[Any, Any]:
    """Trajectory and its derivatives by the parameters, traced once."""
    J, values = jax.jacfwd(lambda t: (predict(t),) * 2, has_aux=True)(theta)
    return values, J
