"""Smooth signals that begin and end at zero, with zero slope and curvature: cubic splines on equal knots."""

import numpy as np
from scipy.interpolate import BSpline

from truesim.core.errors import TruesimError
from truesim.core.typing import Float

DEGREE = 3


def basis(time: Float[np.ndarray, "samples"], seconds: float, spacing: float) -> Float[np.ndarray, "samples splines"]:
    """Splines over a time, one in each column, of height one.

    Args:
        time: From 0 to `seconds` [s].
        seconds: How long the signal lasts [s].
        spacing: Distance of knots, about [s]: nothing much faster than one period in three of them is in the signal.
    """
    pieces = round(seconds / spacing)
    if pieces <= DEGREE:
        raise TruesimError(f"{seconds:g} s are too short for knots {spacing:g} s apart: there must be four at least.")
    knots = np.arange(-DEGREE, pieces + DEGREE + 1) * (seconds / pieces)
    inner = range(DEGREE, pieces)  # the first and last three would not vanish smoothly at the ends
    columns = [BSpline.basis_element(knots[k : k + DEGREE + 2], extrapolate=False)(time) for k in inner]
    return np.nan_to_num(np.stack(columns, axis=1)) * 1.5
