"""A solved estimation problem."""

import dataclasses
import functools

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.segments import Nodes, Windows
from truesim.identification.solve.levenberg_marquardt import Ending, Progress
from truesim.identification.solve.normal_equations import Point, ResidualWeights, point
from truesim.optimize.basin_hopping import SearchResult

NO_DERIVATIVES = (
    "This fit was simulated by MuJoCo, which gives no derivatives of its segments. Use the covariance of the fit "
    "itself (fit.uncertainty), or fit on the engine truesim."
)


@dataclasses.dataclass(frozen=True)
class Solution:
    """A solved estimation problem: the estimate, and the cost that it minimizes."""

    problem: Problem
    theta: Float[np.ndarray, " size"]
    """Coordinates of the estimates."""
    nodes: Nodes
    """Initial states of all segments."""
    weights: ResidualWeights
    windows: Windows
    sensor_noise: Float[np.ndarray, " rows"]
    """Noise of the sensors, from the roughness of their signals."""
    ending: Ending
    history: tuple[Progress, ...] = ()
    compile_seconds: float = 0.0
    """Time of compilation [s]."""
    solve_seconds: float = 0.0
    """CPU time without compilation [s]."""
    found: SearchResult | None = None
    """Result of the global search that gave the start, if there was one."""
    differentiable: bool = True
    """True if the engine gives residuals and derivatives of segments; MuJoCo as an engine does not."""

    @classmethod
    def at_point(cls, problem: Problem, at: Point, **rest: object) -> "Solution":
        """The solution at a point that is already simulated; other fields by name."""
        solution = cls(problem=problem, theta=at.theta, nodes=at.nodes, **rest)  # type: ignore[arg-type]
        vars(solution)["at"] = at
        return solution

    def replace(self, **changes: object) -> "Solution":
        """The solution with other fields by name; simulated segments are kept."""
        solution = dataclasses.replace(self, **changes)  # type: ignore[arg-type]
        if "at" in vars(self):
            vars(solution)["at"] = self.at
        return solution

    @functools.cached_property
    def at(self) -> Point:
        """Residuals and derivatives at the solution, simulated on first use."""
        if not self.differentiable:
            raise TruesimError(NO_DERIVATIVES)
        return point(self.problem, self.theta, self.nodes)

    @property
    def window_seconds(self) -> float:
        """Median length of a window [s]."""
        lengths = np.bincount(self.windows.window, self.problem.layout.intervals.duration.sum(axis=1))
        return float(np.median(lengths))
