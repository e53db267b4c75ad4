"""Variational mixture of Gaussians, fitted epoch by epoch to all measurements or while samples arrive."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float, Int
from truesim.identification.posterior.gaussians import Posterior
from truesim.identification.posterior.kernels import Kernels
from truesim.identification.posterior.objectives import AbstractMixtureLoss, EpochInputs, EpochResult
from truesim.identification.posterior.trajectories import Cost


@dataclasses.dataclass(frozen=True)
class MixtureHistory:
    """Mixture and loss after every epoch."""

    loss: Float[np.ndarray, " epochs"]
    """Sample estimate of the objective."""
    scatter: Float[np.ndarray, " epochs"]
    """Mean absolute deviation of the objective's samples. For the evidence lower bound: typical difference between the
    log densities of mixture and posterior."""
    weights: Float[np.ndarray, "epochs kernels"]
    means: Float[np.ndarray, "epochs kernels size"]
    covariances: Float[np.ndarray, "epochs kernels size size"]
    seen: Int[np.ndarray, " epochs"]
    """Number of measured samples that were available to each epoch."""

    @property
    def mean(self) -> Float[np.ndarray, "epochs size"]:
        """Mean of the whole mixture."""
        return np.einsum("ek,eki->ei", self.weights, self.means)

    @property
    def std(self) -> Float[np.ndarray, "epochs size"]:
        """Standard deviation of each coordinate of the whole mixture."""
        apart = self.means - self.mean[:, None]
        return np.sqrt(np.einsum("ek,eki->ei", self.weights, self.stds**2 + apart**2))

    @property
    def stds(self) -> Float[np.ndarray, "epochs kernels size"]:
        """Standard deviations of each kernel."""
        return np.sqrt(np.diagonal(self.covariances, axis1=2, axis2=3))

    def transform(self, center: Float[np.ndarray, " size"], factor: Float[np.ndarray, "size size"]) -> "MixtureHistory":
        """History in the coordinates `center + factor x`."""
        return dataclasses.replace(
            self, means=center + self.means @ factor.T, covariances=factor @ self.covariances @ factor.T
        )


class Mixture:
    """Optimizer of a mixture, with its history."""

    def __init__(
        self,
        start: Kernels,
        objective: AbstractMixtureLoss,
        *,
        rate: float | Callable[[int], Any] = 0.02,
        seed: int = 0,
    ):
        """Initialize the mixture.

        Args:
            start: Initial kernels.
            objective: The objective to minimize.
            rate: Learning rate, or a schedule by epoch: the rate of Adam for `Real2SimLoss`, and between 0 and 1 for
                `EvidenceLowerBound`.
            seed: Seed of all samples.
        """
        self.objective = objective
        self._rate = rate if callable(rate) else lambda _: rate
        self._rng = np.random.default_rng(seed)
        with jax.enable_x64(True):
            self.kernels = jax.tree.map(jnp.asarray, start)
            self._memory = objective.initial_memory(self.kernels)
        self._record: list[tuple[np.ndarray, ...]] = []

    def epoch(self, cost: Cost, seen: int = 0, equal: bool = False) -> float:
        """Run one epoch, and return the scatter of the objective's samples.

        Args:
            cost: Costs and gradients of a batch of coordinates.
            seen: Number of measured samples that are available, for the history.
            equal: Whether the weights of the kernels are held.
        """
        with jax.enable_x64(True):
            noise = self.objective.noise(self._rng, self.kernels)
            values, gradients = cost(np.asarray(_samples(self.objective, self.kernels, noise)))
            rate = jnp.asarray(self._rate(len(self._record)), float)
            given = EpochInputs(noise, values, gradients, rate, jnp.asarray(0.0 if equal else 1.0))
            done, covariances = _update(self.objective, self.kernels, self._memory, given)
        self.kernels, self._memory, loss, scatter = done
        record = (loss, scatter, done.kernels.weights, done.kernels.means, covariances, seen)
        self._record.append(tuple(map(np.asarray, record)))
        return float(scatter)

    def posterior(self, names: Sequence[str] = (), bounds: tuple[np.ndarray, np.ndarray] | None = None) -> Posterior:
        """Current mixture as a posterior."""
        with jax.enable_x64(True):
            factors, weights = np.asarray(self.kernels.cholesky), np.asarray(self.kernels.weights)
        covariances = factors @ factors.transpose(0, 2, 1)
        return Posterior.of(weights, np.asarray(self.kernels.means), covariances, names=names, bounds=bounds)

    @property
    def history(self) -> MixtureHistory:
        """History of all epochs."""
        return MixtureHistory(*(np.stack(column) for column in zip(*self._record, strict=True)))


@eqx.filter_jit
def _samples(objective: AbstractMixtureLoss, kernels: Kernels, noise: tuple[Array, ...]) -> Float[Array, "batch size"]:
    return objective.samples(kernels, noise)


@eqx.filter_jit
def _update(
    objective: AbstractMixtureLoss, kernels: Kernels, memory: Any, given: EpochInputs
) -> tuple[EpochResult, Float[Array, "kernels size size"]]:
    """One epoch, and the covariances after it."""
    done = objective.update(kernels, memory, given)
    L = done.kernels.cholesky
    return done, L @ jnp.swapaxes(L, 1, 2)


def observe(
    mixture: Mixture,
    cost_of: Callable[[np.ndarray], Cost],
    stream: Iterable[np.ndarray],
    length: int,
    epochs: int = 1,
) -> MixtureHistory:
    """Update a mixture while samples arrive: after each sample, some epochs on all samples so far.

    Args:
        mixture: The mixture; it is changed in place.
        cost_of: Cost of measurements with NaN for samples that have not arrived.
        stream: Samples, one at a time.
        length: Number of samples of a measurement; later samples are ignored.
        epochs: Epochs after each sample.
    """
    measured: np.ndarray | None = None
    for k, sample in zip(range(length), stream, strict=False):
        sample = np.asarray(sample, float)
        if measured is None:
            measured = np.full((length, *sample.shape), np.nan)
        measured[k] = sample
        cost = cost_of(measured)
        for _ in range(epochs):
            mixture.epoch(cost, seen=k + 1)
    return mixture.history
