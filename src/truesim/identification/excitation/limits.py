"""Limits of a motion from the robot file and from the user."""

import dataclasses
import fnmatch
from collections.abc import Mapping

import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Float
from truesim.physics.model.kinds import HINGE, SLIDE
from truesim.physics.model.model import Model

LimitPair = tuple[float, float]
"""Lower and upper bound."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """Bounds on positions, velocities, actuator forces and controls, in this order; infinite if unlimited."""

    names: tuple[str, ...]
    """Name of each quantity, such as `position of elbow`."""
    low: Float[np.ndarray, " quantities"]
    high: Float[np.ndarray, " quantities"]

    @classmethod
    def of(
        cls,
        model: Model,
        *,
        positions: Mapping[str, LimitPair] | None = None,
        speeds: Mapping[str, float] | None = None,
        forces: Mapping[str, float] | None = None,
    ) -> "Limits":
        """Limits of the robot file, tightened by the given ones.

        Args:
            model: The robot; all joints must be hinges or slides.
            positions: Lower and upper bounds by joint name pattern [rad or m].
            speeds: Maximum speeds by joint name pattern [rad/s or m/s]; every joint needs one.
            forces: Maximum forces by actuator name pattern [N m or N].
        """
        joints, actuators = model.joints, model.actuators
        for name, kind in zip(joints.names, joints.kinds, strict=True):
            if kind not in (HINGE, SLIDE):
                raise TruesimError(f"{name} is a {kind.name} joint; motions are designed for hinges and slides.")
        q = _bounds(joints.limited, np.asarray(joints.range))
        v = np.tile([-np.inf, np.inf], (len(joints.names), 1))
        f = _bounds(actuators.force_limited, np.asarray(actuators.force_range))
        q = _tighten("joint", joints.names, q, positions or {})
        v = _tighten("joint", joints.names, v, {k: (-x, x) for k, x in (speeds or {}).items()})
        f = _tighten("actuator", actuators.names, f, {k: (-x, x) for k, x in (forces or {}).items()})
        c = _bounds(actuators.control_limited, np.asarray(actuators.control_range))
        free = [name for name, (low, high) in zip(joints.names, v, strict=True) if not np.isfinite(high - low)]
        if free:
            raise TruesimError(
                f"{', '.join(free[:6])}: no limit of the speed is known, and without one the optimal motion is "
                "unbounded; give one, such as --speed 1.5 or --speed 'elbow=1.5' (rad/s or m/s)."
            )
        whole = np.concatenate([q, v, f, c])
        names = [f"{kind} of {name}" for kind in ("position", "speed") for name in joints.names]
        names += [f"{kind} of {name}" for kind in ("force", "control") for name in actuators.names]
        return cls(tuple(names), whole[:, 0], whole[:, 1])

    def usage(self, motion: Float[np.ndarray, "*batch quantities"]) -> Float[np.ndarray, "*batch quantities"]:
        """Usage of each limit: distance from the middle of the bounds over half their width; above 1 is a violation."""
        bounded = np.isfinite(self.high - self.low)
        low, high = np.where(bounded, self.low, -1.0), np.where(bounded, self.high, 1.0)
        return np.where(bounded, (2 * motion - low - high) / (high - low), 0.0)

    @property
    def usage_gradient(self) -> Float[np.ndarray, " quantities"]:
        """Derivative of the usage by each quantity."""
        bounded = np.isfinite(self.high - self.low)
        return np.where(bounded, 2 / np.where(bounded, self.high - self.low, 1.0), 0.0)


def _bounds(limited: tuple[bool, ...], ranges: np.ndarray) -> Float[np.ndarray, "n 2"]:
    unlimited = np.tile([-np.inf, np.inf], (len(limited), 1))
    return np.where(np.array(limited, bool).reshape(-1, 1), np.asarray(ranges, float).reshape(-1, 2), unlimited)


def _tighten(kind: str, names: tuple[str, ...], bounds: np.ndarray, given: Mapping[str, LimitPair]) -> np.ndarray:
    bounds = bounds.copy()
    for pattern, (low, high) in given.items():
        own = [k for k, name in enumerate(names) if fnmatch.fnmatchcase(name, pattern)]
        if not own:
            raise unknown_name(kind, pattern, names)
        if not low < high:
            raise TruesimError(f"The limits {low:g}:{high:g} of {pattern} are empty.")
        bounds[own, 0], bounds[own, 1] = np.maximum(bounds[own, 0], low), np.minimum(bounds[own, 1], high)
        for k in own:
            if not bounds[k, 0] < bounds[k, 1]:
                raise TruesimError(
                    f"The limits {low:g}:{high:g} of {names[k]} leave nothing of those of the robot file."
                )
    return bounds
