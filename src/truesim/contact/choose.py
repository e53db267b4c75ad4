"""Laws of contact by name, as the command line and identification know them."""

from truesim.contact.base import AbstractContact
from truesim.contact.complementarity import HARDEST, ContactComplementarity
from truesim.contact.compliant import ContactCompliant
from truesim.core.errors import TruesimError, unknown_name
from truesim.model.model import Model

NONE, RIGID, COMPLIANT = "none", "rigid", "compliant"
LAWS = (NONE, RIGID, COMPLIANT)


def contact_named(
    model: Model, name: str, *, barrier: float | None = None, bounces: bool | None = None
) -> AbstractContact | None:
    """The law of contact of this name.

    Args:
        model: The robot.
        name: `none`, `rigid` or `compliant`.
        barrier: Of rigid contact: larger is smoother, the hardest unless given.
        bounces: Whether rigid contact simulates restitution; if any geom has some, unless given.
    """
    if name not in LAWS:
        raise unknown_name("contact law", name, LAWS)
    if barrier is not None and name != RIGID:
        raise TruesimError(f"A barrier belongs to rigid contact; the contact law is {name}.")
    if barrier is not None and not 0 < barrier < 1:
        raise TruesimError(f"The barrier is {barrier:g}; it must lie between 0 and 1, such as {HARDEST:g} or 1e-3.")
    if name == RIGID:
        return ContactComplementarity.of(model, barrier=HARDEST if barrier is None else barrier, bounces=bounces)
    return ContactCompliant.of(model) if name == COMPLIANT else None


def described(contact: AbstractContact | None) -> str:
    """A law of contact in words."""
    if isinstance(contact, ContactComplementarity):
        return f"{RIGID}, barrier {float(contact.barrier):g}"
    return NONE if contact is None else COMPLIANT
