"""A mixture of Gaussians that is fitted epoch by epoch: to all at once, or while samples arrive one at a time."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float, Int
from truesim.identify.posterior.gaussians import Posterior
from truesim.identify.posterior.kernels import Kernels
from truesim.identify.posterior.objectives import AbstractObjective, Given, Updated
from truesim.identify.posterior.trajectories import Cost


@dataclasses.dataclass(frozen=True)
class Evolution:
    """How a mixture came about, epoch by epoch."""

    loss: Float[np.ndarray, "epochs"]
    """The objective, as its samples estimate it."""
    scatter: Float[np.ndarray, "epochs"]
    """Mean difference of the objective's samples from their mean. Of likelihood and entropy: by how much, in
    logarithms, the mixture's density typically differs from the posterior's."""
    weights: Float[np.ndarray, "epochs kernels"]
    means: Float[np.ndarray, "epochs kernels size"]
    covariances: Float[np.ndarray, "epochs kernels size size"]
    seen: Int[np.ndarray, "epochs"]
    """Number of measured samples that each epoch knew of."""

    @property
    def mean(self) -> Float[np.ndarray, "epochs size"]:
        """Mean of the whole mixture."""
        return np.einsum("ek,eki->ei", self.weights, self.means)

    @property
    def std(self) -> Float[np.ndarray, "epochs size"]:
        """Standard deviation of the whole mixture, coordinate by coordinate."""
        apart = self.means - self.mean[:, None]
        return np.sqrt(np.einsum("ek,eki->ei", self.weights, self.stds**2 + apart**2))

    @property
    def stds(self) -> Float[np.ndarray, "epochs kernels size"]:
        """Standard deviations of each kernel."""
        return np.sqrt(np.diagonal(self.covariances, axis1=2, axis2=3))

    def mapped(self, centre: Float[np.ndarray, "size"], factor: Float[np.ndarray, "size size"]) -> "Evolution":
        """The same in the coordinates `centre + factor x`."""
        return dataclasses.replace(
            self, means=centre + self.means @ factor.T, covariances=factor @ self.covariances @ factor.T
        )


class Mixture:
    """A mixture that an optimiser moves, and the record of its way."""

    def __init__(
        self,
        start: Kernels,
        objective: AbstractObjective,
        *,
        rate: float | Callable[[int], Any] = 0.02,
        seed: int = 0,
    ):
        """Begins at `start`.

        Args:
            start: Where to begin.
            objective: What is made small.
            rate: Learning rate, or its schedule by epoch: of Adam for the published objective, and between 0 and 1 for
                likelihood and entropy.
            seed: Of all samples.
        """
        self.objective = objective
        self._rate = rate if callable(rate) else lambda _: rate
        self._rng = np.random.default_rng(seed)
        with jax.enable_x64(True):
            self.kernels = jax.tree.map(jnp.asarray, start)
            self._memory = objective.begin(self.kernels)
        self._record: list[tuple[np.ndarray, ...]] = []

    def epoch(self, cost: Cost, seen: int = 0, equal: bool = False) -> float:
        """One epoch; the scatter of the objective's samples.

        Args:
            cost: Of many choices of the coordinates, with gradients.
            seen: Number of measured samples that it knows of, for the record.
            equal: Whether the kernels' weights stay as they are.
        """
        with jax.enable_x64(True):
            noise = self.objective.noise(self._rng, self.kernels)
            values, slopes = cost(np.asarray(_samples(self.objective, self.kernels, noise)))
            rate = jnp.asarray(self._rate(len(self._record)), float)
            given = Given(noise, values, slopes, rate, jnp.asarray(0.0 if equal else 1.0))
            done, covariances = _updated(self.objective, self.kernels, self._memory, given)
        self.kernels, self._memory, loss, scatter = done
        record = (loss, scatter, done.kernels.weights, done.kernels.means, covariances, seen)
        self._record.append(tuple(map(np.asarray, record)))
        return float(scatter)

    def posterior(self, names: Sequence[str] = (), bounds: tuple[np.ndarray, np.ndarray] | None = None) -> Posterior:
        """The mixture as it is now."""
        with jax.enable_x64(True):
            factors, weights = np.asarray(self.kernels.cholesky), np.asarray(self.kernels.weights)
        covariances = factors @ factors.transpose(0, 2, 1)
        return Posterior.of(weights, np.asarray(self.kernels.means), covariances, names=names, bounds=bounds)

    @property
    def evolution(self) -> Evolution:
        """All epochs so far."""
        return Evolution(*(np.stack(column) for column in zip(*self._record, strict=True)))


@eqx.filter_jit
def _samples(objective: AbstractObjective, kernels: Kernels, noise: tuple[Array, ...]) -> Float[Array, "lanes size"]:
    return objective.samples(kernels, noise)


@eqx.filter_jit
def _updated(
    objective: AbstractObjective, kernels: Kernels, memory: Any, given: Given
) -> tuple[Updated, Float[Array, "kernels size size"]]:
    """One epoch, and the covariances that it leads to."""
    done = objective.updated(kernels, memory, given)
    L = done.kernels.cholesky
    return done, L @ jnp.swapaxes(L, 1, 2)


def observe(
    mixture: Mixture,
    cost_of: Callable[[np.ndarray], Cost],
    stream: Iterable[np.ndarray],
    length: int,
    epochs: int = 1,
) -> Evolution:
    """Updates a mixture while samples arrive: after each, some epochs on all that has arrived.

    Args:
        mixture: The mixture; it is changed.
        cost_of: The cost of a measurement with NaN where nothing has arrived yet.
        stream: Samples, one at a time.
        length: Number of samples that there is room for; later ones are not looked at.
        epochs: Of the mixture, after each sample.
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
    return mixture.evolution
