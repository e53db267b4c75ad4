"""Problem of soft constraints: `minimize over a: 1/2 (a - a0)^T M (a - a0) + costs of rows and cones`."""

from typing import NamedTuple

import jax.numpy as jnp

from truesim.core.typing import Array, Bool, Float
from truesim.math.soft_constraints import cones as elliptic
from truesim.math.soft_constraints.cones import Cones
from truesim.math.soft_constraints.rows import SoftConstraints


class Constraints(NamedTuple):
    """All constraints of a problem."""

    rows: SoftConstraints
    cones: Cones

    def deviations(self, a: Float[Array, " n"]) -> "ConstraintNumbers":
        """`J a - reference` of rows and cones."""
        return ConstraintNumbers(self.rows.J @ a - self.rows.reference, elliptic.deviations(self.cones, a))

    def changes(self, direction: Float[Array, " n"]) -> "ConstraintNumbers":
        """`J direction` of rows and cones."""
        return ConstraintNumbers(self.rows.J @ direction, self.cones.J @ direction)

    def forces(self, at: "ConstraintNumbers") -> "ConstraintNumbers":
        """Force of each row and cone."""
        pull = -self.rows.stiffness * at.rows
        return ConstraintNumbers(jnp.clip(pull, self.rows.low, self.rows.high), elliptic.forces(self.cones, at.cones))

    def generalized(self, forces: "ConstraintNumbers") -> Float[Array, " n"]:
        """`J^T f` of rows and cones."""
        return self.rows.J.T @ forces.rows + jnp.einsum("cin,ci->n", self.cones.J, forces.cones)

    def inside(self, at: "ConstraintNumbers") -> Bool[Array, " rows"]:
        """True where the force of a row is between its bounds."""
        pull = -self.rows.stiffness * at.rows
        return (pull > self.rows.low) & (pull < self.rows.high)

    def cost(self, at: "ConstraintNumbers") -> Float[Array, ""]:
        """Sum of the costs of rows and cones."""
        D, f = self.rows.stiffness, self.forces(at).rows
        beyond = -f * at.rows - f**2 / jnp.where(D > 0, 2 * D, 1.0)
        within = D * at.rows**2 / 2
        return jnp.sum(jnp.where(self.inside(at), within, beyond)) + elliptic.cost(self.cones, at.cones)

    def hessian(self, M: Float[Array, "n n"], at: "ConstraintNumbers") -> Float[Array, "n n"]:
        """Second derivative of the whole cost: `M + J^T W J`."""
        weight = jnp.where(self.inside(at), self.rows.stiffness, 0.0)
        blocks = elliptic.hessian_blocks(self.cones, at.cones)
        of_cones = jnp.einsum("cin,cij,cjm->nm", self.cones.J, blocks, self.cones.J)
        return M + self.rows.J.T @ (weight[:, None] * self.rows.J) + of_cones


class ConstraintNumbers(NamedTuple):
    """One number per row, and six per cone."""

    rows: Float[Array, " rows"]
    cones: Float[Array, "contacts 6"]

    def along(self, step: Float[Array, ""], changes: "ConstraintNumbers") -> "ConstraintNumbers":
        """Numbers after a step along a line."""
        return ConstraintNumbers(self.rows + step * changes.rows, self.cones + step * changes.cones)
