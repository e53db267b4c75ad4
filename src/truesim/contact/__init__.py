"""Contact: where bodies touch, and how they act on each other."""

from truesim.contact.base import AbstractContact, ContactReport
from truesim.contact.complementarity import ContactComplementarity
from truesim.contact.compliant import ContactCompliant, with_compliance
from truesim.contact.detection import ContactPoints, Detector
from truesim.contact.friction_laws import AnderssonFriction, BrownFriction, CoulombFriction, HollarsFriction
from truesim.numerics.cones import EllipticCone, PolyhedralCone

__all__ = [
    "AbstractContact",
    "AnderssonFriction",
    "BrownFriction",
    "ContactComplementarity",
    "ContactCompliant",
    "ContactPoints",
    "ContactReport",
    "CoulombFriction",
    "Detector",
    "EllipticCone",
    "HollarsFriction",
    "PolyhedralCone",
    "with_compliance",
]
