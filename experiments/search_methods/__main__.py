"""Number of simulated steps that Levenberg-Marquardt and CMA-ES need to reach the same cost.

`python -m experiments.search_methods [--quick]`. Data is simulated by MuJoCo at a fine step. Steps with derivatives
count once, and in the next column once for the step and once for each parameter. CMA-ES runs until its cost exceeds
that of Levenberg-Marquardt by at most 0.01 %.
"""

import argparse

import jax

from experiments.recorded import show
from experiments.search_methods.cases import Case, lecture, servo
from truesim.optimize import BasinHoppingOptions, CmaEsOptions, SearchResult, basin_hopping, cma_es

SAME = 1e-4
"""Relative difference below which costs are equal."""


def gradient(case: Case) -> SearchResult:
    """One solve from the robot's values."""
    return basin_hopping(case.objective, BasinHoppingOptions(chains=1, solves=1))


def evolved(case: Case, goal: float, seed: int = 0) -> SearchResult:
    """CMA-ES from the same values until the cost is below `goal`."""
    return cma_es(case.objective, CmaEsOptions(seed=seed, goal=goal, solves=20_000))


def found_values(case: Case, found: SearchResult) -> dict[str, float]:
    """The best values, by path [SI units]."""
    problem = case.objective.problem
    values, _ = problem.values(found.best.theta)
    return dict(zip(problem.parameters.names, map(float, values), strict=True))


def within(case: Case, values: dict[str, float]) -> bool:
    """True if the errors of all values are accepted."""
    return all(abs(values[path] - truth) <= case.allowed[path] for path, truth in case.truth.items())


def main() -> None:
    """Run both methods on both cases and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a shorter chirp for the servo")
    quick = parser.parse_args().quick
    jax.config.update("jax_enable_x64", True)
    for case in (lecture(2), servo(2, 4.0) if quick else servo(2)):
        compare(case)


def compare(case: Case) -> None:
    """Print the results and the cost of both methods."""
    size, steps = len(case.truth), case.objective.steps
    by_gradient = gradient(case)
    by_evolution = evolved(case, by_gradient.best.cost * (1 + SAME))
    columns = {"truth": dict(case.truth)}
    columns |= {"gradient": found_values(case, by_gradient), "CMA-ES": found_values(case, by_evolution)}
    rows = [(path, *(values[path] for values in columns.values()), case.allowed[path]) for path in case.truth]
    show(f"{case.name}: values", ("parameter", *columns, "allowed error"), rows)
    methods = {"Levenberg-Marquardt": (by_gradient, 1 + size), "CMA-ES": (by_evolution, 1)}
    rows = []
    for name, (found, columns_each) in methods.items():
        plain = found.evaluations * steps
        done = (f"{plain:,}", f"{plain * columns_each:,}", found.seconds, within(case, found_values(case, found)))
        rows.append((name, found.best.cost, found.evaluations, *done))
    header = ("method", "cost", "evaluations", "steps", "with derivatives", "seconds", "truth found")
    fewer = by_evolution.evaluations / by_gradient.evaluations
    show(f"{case.name}: {fewer:.0f} times fewer steps by gradient (required: 10)", header, rows)


if __name__ == "__main__":
    main()
