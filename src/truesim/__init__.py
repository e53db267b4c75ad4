"""Make a robot simulator agree with the real machine."""

from truesim.core.errors import TruesimError
from truesim.data import Log, read_log
from truesim.formats import load, save
from truesim.model.laws import with_law
from truesim.model.model import Model
from truesim.simulate import Simulator, State, Trajectory, record, rollout

__all__ = [
    "Log",
    "Model",
    "Simulator",
    "State",
    "Trajectory",
    "TruesimError",
    "load",
    "read_log",
    "record",
    "rollout",
    "save",
    "with_law",
]
