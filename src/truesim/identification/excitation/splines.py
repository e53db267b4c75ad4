"""Cubic B-splines on equal knots that start and end at zero, with zero derivative and curvature."""

import numpy as np

from truesim.core import libraries
from truesim.core.errors import TruesimError
from truesim.core.typing import Float

SPLINE_DEGREE = 3


def spline_basis(
    time: Float[np.ndarray, " samples"], seconds: float, spacing: float
) -> Float[np.ndarray, "samples splines"]:
    """B-splines of unit height over a time interval, one in each column.

    Args:
        time: Times from 0 to `seconds` [s].
        seconds: Duration of the signal [s].
        spacing: Approximate distance of knots [s]; the shortest period in the signal is about three of them.
    """
    pieces = round(seconds / spacing)
    if pieces <= SPLINE_DEGREE:
        raise TruesimError(f"{seconds:g} s are too short for knots {spacing:g} s apart: at least four are needed.")
    knots = np.arange(-SPLINE_DEGREE, pieces + SPLINE_DEGREE + 1) * (seconds / pieces)
    inner = range(SPLINE_DEGREE, pieces)  # the first and last three do not vanish smoothly at the ends
    element = libraries.scipy.interpolate.BSpline.basis_element
    columns = [element(knots[k : k + SPLINE_DEGREE + 2], extrapolate=False)(time) for k in inner]
    return np.nan_to_num(np.stack(columns, axis=1)) * 1.5
