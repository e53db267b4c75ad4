"""Contact: detection of contact points, and models of contact forces."""

from truesim.math.interior_point.cones import EllipticCone, PolyhedralCone
from truesim.physics.contact.base import (
    AbstractConstraintContact,
    AbstractContact,
    AbstractForceContact,
    AbstractImpulseContact,
    ContactReport,
)
from truesim.physics.contact.detection import ContactPoints, Detector
from truesim.physics.contact.models.compliant import CompliantContact, with_compliance
from truesim.physics.contact.models.friction_models import (
    AnderssonFriction,
    BrownFriction,
    CoulombFriction,
    HollarsFriction,
)
from truesim.physics.contact.models.implicit_compliant import ImplicitCompliantContact
from truesim.physics.contact.models.mujoco import MujocoContact
from truesim.physics.contact.models.rigid import RigidContact

__all__ = [
    "AbstractConstraintContact",
    "AbstractContact",
    "AbstractForceContact",
    "AbstractImpulseContact",
    "AnderssonFriction",
    "BrownFriction",
    "CompliantContact",
    "ContactPoints",
    "ContactReport",
    "CoulombFriction",
    "Detector",
    "EllipticCone",
    "HollarsFriction",
    "ImplicitCompliantContact",
    "MujocoContact",
    "PolyhedralCone",
    "RigidContact",
    "with_compliance",
]
