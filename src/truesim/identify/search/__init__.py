"""Search: where a local fit depends on its start, many of them, and what they came to."""

from truesim.identify.search.basins import Basins, Solve, basins_of, basins_of_solves

__all__ = ["Basins", "Solve", "basins_of", "basins_of_solves"]
