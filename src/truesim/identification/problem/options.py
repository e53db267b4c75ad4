"""Options of an estimation problem."""

import dataclasses
from collections.abc import Mapping, Sequence

from truesim.core.errors import TruesimError
from truesim.identification.problem.per_log import PerLog
from truesim.physics.blueprint import Blueprint, Trained
from truesim.physics.contact.choose import NONE

LEVELS = (0, 1)
"""Optimization levels of LLVM that kernels are tested with."""
NumberPair = tuple[float, float]
"""Lower and upper bound, or mean and standard deviation."""


@dataclasses.dataclass(frozen=True)
class ProblemOptions:
    """Options of an estimation problem, beyond which parameters are free."""

    ties: Sequence[Sequence[str] | str] = ()
    """Patterns, or lists of patterns, whose matches share one value."""
    bounds: Mapping[str, NumberPair] = dataclasses.field(default_factory=dict)
    """Lower and upper bound by pattern [SI units]."""
    priors: Mapping[str, NumberPair] = dataclasses.field(default_factory=dict)
    """Mean and standard deviation of a Gaussian prior by pattern [SI units]."""
    prior_width: float = 2.0
    """Standard deviation of the weak Gaussian prior that every coordinate has around its start.

    Coordinates are logarithms of positive quantities and multiples of the start value of others. The prior keeps
    parameters that the logs do not determine near their start. Larger is weaker; infinite removes it.
    """
    per_log: PerLog = dataclasses.field(default_factory=dict)
    """Values that differ from log to log, by log name and path."""
    reach: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Values that scales and bounds of parameters make room for, by path [SI units]: those of a regression."""
    channels: Sequence[str] = ()
    """Patterns of measured channels to compare; by default all that the simulator can predict."""
    contact: str = NONE
    """Contact model: `none`, `rigid`, `compliant`, `implicit`, or `file` for MuJoCo's constraint model."""
    smoothing: float | None = None
    """Smoothing of rigid contact: larger gives smoother gradients through contact events; the least unless given."""
    blueprint: Blueprint | Trained | None = None
    """Networks within the physics, whose weights are estimated together with the parameters."""
    level: int = 0
    """LLVM's optimization level of the kernels of the fit.

    0 compiles several times faster and suits one fit, which calls them some hundred times; 1 runs 1.3 to
    1.5 times faster and suits many thousands of calls. Estimates differ only by rounding.
    """

    def __post_init__(self) -> None:
        if not self.prior_width > 0:
            raise TruesimError(f"The prior width is {self.prior_width:g}; it must be positive ('inf' for no prior).")
        if self.level not in LEVELS:
            raise TruesimError(f"The optimization level of kernels is {self.level}; it must be 0 or 1.")
