"""The record of where two solids touch, or nearly do."""

from typing import NamedTuple

from truesim.core.typing import Array, Float

FAR = 1e3
"""Distance of a place in the record that is not in use [m]."""


class Touch(NamedTuple):
    """Where two solids touch, a fixed number of points."""

    position: Float[Array, "points 3"]
    """Midpoint between the surfaces, in the world [m]."""
    normal: Float[Array, "points 3"]
    """Unit vector from the first solid to the second."""
    distance: Float[Array, "points"]
    """Distance between the surfaces, negative when they overlap [m]."""
