"""The plan of an experiment: what is asked for, and the motion that was found."""

import dataclasses
import os
from collections.abc import Mapping, Sequence

import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Float
from truesim.data import command_columns, position_columns, velocity_columns
from truesim.identify.design.criterion import CRITERIA
from truesim.identify.design.limits import Limits
from truesim.model.model import Model


@dataclasses.dataclass(frozen=True)
class Choices:
    """How an experiment is designed."""

    seconds: float = 10.0
    """How long it lasts [s]."""
    rate: float = 200.0
    """Commands and readings a second [Hz]."""
    spacing: float = 0.04
    """Distance of the splines' knots at the end of the search [s]; at first they are twice as far apart."""
    noise: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Standard deviation of readings by channel, such as `qpos/elbow` [SI units]."""
    channels: Sequence[str] = ("qpos/*",)
    """What is read."""
    criterion: str = "intervals"
    """`intervals`, or `volume` for D-optimality."""
    starts: int = 2
    """Random starts, of which the best after the first stage of the search goes on."""
    iterations: int = 60
    """Iterations of each of the eight stages of a search."""
    seed: int = 0
    threads: int = os.cpu_count() or 1
    """Over which the parameters are split; the result does not depend on it."""

    def __post_init__(self) -> None:
        if self.criterion not in CRITERIA:
            raise unknown_name("criterion", self.criterion, CRITERIA)
        for name in ("seconds", "rate", "spacing", "starts", "iterations", "threads"):
            if not getattr(self, name) > 0:
                raise TruesimError(f"{name} is {getattr(self, name):g}; it must be positive.")


@dataclasses.dataclass(frozen=True)
class Expected:
    """How well one number is known before and after the experiment, in SI units."""

    path: str
    """With its element where a parameter has several."""
    unit: str
    value: float
    before: float
    """Standard deviation before."""
    after: float
    """Standard deviation after."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """A designed motion, as the simulator plays it."""

    model: Model
    time: Float[np.ndarray, "samples"]
    """[s]"""
    commands: Float[np.ndarray, "samples nu"]
    motion: Float[np.ndarray, "samples quantities"]
    """Positions, velocities, actuator forces and controls, as the limits name them."""
    limits: Limits
    expected: tuple[Expected, ...]
    covariance: Float[np.ndarray, "size size"]
    """Of the coordinates of the parameters, after."""

    @property
    def usage(self) -> Float[np.ndarray, "quantities"]:
        """How far each limit is used; 1 is at the limit."""
        return np.abs(self.limits.usage(self.motion)).max(axis=0)

    @property
    def spread(self) -> float:
        """Geometric mean of the standard deviations after."""
        return float(np.exp(np.mean([np.log(e.after) for e in self.expected])))

    @property
    def gain(self) -> float:
        """Geometric mean of how many times smaller the standard deviations become."""
        return float(np.exp(np.mean([np.log(e.before / e.after) for e in self.expected])))

    def columns(self) -> dict[str, Float[np.ndarray, "samples"]]:
        """The plan as a log: commands to play, and the motion to expect."""
        n = len(self.model.joints.names)
        names = ["time", *command_columns(self.model), *position_columns(self.model), *velocity_columns(self.model)]
        values = np.concatenate([self.time[:, None], self.commands, self.motion[:, : 2 * n]], axis=1)
        return dict(zip(names, values.T, strict=True))
