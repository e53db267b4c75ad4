"""Record of the contact points of two solids."""

from typing import NamedTuple

from truesim.core.typing import Array, Float

UNUSED_DISTANCE = 1e3
"""Distance of an unused entry of the record [m]."""


class Touch(NamedTuple):
    """Contact points of two solids, a fixed number."""

    position: Float[Array, "points 3"]
    """Midpoint between the surfaces, in the world [m]."""
    normal: Float[Array, "points 3"]
    """Unit vector from the first solid to the second."""
    distance: Float[Array, " points"]
    """Distance between the surfaces, negative when they overlap [m]."""
