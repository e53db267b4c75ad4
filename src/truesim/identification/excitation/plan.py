"""Options of an experiment design, and the designed motion."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Float
from truesim.identification.excitation.criterion import CRITERIA
from truesim.identification.excitation.limits import Limits
from truesim.physics.model.columns import command_columns, position_columns, velocity_columns
from truesim.physics.model.model import Model


@dataclasses.dataclass(frozen=True)
class DesignOptions:
    """Duration, rates, noise, criterion and optimization of an experiment design."""

    seconds: float = 10.0
    """Duration [s]."""
    rate: float = 200.0
    """Sampling rate of commands and measurements [Hz]."""
    spacing: float = 0.04
    """Final distance of the spline knots [s]; the first stages use twice this distance."""
    noise: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Standard deviation of measurements by channel pattern, such as `qpos/elbow` [SI units]."""
    channels: Sequence[str] = ("qpos/*",)
    """Patterns of measured channels."""
    criterion: str = "intervals"
    """`intervals` (mean logarithm of standard deviations) or `volume` (D-optimality)."""
    starts: int = 2
    """Random starts; the best one after the first stage continues."""
    iterations: int = 60
    """Maximum iterations of each of the eight stages."""
    seed: int = 0
    """Seed of the random starts."""
    threads: int = 1
    """Threads that share the parameters; the result does not depend on it."""

    def __post_init__(self) -> None:
        if self.criterion not in CRITERIA:
            raise unknown_name("criterion", self.criterion, CRITERIA)
        for name in ("seconds", "rate", "spacing", "starts", "iterations", "threads"):
            if not getattr(self, name) > 0:
                raise TruesimError(f"{name} is {getattr(self, name):g}; it must be positive.")


@dataclasses.dataclass(frozen=True)
class ExpectedAccuracy:
    """Standard deviation of one number before and after the experiment, in SI units."""

    path: str
    """Path, with the element for a vector."""
    unit: str
    value: float
    before: float
    """Standard deviation before."""
    after: float
    """Standard deviation after."""


@dataclasses.dataclass(frozen=True)
class Design:
    """A designed motion and its expected accuracy."""

    model: Model
    time: Float[np.ndarray, " samples"]
    """[s]"""
    commands: Float[np.ndarray, "samples nu"]
    motion: Float[np.ndarray, "samples quantities"]
    """Simulated positions, velocities, actuator forces and controls, in the order of the limits."""
    limits: Limits
    expected: tuple[ExpectedAccuracy, ...]
    covariance: Float[np.ndarray, "size size"]
    """Covariance of the parameters' coordinates after the experiment."""

    @property
    def usage(self) -> Float[np.ndarray, " quantities"]:
        """Largest usage of each limit; 1 is at the limit."""
        return np.abs(self.limits.usage(self.motion)).max(axis=0)

    @property
    def mean_std(self) -> float:
        """Geometric mean of the standard deviations after the experiment."""
        return float(np.exp(np.mean([np.log(e.after) for e in self.expected])))

    @property
    def gain(self) -> float:
        """Geometric mean of the ratios of standard deviations before and after the experiment."""
        return float(np.exp(np.mean([np.log(e.before / e.after) for e in self.expected])))

    def columns(self) -> dict[str, Float[np.ndarray, " samples"]]:
        """Columns of a log: commands to play, and the expected motion."""
        n = len(self.model.joints.names)
        names = ["time", *command_columns(self.model), *position_columns(self.model), *velocity_columns(self.model)]
        values = np.concatenate([self.time[:, None], self.commands, self.motion[:, : 2 * n]], axis=1)
        return dict(zip(names, values.T, strict=True))
