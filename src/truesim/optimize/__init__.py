"""Optimization without physics: least squares, global search, quadratic programs and constrained minimization."""

from truesim.optimize.basin_hopping import BasinHoppingOptions, SearchResult, basin_hopping
from truesim.optimize.basins import Basins, SolveRecord, SolveStatus, group_minima, group_solves
from truesim.optimize.cma_es import CmaEsOptions, cma_es
from truesim.optimize.levenberg_marquardt import BatchedLevenbergMarquardt, LevenbergMarquardtOptions, SolveTask
from truesim.optimize.objective import AbstractLeastSquares, AbstractObjective, Equations, Residuals, SearchSpace

__all__ = [
    "AbstractLeastSquares",
    "AbstractObjective",
    "BasinHoppingOptions",
    "Basins",
    "BatchedLevenbergMarquardt",
    "CmaEsOptions",
    "Equations",
    "LevenbergMarquardtOptions",
    "Residuals",
    "SearchResult",
    "SearchSpace",
    "SolveRecord",
    "SolveStatus",
    "SolveTask",
    "basin_hopping",
    "cma_es",
    "group_minima",
    "group_solves",
]
