"""Fields of records that computations do not read."""

import dataclasses
from typing import Any

import equinox as eqx

ANNOTATION = "annotation"


def annotation(**options: Any) -> Any:
    """Static field that no computation reads, such as the name of the file that a record comes from.

    Two records that differ in annotations alone behave alike, and share compiled kernels.

    Args:
        options: As those of `equinox.field`.
    """
    return eqx.field(static=True, metadata={ANNOTATION: True}, **options)


def is_annotation(field: dataclasses.Field) -> bool:
    """True if no computation reads a field."""
    return bool(field.metadata.get(ANNOTATION, False))
