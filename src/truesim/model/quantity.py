"""Fields that are physical quantities: each names its unit beside its declaration."""

import dataclasses
from typing import Any


def quantity(unit: str) -> Any:
    """A field that is a physical quantity in `unit`; joints write `rad|m` where hinge and slide differ."""
    return dataclasses.field(metadata={"unit": unit})
