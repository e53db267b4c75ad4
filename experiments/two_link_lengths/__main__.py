"""Lengths of a double pendulum from 10,000 starts, by one solve and by basin hopping from each.

`python -m experiments.two_link_lengths [--out basins.svg]`. The tables give the number of starts that lead to the
truth, the time of the study, and the solves per second of a batch compared with a loop of
`scipy.optimize.least_squares` over the same compiled residuals and derivatives.
"""

import argparse
import time
from pathlib import Path

import jax
import numpy as np

from benchmarks.peers.scipy_solves import loop
from benchmarks.timing import best_seconds
from benchmarks.two_links import HIGH, LOW, TRUTH, problem, starts
from experiments.recorded import show
from experiments.two_link_lengths.picture import draw
from truesim.core.typing import Float
from truesim.optimize import BasinHoppingOptions, Residuals, SearchResult, SolveRecord, basin_hopping, group_solves

GRID = 100
"""Number of starts along each length."""
EXACT = 1e-6
"""Largest error of a length that counts as found [m]."""
GOAL = 1e-14
"""Cost at which a chain stops [rad^2]."""
THREADS = 2


def alone(objective: Residuals, grid: Float[np.ndarray, "starts 2"]) -> SearchResult:
    """One solve from each start."""
    return basin_hopping(objective, BasinHoppingOptions(chains=len(grid), solves=len(grid)), starts=grid)


def hopped(objective: Residuals, grid: Float[np.ndarray, "starts 2"], seed: int = 0) -> SearchResult:
    """Basin hopping from each start until each chain has reached the goal."""
    return basin_hopping(
        objective, BasinHoppingOptions(chains=len(grid), goal=GOAL, every_chain=True, seed=seed), starts=grid
    )


def chains_best(found: SearchResult) -> list[SolveRecord]:
    """The best solve of every chain."""
    best: dict[int, SolveRecord] = {}
    for solve in found.solves:
        if solve.chain not in best or solve.cost < best[solve.chain].cost:
            best[solve.chain] = solve
    return [best[chain] for chain in sorted(best)]


def errors(solves: list[SolveRecord]) -> Float[np.ndarray, " solves"]:
    """Largest error of a length [m]."""
    return np.array([np.abs(solve.theta - TRUTH).max() for solve in solves])


def picture(path: Path, single: SearchResult, many: SearchResult) -> None:
    """Draw the basin of a single solve from each start, and the number of solves of hopping."""
    found = group_solves(single.solves, single.space.width)
    ends = np.array([solve.theta for solve in single.solves])
    basin = np.abs(ends[:, None] - found.theta[None]).max(axis=2).argmin(axis=1).reshape(GRID, GRID)
    named = [f"({t[0]:.3g}, {t[1]:.3g}), cost {c:.2g}" for t, c in zip(found.theta, found.cost, strict=True)]
    needed = np.array([solve.hop for solve in chains_best(many)]).reshape(GRID, GRID)
    counts = ["1 solve", *(f"{k + 1} solves" for k in range(1, 7)), "8 or more"]
    draw(
        path,
        [
            ("Minimum that one solve finds", basin, named),
            ("Hops to the truth", np.minimum(needed, 7), counts),
        ],
        LOW,
        HIGH,
    )


def main() -> None:
    """Run the study and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("two_link_lengths.svg"), help="file of the basin map")
    out = parser.parse_args().out
    jax.config.update("jax_enable_x64", True)
    begin = time.perf_counter()
    objective, grid = problem(THREADS), starts(GRID)
    single, many = alone(objective, grid), hopped(objective, grid)
    study = time.perf_counter() - begin
    rows = []
    for name, found, best in (("one solve", single, list(single.solves)), ("hopping", many, chains_best(many))):
        off = errors(best)
        rows.append((name, f"{(off < EXACT).sum()} of {len(off)}", off.max(), len(found.solves), found.seconds))
    header = ("from each start", f"truth to {EXACT:g} m", "largest error [m]", "solves", "seconds")
    show(f"Study of {len(grid)} starts on {THREADS} threads: {study:.1f} s, compilation included", header, rows)
    one = problem(1)
    few = grid[:: len(grid) // 200]
    ours, theirs = _rate(one, grid), len(few) / best_seconds(loop(one, few), patience=0)
    show(
        "Solves per second on one thread",
        ("batch", "scipy.optimize.least_squares", "ratio", "required"),
        [(ours, theirs, ours / theirs, 20)],
    )
    picture(out, single, many)
    print(f"Basin map in {out}.")


def _rate(objective: Residuals, grid: Float[np.ndarray, "starts 2"]) -> float:
    """Solves per second, the best of three runs after compilation."""
    objective.equations(grid[:4])
    return max(len(grid) / alone(objective, grid).seconds for _ in range(3))


if __name__ == "__main__":
    main()
