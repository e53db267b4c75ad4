"""Identification: from logs to a robot that moves like the real one, with intervals and a status."""

from truesim.identification.diagnose.diagnosis import Diagnosis, Part, diagnose
from truesim.identification.diagnose.estimates import Estimate, Flag
from truesim.identification.diagnose.evaluation import Errors, evaluate
from truesim.identification.diagnose.options import DiagnoseOptions
from truesim.identification.diagnose.status import Status
from truesim.identification.fit import Fit
from truesim.identification.pipeline import identify
from truesim.identification.problem.build import build
from truesim.identification.problem.options import ProblemOptions
from truesim.identification.problem.problem import Problem
from truesim.identification.search.run import SearchOptions
from truesim.identification.solve.options import SolveOptions
from truesim.identification.solve.solution import Solution
from truesim.identification.solve.stages import solve_problem

__all__ = [
    "DiagnoseOptions",
    "Diagnosis",
    "Errors",
    "Estimate",
    "Fit",
    "Flag",
    "Part",
    "Problem",
    "ProblemOptions",
    "SearchOptions",
    "Solution",
    "SolveOptions",
    "Status",
    "build",
    "diagnose",
    "evaluate",
    "identify",
    "solve_problem",
]
