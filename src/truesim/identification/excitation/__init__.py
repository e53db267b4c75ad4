"""Experiment design: the most informative motion within the limits of a robot."""

from truesim.identification.excitation.designer import Designer, design, designer_after_fit
from truesim.identification.excitation.limits import Limits
from truesim.identification.excitation.plan import Design, DesignOptions, ExpectedAccuracy
from truesim.identification.excitation.prior import FittedCovariance

__all__ = [
    "Design",
    "DesignOptions",
    "Designer",
    "ExpectedAccuracy",
    "FittedCovariance",
    "Limits",
    "design",
    "designer_after_fit",
]
