"""Warning about what a simulator leaves out of its robot's file."""

import warnings
from typing import Any

from truesim.core.errors import LeftOutWarning
from truesim.physics.contact.models.mujoco import has_constraints
from truesim.physics.model.model import Model

UNSAID: Any = object()
"""Contact model of a simulator for which none was given, not even None."""
MOVING = ("actuator", "option", "tendon", "equality", "flex", "plugin", "mocap", "joint")
"""Subjects of findings about what moves a robot; sensors do not."""
_warned: set[str] = set()


def left_out(model: Model, contact: bool) -> list[str]:
    """Sentences about what moves the robot but is not simulated.

    Args:
        model: The robot.
        contact: Whether the simulator has the file's contact model.
    """
    found = []
    if not contact and has_constraints(model):
        found.append(
            "the constraints of the file (contact, equalities, tendon limits) do not act: "
            "give contact=MujocoContact.of(model) for MuJoCo's motion, or contact=None to say that it is meant"
        )
    moving = [f for f in model.findings if f.severity == "not simulated" and f.subject.split()[0] in MOVING]
    found += [str(f) for f in moving if "only if the simulator is given" not in f.message]
    return found


def warn_left_out(model: Model) -> None:
    """Warn once per file about what moves the robot but is not simulated; `model.findings` has the details."""
    name = model.name if model.source is None else str(model.source.path)
    sentences = left_out(model, contact=False)
    if sentences and name not in _warned:
        _warned.add(name)
        warnings.warn(f"Not simulated in {name}: {'; '.join(sentences)}.", LeftOutWarning, stacklevel=3)
