"""Global search over the parameters of a problem, before its local solve."""

from truesim.identification.search.blackbox import diagnose_on_mujoco
from truesim.identification.search.mujoco_engine import MujocoEngine
from truesim.identification.search.open_loop import OpenLoop
from truesim.identification.search.run import SearchEngine, SearchMethod, SearchOptions, build_objective, search

__all__ = [
    "MujocoEngine",
    "OpenLoop",
    "SearchEngine",
    "SearchMethod",
    "SearchOptions",
    "build_objective",
    "diagnose_on_mujoco",
    "search",
]
