"""Search: where a local fit depends on its start, many of them, and what they came to."""

from truesim.identify.search.basins import Basins, Solve, basins_of, basins_of_solves
from truesim.identify.search.evolution import Evolution, evolve
from truesim.identify.search.hopping import Found, Hopping, hop
from truesim.identify.search.lanes import Lanes, Task, Tolerance
from truesim.identify.search.objective import AbstractLeastSquares, AbstractObjective, Box, Equations, Residuals
from truesim.identify.search.open_loop import OpenLoop

__all__ = [
    "AbstractLeastSquares",
    "AbstractObjective",
    "Basins",
    "Box",
    "Equations",
    "Evolution",
    "Found",
    "Hopping",
    "Lanes",
    "OpenLoop",
    "Residuals",
    "Solve",
    "Task",
    "Tolerance",
    "basins_of",
    "basins_of_solves",
    "evolve",
    "hop",
]
