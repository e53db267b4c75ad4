"""Solution of the rigid-contact problem of a step, with exact derivatives by the implicit function theorem."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name

from truesim.core.tracing import traced_once
from truesim.core.typing import Array, Bool, Float
from truesim.math.interior_point import active_rows, central_path
from truesim.math.interior_point.cones import AbstractCone
from truesim.math.interior_point.solver import ConeSolution, WarmStart
from truesim.physics.contact.base import CONTACT_SOLUTION
from truesim.physics.dynamics import inertia_forces, mass_matrix
from truesim.physics.model.model import Model


def _inertia(model: Model, q: Array, added: Array | None) -> Float[Array, "nv nv"]:
    """Mass matrix with the inertia that the integrator added."""
    M = mass_matrix(model, q)
    return M if added is None else M + jnp.diag(added)


@eqx.filter_custom_jvp
def solve(
    inputs: tuple, cone: AbstractCone, subset: tuple[int, ...], warm_start: WarmStart | None, skip: Bool[Array, ""]
) -> ConeSolution:
    """Solution of a problem with the mass matrix of a model; see `active_rows.solve`."""
    return _solved(inputs, cone, subset, warm_start, skip)


@functools.partial(jax.jit, static_argnums=2)
def _solved(
    inputs: tuple, cone: AbstractCone, subset: tuple[int, ...], warm_start: WarmStart | None, skip: Bool[Array, ""]
) -> ConeSolution:
    """The solution without derivatives; `jit` traces it once for all calls and transformations of a program."""
    model, q, added, problem = inputs
    problem = problem._replace(inertia=_inertia(model, q, added))
    return active_rows.solve(problem, cone, np.array(subset, dtype=int), warm_start, skip)


@solve.def_jvp
def _solve_jvp(primals: tuple, tangents: tuple) -> tuple[ConeSolution, ConeSolution]:
    """Implicit function theorem: Newton's step on the derivatives of the residuals at the solution."""
    (inputs, cone, subset, warm_start, skip), (perturbations, *_) = primals, tangents
    solution = checkpoint_name(solve(inputs, cone, subset, warm_start, skip), CONTACT_SOLUTION)
    changed = _perturbed(inputs, cone, solution.point, perturbations)
    return solution, ConeSolution(changed, None, None)  # type: ignore[arg-type]  # no tangents of the rest


@traced_once
def _perturbed(inputs: tuple, cone: AbstractCone, point: central_path.Iterate, perturbations: tuple) -> Any:
    """Change of the solution with the inputs, of which those that do not change are None."""
    model, q, added, problem = inputs

    def residuals(inputs: tuple) -> central_path.Iterate:
        model, q, added, problem = inputs
        gained = point.velocity - problem.free
        momentum = inertia_forces(model, q, gained)
        momentum = momentum if added is None else momentum + added * gained
        return central_path.residuals(problem, cone, point, problem.barrier, momentum)

    at_solution, changed = eqx.filter_jvp(residuals, (inputs,), (perturbations,))
    changed = jax.tree.map(lambda r, dr: jnp.zeros_like(r) if dr is None else dr, at_solution, changed)
    return central_path.newton(problem._replace(inertia=_inertia(model, q, added)), cone, point)(changed)
