"""Contact models by name, for the command line and identification."""

from truesim.core.errors import TruesimError, unknown_name
from truesim.physics.contact.base import AbstractContact
from truesim.physics.contact.models.compliant import CompliantContact
from truesim.physics.contact.models.implicit_compliant import ImplicitCompliantContact
from truesim.physics.contact.models.mujoco import MujocoContact, has_constraints
from truesim.physics.contact.models.rigid import MIN_SMOOTHING, RigidContact
from truesim.physics.model.model import Model

NONE, RIGID, COMPLIANT, IMPLICIT_COMPLIANT, FROM_FILE = "none", "rigid", "compliant", "implicit", "file"
CONTACT_MODELS = (NONE, RIGID, COMPLIANT, IMPLICIT_COMPLIANT, FROM_FILE)
"""Names of the contact models."""


def contact_named(
    model: Model, name: str, *, smoothing: float | None = None, bounces: bool | None = None
) -> AbstractContact | None:
    """Contact model of this name; None for `none`.

    Args:
        model: The robot.
        name: `none`, `rigid`, `compliant`, `implicit` for compliant contact at the end of each step, or `file` for
            MuJoCo's constraint model with the file's parameters.
        smoothing: Smoothing of rigid contact, between 0 and 1; larger gives smoother gradients.
        bounces: Whether rigid contact simulates restitution; by default if any geom has some.
    """
    if name not in CONTACT_MODELS:
        raise unknown_name("contact model", name, CONTACT_MODELS)
    if smoothing is not None and name != RIGID:
        raise TruesimError(f"Smoothing is an option of rigid contact; the contact model is {name}.")
    if smoothing is not None and not 0 < smoothing < 1:
        raise TruesimError(
            f"The smoothing is {smoothing:g}; it must lie between 0 and 1, such as {MIN_SMOOTHING:g} or 1e-3."
        )
    if name == RIGID:
        return RigidContact.of(model, smoothing=MIN_SMOOTHING if smoothing is None else smoothing, bounces=bounces)
    if name == FROM_FILE:
        return MujocoContact.of(model) if has_constraints(model) else None
    if name == IMPLICIT_COMPLIANT:
        return ImplicitCompliantContact.of(model)
    return CompliantContact.of(model) if name == COMPLIANT else None


def default_contact(model: Model) -> str:
    """Name of the contact model with which a robot moves as its file says: `file` for MJCF, `none` for URDF."""
    return FROM_FILE if model.source is not None and model.source.format == "mjcf" else NONE


def described(contact: AbstractContact | None) -> str:
    """Text of a contact model for the provenance of a fit, such as `rigid, barrier 2e-09`."""
    if isinstance(contact, RigidContact):
        return f"{RIGID}, barrier {float(contact.smoothing):g}"
    if isinstance(contact, MujocoContact):
        return FROM_FILE
    if isinstance(contact, ImplicitCompliantContact):
        return IMPLICIT_COMPLIANT
    return NONE if contact is None else COMPLIANT
