"""Scenes with contact: initial states, and checks that they are still upright at the end."""

from dataclasses import dataclass

import numpy as np

from benchmarks.robots import CROUCH, chain_xml, cube_xml, standing_quadruped_xml
from truesim.core.errors import TruesimError

VELOCITY_STD = 0.01
"""Standard deviation of the random initial velocities [m/s, rad/s]."""


@dataclass(frozen=True)
class Scene:
    """A scene with its initial state and controls."""

    xml: str
    q: tuple[float, ...]
    v: tuple[float, ...]
    command: tuple[float, ...]
    height: float | None
    """Height of the free body, which must stay within a centimeter [m]; None without a check."""
    elastic: tuple[str, ...] = ()
    """Geoms that bounce elastically."""

    def velocities(self, batch: int) -> np.ndarray:
        """Random initial velocities of a batch."""
        return np.array(self.v) + VELOCITY_STD * np.random.default_rng(0).normal(size=(batch, len(self.v)))

    def check(self, heights: np.ndarray) -> None:
        """Raise an error if the scene has fallen over."""
        if self.height is not None and not np.all(np.abs(heights - self.height) < 0.01):
            raise TruesimError(f"The scene did not stand: heights from {heights.min():.3f} to {heights.max():.3f} m.")


def resting_cube() -> Scene:
    """A cube on a plane."""
    return Scene(cube_xml(), (0, 0, 0.1, 1, 0, 0, 0), (0.0,) * 6, (), 0.1)


def standing_quadruped() -> Scene:
    """A quadruped with twelve joints on four feet."""
    height = 0.4 * float(np.cos(CROUCH[1])) + 0.03
    legs = CROUCH * 4
    return Scene(standing_quadruped_xml(), (0, 0, height, 1, 0, 0, 0, *legs), (0.0,) * 18, legs, height)


def hit_chain() -> Scene:
    """A ball that hits a hanging chain of ten bars after 1.5 s."""
    return Scene(chain_xml(), (0.0,) * 13, (0.0,) * 10 + (150.0, 74.0, 0.0), (), None, elastic=("ball",))
