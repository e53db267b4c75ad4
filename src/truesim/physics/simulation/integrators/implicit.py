"""Integrators that treat velocity-dependent (and position-dependent) forces implicitly.

All solve `(M + dt D + dt^2 K) a = forces - dt K v` with different choices of D and K, the negative derivatives of the
forces in velocity and position. Diagonal D and K join the joints' inertia inside the articulated-body algorithm.
"""

from collections.abc import Callable
from typing import ClassVar

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.math import dense
from truesim.physics.dynamics import bias_forces, mass_matrix
from truesim.physics.model.kinds import FREE
from truesim.physics.model.model import Model
from truesim.physics.model.topology import Link
from truesim.physics.simulation.equation_of_motion import EquationOfMotion, as_matrix
from truesim.physics.simulation.integrators.base import AbstractIntegrator, Increment, semi_implicit


class Implicit(AbstractIntegrator):
    """D from all forces, Coriolis and centrifugal ones included (MuJoCo's `implicit`)."""

    order: ClassVar[int] = 1

    def step(
        self, equation: EquationOfMotion, q: Float[Array, " nq"], v: Float[Array, " nv"], dt: Float[Array, ""]
    ) -> Increment:
        """One step."""
        model = equation.model
        forces = equation.forces(q, v)
        bias, D_bias = _value_and_jacobian(lambda v: bias_forces(model, q, v), v)
        damping = equation.damping(q, v)
        D = D_bias + as_matrix(damping)
        a = dense.solve(mass_matrix(model, q) + dt * D, forces.total - bias)
        return semi_implicit(v, dt, a, forces, _diagonal(dt * damping))


class ImplicitFast(AbstractIntegrator):
    """D from joint damping and actuators (MuJoCo's `implicitfast`).

    Free bodies that carry no joints also get the derivatives of their gyroscopic forces, as in MuJoCo.
    """

    order: ClassVar[int] = 1

    def step(
        self, equation: EquationOfMotion, q: Float[Array, " nq"], v: Float[Array, " nv"], dt: Float[Array, ""]
    ) -> Increment:
        """One step."""
        forces = equation.forces(q, v)
        added = dt * equation.damping(q, v)
        a = equation.accelerate(q, v, forces.total, added)
        a = with_gyroscopic_derivatives(equation.model, q, v, a, dt, added)
        return semi_implicit(v, dt, a, forces, _diagonal(added))


class ImplicitStiff(AbstractIntegrator):
    """D and K from springs, dampers and actuators, where they stabilize: for joints too stiff for the time step."""

    order: ClassVar[int] = 1

    def step(
        self, equation: EquationOfMotion, q: Float[Array, " nq"], v: Float[Array, " nv"], dt: Float[Array, ""]
    ) -> Increment:
        """One step."""
        forces = equation.forces(q, v)
        D = jnp.maximum(_diagonal(equation.damping(q, v)), 0.0)
        K = jnp.maximum(equation.stiffness(q, v), 0.0)
        added = dt * D + dt**2 * K
        a = equation.accelerate(q, v, forces.total - dt * K * v, added)
        return semi_implicit(v, dt, a, forces, added)


def with_gyroscopic_derivatives(
    model: Model, q: Array, v: Array, a: Array, dt: Array, added: Float[Array, " nv"] | Float[Array, "nv nv"]
) -> Float[Array, " nv"]:
    """Accelerations in which free bodies without joints on them solve their own block with the full D.

    With B the block of `M + diag(added)` and G the derivative of its bias forces, `(B + dt G) a' = B a`.
    """
    for link in standalone_free_links(model):

        def block_bias(part: Array, block: slice = link.v) -> Array:
            return bias_forces(model, q, jnp.asarray(v).at[block].set(part))[block]

        B = mass_matrix(model, q)[link.v, link.v] + as_matrix(added)[link.v, link.v]
        G = jax.jacfwd(block_bias)(v[link.v])
        a = jnp.asarray(a).at[link.v].set(dense.solve(B + dt * G, B @ a[link.v]))
    return a


def _diagonal(damping: Float[Array, " nv"] | Float[Array, "nv nv"]) -> Float[Array, " nv"]:
    return damping if damping.ndim == 1 else jnp.diagonal(damping)


def standalone_free_links(model: Model) -> list[Link]:
    """Free links with no jointed descendant."""
    links = model.topology.links
    carrying = {i for k, link in enumerate(links) if link.joint >= 0 for i in model.topology.ancestors(k)[:-1]}
    return [link for i, link in enumerate(links) if link.kind == FREE and i not in carrying]


def _value_and_jacobian(f: Callable[[Array], Array], x: Array) -> tuple[Array, Array]:
    value, tangent = jax.linearize(f, x)
    return value, jax.vmap(tangent, out_axes=1)(jnp.eye(x.shape[0]))
