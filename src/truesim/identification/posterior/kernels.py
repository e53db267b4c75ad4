"""Kernels of a mixture of Gaussians in an unconstrained parametrization."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float


class Kernels(NamedTuple):
    """Unconstrained parameters of a mixture of Gaussians."""

    logits: Float[Array, " kernels"]
    means: Float[Array, "kernels size"]
    factors: Float[Array, "kernels size size"]
    """Cholesky factors of the covariances: logarithms of the diagonal; below it, entries divided by the diagonal."""

    @classmethod
    def around(cls, means: Float[np.ndarray, "kernels size"], std: Float[np.ndarray, " size"]) -> "Kernels":
        """Kernels of equal weight with diagonal covariances."""
        count, size = np.shape(means)
        factor = np.diag(np.log(np.broadcast_to(np.asarray(std, float), size)))
        return cls(np.zeros(count), np.asarray(means, float), np.tile(factor, (count, 1, 1)))

    @classmethod
    def of(
        cls,
        logits: Float[Array, " kernels"],
        means: Float[Array, "kernels size"],
        cholesky: Float[Array, "kernels size size"],
    ) -> "Kernels":
        """Kernels from the lower Cholesky factors of their covariances."""
        diagonal = jnp.diagonal(cholesky, axis1=1, axis2=2)
        factors = jnp.tril(cholesky, -1) / diagonal[:, :, None] + jax.vmap(jnp.diag)(jnp.log(diagonal))
        return cls(logits, means, factors)

    @property
    def weights(self) -> Float[Array, " kernels"]:
        """Probability of each kernel."""
        return jax.nn.softmax(self.logits)

    @property
    def cholesky(self) -> Float[Array, "kernels size size"]:
        """Lower Cholesky factors of the covariances."""
        scale = jnp.exp(jnp.diagonal(self.factors, axis1=1, axis2=2))
        return scale[:, :, None] * (jnp.tril(self.factors, -1) + jnp.eye(scale.shape[1])[None])

    def log_density(self, theta: Float[Array, " size"]) -> Float[Array, ""]:
        """Logarithm of the mixture's density."""
        apart = theta[None] - self.means
        solve = jax.vmap(lambda L, d: jax.scipy.linalg.solve_triangular(L, d, lower=True))
        scaled = solve(self.cholesky, apart)
        volume = jnp.diagonal(self.factors, axis1=1, axis2=2).sum(axis=1) + theta.size / 2 * math.log(2 * math.pi)
        return jax.nn.logsumexp(jax.nn.log_softmax(self.logits) - volume - (scaled**2).sum(axis=1) / 2)

    def reuse_light(self, least: float) -> "Kernels":
        """Mixture whose kernels with less weight than `least` are replaced by copies of the heaviest one."""
        w, own = self.weights, jnp.arange(len(self.logits))
        heaviest = jnp.argmax(w)
        source = jnp.where(w < least, heaviest, own)
        shared = (source == heaviest).sum().astype(w.dtype)
        logits = jnp.log(w)[source] - jnp.where(source == heaviest, jnp.log(shared), 0.0)
        return Kernels(logits, self.means[source], self.factors[source])
