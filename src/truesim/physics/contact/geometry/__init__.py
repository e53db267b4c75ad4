"""Collision geometry: differentiable contact points, normals and distances of two solids."""

from truesim.physics.contact.geometry.solids import length
from truesim.physics.contact.geometry.touch import UNUSED_DISTANCE, Touch

__all__ = ["UNUSED_DISTANCE", "Touch", "length"]
