"""Safety limits of a robot: ranges of its signals by name or pattern."""

import dataclasses
import fnmatch
import math
from collections.abc import Iterable, Mapping

from truesim.core.errors import TruesimError, unknown_name

SAID_QUANTITIES = {
    "qpos": "position",
    "qvel": "velocity",
    "torque": "torque",
    "temperature": "temperature",
    "ctrl": "control",
    "action": "action",
}
"""Quantities in sentences, by the first part of a signal's name."""


@dataclasses.dataclass(frozen=True)
class SafetyLimits:
    """Ranges that signals must not leave, by name or pattern.

    SafetyLimits({"qpos/elbow": (-2.0, 2.0), "qvel/*": (-10, 10), "torque/*": (-5, 5), "temperature/*": (None, 70)})
    """

    ranges: Mapping[str, tuple[float | None, float | None]] = dataclasses.field(default_factory=dict)
    """Least and largest value, None for no limit; a signal that is not finite is beyond every limit."""

    def __post_init__(self) -> None:
        for pattern, (low, high) in self.ranges.items():
            if low is not None and high is not None and not low < high:
                raise TruesimError(f"The limits of {pattern} are [{low:g}, {high:g}]; this range is empty.")

    def check_names(self, signals: Iterable[str]) -> None:
        """Refuse a limit that belongs to no signal: it would protect nothing.

        Args:
            signals: Names of all signals.
        """
        names = list(signals)
        for pattern in self.ranges:
            if not fnmatch.filter(names, pattern):
                raise unknown_name("signal for the safety limit", pattern, names)

    def violation(self, signals: Mapping[str, float]) -> str | None:
        """Sentence about the first signal that is beyond its limits; None if all are within.

        Args:
            signals: Values by name.
        """
        for pattern, (low, high) in self.ranges.items():
            for name in fnmatch.filter(signals, pattern):
                value = signals[name]
                if not math.isfinite(value):
                    return f"{_said(name)} is {value:g}, not a number"
                if low is not None and value < low:
                    return f"{_said(name)} is {value:.4g}, below its limit of {low:g}"
                if high is not None and value > high:
                    return f"{_said(name)} is {value:.4g}, above its limit of {high:g}"
        return None


def _said(name: str) -> str:
    quantity, _, part = name.partition("/")
    return f"the {SAID_QUANTITIES[quantity]} of {part}" if part and quantity in SAID_QUANTITIES else name
