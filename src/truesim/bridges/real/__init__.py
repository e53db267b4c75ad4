"""The real system: a robot or its stand-in with a budget, safety limits, a rate and logs.

- `env`: `RealEnv`, which wraps any environment of gymnasium;
- `limits`, `clock`, `episode_files`: what it checks, when it acts, and what it keeps;
- `stand_in`, `stand_in_physics`: MuJoCo with effects that the simulator does not have, in the place of a robot.
"""

from truesim.bridges.real.clock import ClockSource, RateKeeper, WallClock
from truesim.bridges.real.env import BudgetSpentError, RealBudget, RealEnv, RealSignals
from truesim.bridges.real.episode_files import RealEpisode
from truesim.bridges.real.limits import SafetyLimits
from truesim.bridges.real.stand_in import StandInEnv, make_stand_in
from truesim.bridges.real.stand_in_physics import STAND_IN_LEVELS, RealEffects, StandInPhysics

__all__ = [
    "STAND_IN_LEVELS",
    "BudgetSpentError",
    "ClockSource",
    "RateKeeper",
    "RealBudget",
    "RealEffects",
    "RealEnv",
    "RealEpisode",
    "RealSignals",
    "SafetyLimits",
    "StandInEnv",
    "StandInPhysics",
    "WallClock",
    "make_stand_in",
]
