"""Lowering of jaxprs to the scalar graph: one rule per primitive, grouped by theme."""

from truesim.native.lowering import (
    columns,
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
from truesim.native.lowering.context import Lowering, UnsupportedError

__all__ = ["Lowering", "UnsupportedError"]

RULE_MODULES = (
    columns,
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
"""Modules that register rules when they are imported."""
