"""Compliant contact fitted to a rigid throw: least squares with exact derivatives on parts of increasing length."""

import time
from typing import NamedTuple

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.optimize import least_squares

from experiments.cube_throw.scene import STEPS, TIMESTEP, Contact, compliant_motion, rigid_motion, scene
from truesim import native
from truesim.core.typing import Array, Float
from truesim.physics.contact import BrownFriction
from truesim.physics.contact.models.friction_models import AbstractFrictionModel

HORIZONS = (0.5, 0.7, 1.0, 1.5, STEPS * TIMESTEP)
"""Parts of the motion that are compared one after the other [s]; with no stiffness the cube falls through the floor."""
HIGHEST = 100.0
"""Upper bound of every number, in its own unit."""


class Found(NamedTuple):
    """Result of a fit."""

    numbers: Float[np.ndarray, " numbers"]
    evaluations: int
    errors: list[float]
    """Mean position error over the whole throw after each part [m]."""


class Throw:
    """Both models, compiled; directions of derivatives are batch elements."""

    def __init__(self, friction: AbstractFrictionModel | None = None) -> None:
        model = scene()
        zero = np.zeros(())
        numbers, contact_of = ravel_pytree(Contact(zero, zero, zero, BrownFriction() if friction is None else friction))
        self.start = np.asarray(numbers, float)
        q, v = np.zeros(7), np.zeros(6)

        def along(numbers: Array, direction: Array, q: Array, v: Array) -> tuple:
            return jax.jvp(lambda n: compliant_motion(model, contact_of(n), q, v), (numbers,), (direction,))

        begin = time.process_time()
        with jax.enable_x64(True):
            self.reference = native.compile(lambda q, v: rigid_motion(model, q, v), q, v)
            self.kernel = native.compile(along, self.start, self.start, q, v)
        self.compile_seconds = time.process_time() - begin

    def places(self, numbers: Float[np.ndarray, " numbers"], q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Places of the compliant cube after every step [m]."""
        return self.kernel(numbers, np.zeros_like(numbers), q, v)[0][0][:, :3]

    def error(self, numbers: Float[np.ndarray, " numbers"], q: np.ndarray, v: np.ndarray) -> float:
        """Mean distance of the compliant cube from the rigid one [m]."""
        return float(np.linalg.norm(self.places(numbers, q, v) - self.reference(q, v)[0][:, :3], axis=1).mean())

    def fit(self, q: np.ndarray, v: np.ndarray) -> Found:
        """Fit one throw from zero. Configurations are compared, since velocities of rigid bodies are discontinuous."""
        rigid = self.reference(q, v)[0]
        directions, calls = np.eye(len(self.start)), 0
        cache: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}

        def evaluated(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            nonlocal calls
            if (key := numbers.tobytes()) not in cache:
                motion, tangents = self.kernel(np.tile(numbers, (len(directions), 1)), directions, q, v)
                cache[key] = motion[0][0] - rigid, tangents[0]
                calls += 1
            return cache[key]

        numbers, errors = self.start, []
        for seconds in HORIZONS:
            steps = round(seconds / TIMESTEP)
            numbers = least_squares(
                lambda n, steps=steps: evaluated(n)[0][:steps].ravel(),
                numbers,
                lambda n, steps=steps: evaluated(n)[1][:, :steps].reshape(len(directions), -1).T,
                bounds=(0.0, HIGHEST),
                max_nfev=40,
                loss="soft_l1",
            ).x
            errors.append(self.error(numbers, q, v))
        return Found(numbers, calls, errors)
