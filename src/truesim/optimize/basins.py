"""Local solves of a search, and the basins of attraction in which they ended."""

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from truesim.core.typing import Float, Int

BASIN_WIDTH = 1e-3
"""Minima closer than this fraction of the region's width in every coordinate belong to one basin."""


class SolveStatus(enum.StrEnum):
    """Reason for which a local solve ended."""

    CONVERGED = "converged"
    STALLED = "stalled"
    """No step decreased the cost any more, although the gradient was not zero."""
    LIMIT = "limit"
    """The limit of iterations was reached."""
    NOT_FINITE = "not finite"
    """No candidate had a finite cost."""


@dataclasses.dataclass(frozen=True)
class SolveRecord:
    """One finished local solve of a search."""

    chain: int
    """Number of the chain of hops."""
    hop: int
    """Place in the chain; 0 is the first solve of the chain."""
    start: Float[np.ndarray, " size"]
    theta: Float[np.ndarray, " size"]
    """Coordinates at the end."""
    cost: float
    """Cost at the end; infinite if no simulation stayed finite."""
    iterations: int
    """Evaluations of the objective."""
    status: SolveStatus


@dataclasses.dataclass(frozen=True)
class Basins:
    """Distinct minima, sorted by cost."""

    theta: Float[np.ndarray, "basins size"]
    """Coordinates of the lowest point found in each basin."""
    cost: Float[np.ndarray, " basins"]
    """Half the sum of squares at each minimum."""
    count: Int[np.ndarray, " basins"]
    """Number of solves that ended in each basin."""
    solves: int
    """Number of all solves, including those that never stayed finite."""

    def __len__(self) -> int:
        return len(self.cost)

    @property
    def best(self) -> Float[np.ndarray, " size"]:
        """Coordinates of the lowest minimum."""
        return self.theta[0]

    def table(self, limit: int = 20) -> list[dict[str, Any]]:
        """The lowest basins as plain numbers and lists, for JSON."""
        rows = zip(self.theta[:limit], self.cost[:limit], self.count[:limit], strict=True)
        return [{"theta": t.tolist(), "cost": float(c), "count": int(n)} for t, c, n in rows]


def group_minima(
    theta: Float[np.ndarray, "solves size"],
    cost: Float[np.ndarray, " solves"],
    width: Float[np.ndarray, " size"],
    apart: float = BASIN_WIDTH,
) -> Basins:
    """Group end points of solves into basins.

    In the order of cost, a solve joins the first basin whose minimum is near, or starts a new basin. The order of the
    solves does not matter.

    Args:
        theta: End point of each solve.
        cost: Cost there; solves whose cost is not finite are ignored.
        width: Scale of each coordinate, such as the distance between its bounds.
        apart: Minima closer than this fraction of the width belong to one basin.
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


def group_solves(
    solves: Sequence[SolveRecord], width: Float[np.ndarray, " size"], apart: float = BASIN_WIDTH
) -> Basins:
    """Basins in which these solves ended."""
    theta = np.array([s.theta for s in solves]).reshape(len(solves), len(width))
    return group_minima(theta, np.array([s.cost for s in solves], float), width, apart)
