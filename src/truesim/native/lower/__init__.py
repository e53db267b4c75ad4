"""From jaxprs to the scalar graph: one rule a primitive, grouped by theme."""

from truesim.native.lower import (
    contraction,
    control,
    elementwise,
    factorization,
    indexing,
    reductions,
    scatter,
    shaping,
    sorting,
)
from truesim.native.lower.context import Lowering, UnsupportedError

__all__ = ["Lowering", "UnsupportedError"]

RULE_MODULES = (
    contraction,
    control,
    elementwise,
    factorization,
    indexing,
    reductions,
    scatter,
    shaping,
    sorting,
)
"""The modules that register rules when imported."""
