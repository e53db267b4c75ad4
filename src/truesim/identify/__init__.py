"""Identification: from logs to a robot that moves like the real one, and how sure that is."""

from truesim.identify.api import identify
from truesim.identify.build import Options, build
from truesim.identify.evaluate import Errors, evaluate
from truesim.identify.fit import Settings, Solution, solve_problem
from truesim.identify.folder import Request, read_fit, write_fit
from truesim.identify.problem import Problem
from truesim.identify.result import Estimate, Fit, conclude
from truesim.identify.verdict import Verdict

__all__ = [
    "Errors",
    "Estimate",
    "Fit",
    "Options",
    "Problem",
    "Request",
    "Settings",
    "Solution",
    "Verdict",
    "build",
    "conclude",
    "evaluate",
    "identify",
    "read_fit",
    "solve_problem",
    "write_fit",
]
