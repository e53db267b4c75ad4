"""Structure of a model: facts that decide which constraints and how long a history a simulator has.

They follow from the values of a file (a joint has dry friction if its `frictionloss` is positive). Inside `jit`, `grad`
and `vmap` values are traced and cannot decide anything; then the structure that the model was loaded with counts, with
everything that was written since.
"""

import dataclasses
from typing import Any

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.tracing import is_traced
from truesim.physics.model.model import Model
from truesim.physics.model.source import Structure


def structure_of(model: Model) -> Structure:
    """Structure of a model: from its values where they are known, else as recorded with the model."""
    recorded = model.structure
    every, bodies = (tuple(range(len(group.names))) for group in (model.joints, model.bodies))
    return Structure(
        frictionloss=_positive(model.joints.frictionloss, every if recorded is None else recorded.frictionloss),
        stiction=_positive(model.joints.stiction, every if recorded is None else recorded.stiction),
        delay=_longest(model.actuators.delay, 0.0 if recorded is None else recorded.delay),
        restitution=_any((model.geoms.restitution, model.contacts.restitution), recorded),
        gravcomp=_positive(model.bodies.gravcomp, bodies if recorded is None else recorded.gravcomp),
        load_friction=_positive(model.joints.load_friction, () if recorded is None else recorded.load_friction),
    )


def longest_delay(model: Model) -> float:
    """Longest delay of an actuator that a simulator needs room for [s]."""
    longest = structure_of(model).delay
    if longest is None:
        raise TruesimError(
            "A traced value was written to an actuator's delay, and the robot's file has no delay that would tell how "
            "much room it needs: give max_delay, the longest delay that may occur [s]."
        )
    return longest


FRICTION_FIELDS = ("frictionloss", "stiction", "load_friction")
SPARSE_FIELDS = (*FRICTION_FIELDS, "gravcomp")
"""Fields of joints and bodies of which the structure lists the members with a positive value."""
STRUCTURAL = {
    ("bodies", "gravcomp"),
    ("joints", "frictionloss"),
    ("joints", "stiction"),
    ("joints", "load_friction"),
    ("actuators", "delay"),
    ("geoms", "restitution"),
    ("contacts", "restitution"),
}
"""Groups and fields whose values decide structure."""


def record_write(model: Model, group: str | None, field: str, index: int | None, value: Any) -> Model:
    """The model with a structure that makes room for a value that is about to be written."""
    if model.structure is None or (group, field) not in STRUCTURAL:
        return model
    old = structure_of(model)
    if field == "delay":
        longest = old.delay or (None if is_traced(value) else 0.0)
        new = dataclasses.replace(old, delay=longest if is_traced(value) else max(longest or 0.0, float(value)))
    elif not is_traced(value) and not np.any(np.asarray(value) > 0):
        new = old
    elif field == "restitution":
        new = dataclasses.replace(old, restitution=True)
    else:
        members = tuple(sorted({*getattr(old, field), *(() if index is None else (index,))}))
        lists: dict[str, Any] = {name: members if field == name else getattr(old, name) for name in SPARSE_FIELDS}
        new = dataclasses.replace(old, **lists)
    return model if new == model.structure else dataclasses.replace(model, structure=new)


def _positive(values: Any, recorded: tuple[int, ...]) -> tuple[int, ...]:
    return recorded if is_traced(values) else tuple(np.flatnonzero(np.asarray(values) > 0).tolist())


def _longest(values: Any, recorded: float | None) -> float | None:
    return recorded if is_traced(values) else float(np.max(values, initial=0.0))


def _any(values: tuple[Any, ...], recorded: Structure | None) -> bool:
    if any(is_traced(x) for x in values):
        return recorded is None or recorded.restitution
    return any(bool(np.any(x)) for x in values)
