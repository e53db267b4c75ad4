"""Basins: the different minima that many solves came to, best first."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from truesim.core.typing import Float, Int

APART = 1e-3
"""Minima that differ by less than this part of the bounds' width in every coordinate are one basin."""


@dataclasses.dataclass(frozen=True)
class Solve:
    """One finished local solve of a search."""

    chain: int
    """Which chain of hops it belongs to."""
    hop: int
    """Its place in the chain; 0 is the chain's first solve."""
    start: Float[np.ndarray, "size"]
    theta: Float[np.ndarray, "size"]
    """Where it ended."""
    cost: float
    """There; infinite if the simulation never stayed finite."""
    iterations: int
    """Evaluations of the objective."""
    ending: str
    """`converged`, `stalled`, `limit` (of iterations) or `not finite`."""


@dataclasses.dataclass(frozen=True)
class Basins:
    """Different minima, the lowest first."""

    theta: Float[np.ndarray, "basins size"]
    """Coordinates of each minimum, the best that was found in its basin."""
    cost: Float[np.ndarray, "basins"]
    """Half the sum of squares at each minimum."""
    count: Int[np.ndarray, "basins"]
    """How many solves ended in each."""
    solves: int
    """How many solves there were, those that never stayed finite included."""

    def __len__(self) -> int:
        return len(self.cost)

    @property
    def best(self) -> Float[np.ndarray, "size"]:
        """Coordinates of the lowest minimum."""
        return self.theta[0]

    def table(self, most: int = 20) -> list[dict[str, Any]]:
        """The lowest basins as plain numbers and lists, for JSON."""
        rows = zip(self.theta[:most], self.cost[:most], self.count[:most], strict=True)
        return [{"theta": t.tolist(), "cost": float(c), "count": int(n)} for t, c, n in rows]


def basins_of(
    theta: Float[np.ndarray, "solves size"],
    cost: Float[np.ndarray, "solves"],
    width: Float[np.ndarray, "size"],
    apart: float = APART,
) -> Basins:
    """The basins in which solves ended.

    From the lowest cost up, a solve joins the first basin whose minimum is near, or begins one. The order of the solves
    does not matter.

    Args:
        theta: Where each solve ended.
        cost: The cost there; solves whose cost is not finite are left out.
        width: Scale of each coordinate, such as the distance between its bounds.
        apart: Minima nearer than this, in parts of the width, are one.
    """
    used = np.flatnonzero(np.isfinite(cost))
    order = used[np.lexsort((*theta[used].T[::-1], cost[used]))]
    left, firsts, counts = theta[order] / width, [], []
    places = order
    while len(left):
        near = np.abs(left - left[0]).max(axis=1, initial=0.0) < apart
        near[0] = True
        firsts.append(places[0])
        counts.append(int(near.sum()))
        left, places = left[~near], places[~near]
    return Basins(theta[firsts], cost[firsts], np.array(counts, int), len(cost))


def basins_of_solves(solves: Sequence[Solve], width: Float[np.ndarray, "size"], apart: float = APART) -> Basins:
    """The basins in which these solves ended."""
    theta = np.array([s.theta for s in solves]).reshape(len(solves), len(width))
    return basins_of(theta, np.array([s.cost for s in solves], float), width, apart)
