"""CMA-ES: finds minima without derivatives, the same ones from the same seed."""

import numpy as np
import pytest

from tests.identification.search.problems import rippled
from truesim.core.errors import TruesimError
from truesim.optimize import CmaEsOptions, cma_es


def test_restarts_find_the_lowest_minimum():
    """Populations grow until the lowest minimum is found; the cost never gets worse."""
    seen = []
    found = cma_es(rippled(), CmaEsOptions(goal=1e-8, restarts=9), callback=lambda f: seen.append(f.best.cost))
    np.testing.assert_allclose(found.best.theta, [1.0, -2.0], atol=1e-3)
    assert np.all(np.diff(seen) <= 0)
    assert all(solve.status == "converged" for solve in found.solves[:-1])
    assert found.evaluations == sum(s.iterations for s in found.solves)


def test_the_seed_decides_everything():
    """The same seed evaluates the same candidates; another does not."""
    runs = [cma_es(rippled(), CmaEsOptions(seed=seed, solves=200)).best.theta for seed in (1, 1, 2)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert np.any(runs[0] != runs[2])


def test_a_journal_continues_an_evolution(tmp_path):
    """What was evaluated is not evaluated again, and the end is the same."""
    whole = cma_es(rippled(), CmaEsOptions(solves=300))
    cma_es(rippled(), CmaEsOptions(solves=100), journal=tmp_path / "search.jsonl")
    objective, asked = rippled(), []
    costs = objective.costs
    objective.costs = lambda theta: asked.append(len(theta)) or costs(theta)
    rest = cma_es(objective, CmaEsOptions(solves=300), journal=tmp_path / "search.jsonl")
    np.testing.assert_array_equal(rest.best.theta, whole.best.theta)
    assert rest.evaluations == whole.evaluations
    assert sum(asked) < 210


def test_simulations_that_fail_cost_much():
    """Candidates that are not finite lose against all others."""
    objective = rippled()
    costs = objective.costs
    objective.costs = lambda theta: np.where(theta[:, 0] > 0.5, np.nan, costs(theta))
    found = cma_es(objective, CmaEsOptions(solves=400))
    assert np.isfinite(found.best.cost)
    assert found.best.theta[0] <= 0.5


def test_populations_of_two_are_refused():
    """So is a standard deviation of zero."""
    with pytest.raises(TruesimError, match="at least 3"):
        CmaEsOptions(population=2)
    with pytest.raises(TruesimError, match="sigma"):
        CmaEsOptions(sigma=0.0)
