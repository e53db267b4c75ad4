"""Dataclass fields that are physical quantities with a unit."""

import dataclasses
from typing import Any


def quantity(unit: str) -> Any:
    """Field of a physical quantity in `unit`; `rad|m` where hinge and slide differ."""
    return dataclasses.field(metadata={"unit": unit})
