"""Differences and small moves of configurations, for batches of NumPy arrays."""

import dataclasses
import functools

import jax
import numpy as np

from truesim import native
from truesim.core.typing import Float
from truesim.physics import dynamics
from truesim.physics.model.model import Model


@dataclasses.dataclass(frozen=True)
class TangentSpace:
    """Operations between configurations of a model and tangent vectors, compiled on first use."""

    model: Model

    def difference(
        self, q: Float[np.ndarray, "batch nq"], start: Float[np.ndarray, "batch nq"]
    ) -> Float[np.ndarray, "batch nv"]:
        """Tangent vectors from `start` to `q`."""
        return q - start if self._is_flat else self._difference(q, start)

    def integrate(
        self, q: Float[np.ndarray, "batch nq"], dq: Float[np.ndarray, "batch nv"]
    ) -> Float[np.ndarray, "batch nq"]:
        """Configurations moved by tangent vectors."""
        return q + dq if self._is_flat else self._integrate(q, dq)

    @property
    def _is_flat(self) -> bool:
        return self.model.nq == self.model.nv

    @functools.cached_property
    def _difference(self) -> native.Kernel:
        model, q = self._erased, np.zeros(self.model.nq)
        structure = native.KernelStructure("differences of configurations", (model,), 0.0)
        with jax.enable_x64(True):
            return native.compile(lambda q, start: dynamics.difference(model, q, start), q, q, structure=structure)

    @functools.cached_property
    def _integrate(self) -> native.Kernel:
        model = self._erased
        structure = native.KernelStructure("moves of configurations", (model,), 0.0)
        q, dq = np.zeros(model.nq), np.zeros(model.nv)
        with jax.enable_x64(True):
            return native.compile(lambda q, dq: dynamics.integrate(model, q, dq), q, dq, structure=structure)

    @functools.cached_property
    def _erased(self) -> Model:
        """The model with NaN in the place of all its numbers, on which configurations do not depend."""
        return jax.tree.map(lambda x: np.full(np.shape(x), np.nan), self.model)
