"""BayRn: Bayesian optimization of a randomization by real returns of policies that it trains (Muratore et al. 2021).

Only returns are observed, so it suits systems whose states are not logged; each evaluation trains a policy.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from truesim.core.typing import Float
from truesim.policies.adaptation.searches import BayesianSearch


class BayRnResult(NamedTuple):
    """Result of BayRn."""

    parameters: Float[np.ndarray, " size"]
    """Parameters of the randomization with the largest posterior mean among those tried."""
    tried: Float[np.ndarray, "iterations size"]
    returns: Float[np.ndarray, " iterations"]


def bayrn(
    real_return: Callable[[Float[np.ndarray, " size"]], float],
    low: Float[np.ndarray, " size"],
    high: Float[np.ndarray, " size"],
    *,
    iterations: int = 15,
    seed: int = 0,
) -> BayRnResult:
    """Optimize the parameters of a randomization, such as means and standard deviations of masses.

    Args:
        real_return: Trains a policy with the randomization of the given parameters, and plays it on the real system.
        low: Smallest value of each parameter.
        high: Largest value.
        iterations: Policies to train.
        seed: Seed of the search.
    """
    low, width = np.asarray(low, float), np.asarray(high, float) - np.asarray(low, float)
    search = BayesianSearch(np.full(len(low), 0.5), np.random.default_rng(seed))
    for _ in range(iterations):
        point = search.ask()
        search.tell(point, real_return(low + width * point))
    tried = low + width * np.array(search.points)
    return BayRnResult(low + width * search.suggest(), tried, np.array(search.values))
