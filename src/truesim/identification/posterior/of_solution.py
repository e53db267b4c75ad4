"""Posterior of a solved problem by the name of its kind."""

from collections.abc import Sequence

import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Float
from truesim.identification.diagnose.covariance import Uncertainty
from truesim.identification.posterior.basins import multistart_posterior, scatter_starts
from truesim.identification.posterior.laplace import laplace
from truesim.identification.posterior.parameters import ParameterPosterior
from truesim.identification.posterior.variational import MixtureCallback, MixtureOptions, mixture
from truesim.identification.solve.options import SolveOptions
from truesim.identification.solve.solution import Solution

POSTERIOR_KINDS = ("laplace", "mixture", "basins")


def posterior_of(
    solution: Solution,
    found: Uncertainty,
    kind: str = "laplace",
    *,
    mixture_options: MixtureOptions | None = None,
    starts: Sequence[Float[np.ndarray, " size"]] | int = 8,
    solve_options: SolveOptions | None = None,
    callback: MixtureCallback | None = None,
) -> ParameterPosterior:
    """Posterior of the parameters of a solved problem.

    Args:
        solution: The solved problem.
        found: Covariance of its estimates.
        kind: `laplace` (a Gaussian at the fit), `mixture` (fitted Gaussians) or `basins` (a Gaussian per minimum).
        mixture_options: Size, epochs and seed of a mixture; its seed also scatters the starts of `basins`.
        starts: Coordinates, or the number of random starts, from which `basins` are searched.
        solve_options: Options of the solves of `basins`.
        callback: Called with the number of finished epochs or solves and of all.
    """
    options = mixture_options or MixtureOptions()
    if kind == "laplace":
        return ParameterPosterior(solution.problem, laplace(solution, found))
    if kind == "mixture":
        mixed, history = mixture(solution, options, callback, found)
        return ParameterPosterior(solution.problem, mixed, history)
    if kind != "basins":
        raise unknown_name("posterior", kind, POSTERIOR_KINDS)
    if isinstance(starts, int):
        if starts < 1:
            raise TruesimError(f"The number of starts is {starts}; it must be at least 1.")
        starts = list(scatter_starts(solution.problem, solution.theta, starts, options.seed))
    several, minima = multistart_posterior(solution.problem, np.stack(starts), solve_options, callback)
    return ParameterPosterior(solution.problem, several, minima=len(minima))
