"""Where two solids touch: points, normals and distances that can be differentiated."""

from truesim.contact.geometry.solids import length
from truesim.contact.geometry.touch import FAR, Touch

__all__ = ["FAR", "Touch", "length"]
