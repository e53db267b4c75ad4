"""A mixture of Gaussians fitted by Adam: all at once, or while samples arrive one at a time."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from truesim.core.typing import Array, Float, Int
from truesim.identify.posterior.gaussians import Posterior
from truesim.identify.posterior.objectives import AbstractObjective, Kernels
from truesim.identify.posterior.trajectories import Cost

ADAM = optax.scale_by_adam(b2=0.98)
"""Adam that remembers the size of gradients for some fifty epochs: at the start, far off, they are far larger."""


@dataclasses.dataclass(frozen=True)
class Evolution:
    """How a mixture came about, epoch by epoch."""

    loss: Float[np.ndarray, "epochs"]
    """The objective, as its samples estimate it."""
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
            rate: Learning rate of Adam, or its schedule by epoch.
            seed: Of all samples.
        """
        self.objective = objective
        self._rate = rate if callable(rate) else lambda _: rate
        self._rng = np.random.default_rng(seed)
        with jax.enable_x64(True):
            self.kernels = jax.tree.map(jnp.asarray, start)
            self._memory = ADAM.init(self.kernels)
        self._record: list[tuple[np.ndarray, ...]] = []

    def epoch(self, cost: Cost, seen: int = 0, equal: bool = False) -> None:
        """One step of Adam.

        Args:
            cost: Of many choices of the coordinates, with gradients.
            seen: Number of measured samples that it knows of, for the record.
            equal: Whether the kernels' weights stay as they are.
        """
        with jax.enable_x64(True):
            noise = self.objective.noise(self._rng, self.kernels)
            values, slopes = cost(np.asarray(_samples(self.objective, self.kernels, noise)))
            rate = jnp.asarray(self._rate(len(self._record)), float)
            given = _Given(noise, values, slopes, rate, jnp.asarray(0.0 if equal else 1.0))
            self.kernels, self._memory, record = _updated(self.objective, self.kernels, self._memory, given)
        self._record.append((*map(np.asarray, record), np.asarray(seen)))

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


class _Given(NamedTuple):
    """What one step of Adam depends on."""

    noise: tuple[Array, ...]
    cost: Float[Array, "lanes"]
    slope: Float[Array, "lanes size"]
    rate: Float[Array, ""]
    free: Float[Array, ""]
    """1 if weights move, else 0."""


@eqx.filter_jit
def _samples(objective: AbstractObjective, kernels: Kernels, noise: tuple[Array, ...]) -> Float[Array, "lanes size"]:
    return objective.samples(kernels, noise)


@eqx.filter_jit
def _updated(
    objective: AbstractObjective, kernels: Kernels, memory: Any, given: _Given
) -> tuple[Kernels, Any, tuple[Array, ...]]:
    """The mixture after a step of Adam, Adam's memory, and what is recorded."""

    def value(step: Kernels) -> Array:
        here = objective.moved(kernels, step)
        theta = objective.samples(here, given.noise)
        moved = theta - jax.lax.stop_gradient(theta)
        return objective.value(here, theta, given.cost + jnp.sum(given.slope * moved, axis=-1))

    loss, gradient = jax.value_and_grad(value)(jax.tree.map(jnp.zeros_like, kernels))
    with jax.numpy_dtype_promotion("standard"):  # optax mixes types
        direction, memory = ADAM.update(gradient, memory)
    step = jax.tree.map(lambda x: -given.rate * x, direction)
    after = objective.moved(kernels, step._replace(logits=given.free * step.logits))
    covariances = after.cholesky @ jnp.swapaxes(after.cholesky, 1, 2)
    return after, memory, (loss, after.weights, after.means, covariances)


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
        epochs: Steps of Adam after each sample.
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
