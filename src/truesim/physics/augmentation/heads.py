"""Heads: turn the outputs of a network into a force with a physical property, whatever its weights are.

- `Dissipative`: `-D(x) u` with D positive definite and u the velocity that the force works on: power is never positive.
- `Conservative`: minus the gradient of a potential U(q): energy, with U in it, is conserved.
- `Kinetic`: a correction `1/2 v^T D(q) v` of the kinetic energy: it enters the equation of motion as Lagrange has it,
  `D a + (dD/dt) v - 1/2 d(v^T D v)/dq`, so that energy, with the correction in it, is conserved (Lutter et al. 2019).
"""

import abc
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float

DIAGONAL_OFFSET = -4.0
"""Offset of diagonal entries before softplus: larger starts with a larger matrix, smaller gives smaller gradients."""


class LearnedInertia(NamedTuple):
    """Terms of a kinetic-energy correction in the equation of motion."""

    inertia: Float[Array, "nv nv"]
    """Added to the mass matrix [kg m^2 or kg]."""
    bias: Float[Array, " nv"]
    """Added to Coriolis and centrifugal forces [N m or N]."""


class AbstractHead(abc.ABC):
    """Map from the outputs of a network to the value at its port."""

    name: ClassVar[str]
    """Name in a blueprint file."""
    inputs: ClassVar[tuple[str, ...] | None]
    """Only ports that the network may read; None for any."""

    @abc.abstractmethod
    def outputs(self, size: int) -> int:
        """Number of network outputs for a force with `size` components."""


class Dissipative(AbstractHead):
    """A force against the velocity."""

    name = "dissipative"
    inputs = None

    def outputs(self, size: int) -> int:
        """The entries of a symmetric matrix."""
        return triangle(size)

    def force(self, numbers: Float[Array, " outputs"], velocity: Float[Array, " size"]) -> Float[Array, " size"]:
        """`-D u`."""
        L, d = factors(numbers, velocity.size)
        return -(L @ (d * (L.T @ velocity)))


class Conservative(AbstractHead):
    """A force that has a potential."""

    name = "conservative"
    inputs = ("joint.position",)

    def outputs(self, size: int) -> int:
        """The potential."""
        return 1


class Kinetic(AbstractHead):
    """A correction of the kinetic energy."""

    name = "kinetic"
    inputs = ("joint.position",)

    def outputs(self, size: int) -> int:
        """The entries of a symmetric matrix."""
        return triangle(size)


HEADS: dict[str, AbstractHead] = {head.name: head for head in (Dissipative(), Conservative(), Kinetic())}
"""Heads by the names that a blueprint gives them."""


def triangle(size: int) -> int:
    """Entries of a symmetric matrix."""
    return size * (size + 1) // 2


def factors(numbers: Float[Array, " outputs"], size: int) -> tuple[Float[Array, "size size"], Float[Array, " size"]]:
    """L with ones on its diagonal and d above zero, for the positive definite matrix `L diag(d) L^T`."""
    rows, columns = np.tril_indices(size, -1)
    L = jnp.eye(size).at[rows, columns].set(numbers[size:])
    return L, jax.nn.softplus(numbers[:size] + DIAGONAL_OFFSET)


def lagrange(inertia: Callable[[Float[Array, " nv"]], Float[Array, "nv nv"]], v: Float[Array, " nv"]) -> LearnedInertia:
    """Equation of motion of the kinetic energy `1/2 v^T D(q + dq) v`, given `D` as a function of dq."""
    zero = jnp.zeros_like(v)
    D, rate = jax.jvp(inertia, (zero,), (v,))
    gradient = jax.grad(lambda dq: 0.5 * (v @ (inertia(dq) @ v)))(zero)
    return LearnedInertia(D, rate @ v - gradient)
