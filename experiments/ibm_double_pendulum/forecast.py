"""Forecasts from four frames, scored as angles of the arms."""

from collections.abc import Sequence

import numpy as np

from experiments.ibm_double_pendulum.recordings import FRAME, GIVEN, METERS, Cameras
from truesim.core.typing import Float
from truesim.files.logs import Log
from truesim.identification.diagnose.evaluation import predictions
from truesim.identification.diagnose.initial_states import initial_states
from truesim.identification.problem.build import build
from truesim.identification.problem.options import ProblemOptions
from truesim.physics.model.model import Model

FRAMES = 200
"""Number of forecast frames."""
NOISE = 0.385 * METERS
"""Standard deviation of the white noise of a marker's coordinate, from third differences of residuals [m]."""
BEFORE = (GIVEN - 1) * FRAME


def forecast_errors(model: Model, logs: Sequence[Log], cameras: Cameras) -> Float[np.ndarray, "frames sequences arms"]:
    """Errors of both absolute arm angles [rad]."""
    problem = build(model, logs, (), ProblemOptions(per_log=cameras))
    errors = []
    for predicted in predictions(problem, np.zeros(0), (FRAMES + 1) * FRAME, BEFORE):
        measured = problem.recordings[predicted.log].measured[GIVEN : GIVEN + FRAMES]
        deviation = predicted.residual[0, 1 : FRAMES + 1]
        errors.append(np.angle(np.exp(1j * (arm_angles(measured + deviation) - arm_angles(measured)))))
    return np.stack(errors, axis=1)


def arm_angles(markers: Float[np.ndarray, "frames 4"]) -> Float[np.ndarray, "frames 2"]:
    """Absolute angles of both arms, from the positions of the middle and the tip marker [rad]."""
    middle, lower = markers[:, :2], markers[:, 2:] - markers[:, :2]
    return np.stack([np.arctan2(arm[:, 1], arm[:, 0]) for arm in (middle, lower)], axis=1)


def first_velocity_limit(model: Model, logs: Sequence[Log], cameras: Cameras, frames: int) -> float:
    """Expected error over the first frames from the noise of the given frames alone [rad].

    This is the Cramer-Rao bound of the initial velocities, propagated linearly in time.
    """
    problem = build(model, logs, (), ProblemOptions(per_log=cameras))
    size = problem.layout.intervals.duration.shape[1]
    squares = []
    for log in range(len(logs)):
        first = initial_states(problem, np.zeros(0), log, [GIVEN - 1], BEFORE)
        segment = problem.segments(log, np.arange(size)[None], first.q, first.v)
        _, sensitivity = problem.predict_with_derivatives(np.zeros(0), log, segment)
        J = sensitivity.residual[0, :GIVEN].reshape(-1, 4) / NOISE
        absolute = np.array([[1.0, 0.0], [1.0, 1.0]])
        velocities = absolute @ np.linalg.inv(J.T @ J)[2:, 2:] @ absolute.T
        squares.append(np.diag(velocities))
    time = FRAME * float(np.asarray(model.time_scale)) * np.arange(1, frames + 1)
    return float(np.sqrt(np.mean(squares) * np.mean(time**2)))
