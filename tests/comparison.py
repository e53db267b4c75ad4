"""Compares two sets of named fields in order, so that the first difference names the fault."""

from collections.abc import Mapping

import numpy as np

AGREEMENT = 1e-9
"""Part of a field's largest entry by which two exact algorithms may differ: 1e7 times the rounding of one operation."""


def errors(ours: Mapping, theirs: Mapping) -> dict[str, float]:
    """Largest difference of each field, in parts of the field's largest entry."""
    assert set(ours) == set(theirs), f"fields {list(ours)} are compared with {list(theirs)}"
    return {name: relative_error(ours[name], theirs[name]) for name in theirs}


def relative_error(ours, theirs) -> float:
    """Largest difference, in parts of the largest entry; where the reference is all zero, the difference itself."""
    ours, theirs = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    assert ours.shape == theirs.shape, f"shape {ours.shape} is compared with {theirs.shape}"
    if not theirs.size:
        return 0.0
    difference = np.max(np.abs(ours - theirs))
    scale = np.max(np.abs(theirs))
    error = difference / scale if scale else difference
    return float(error) if np.isfinite(error) else np.inf


def assert_fields_agree(ours: Mapping, theirs: Mapping, tolerance: float = AGREEMENT, **other: float) -> dict:
    """Fails at the first field that differs by more than its tolerance; returns the error of every field.

    Args:
        ours: Our fields.
        theirs: The reference's, from the first computed to the last.
        tolerance: In parts of a field's largest entry.
        other: Tolerances of single fields.
    """
    found = errors(ours, theirs)
    for name, error in found.items():
        allowed = other.get(name, tolerance)
        assert error <= allowed, (
            f"{name} differs by {error:.2e} of its largest entry (allowed {allowed:.0e}); {found}\n"
            f"ours:\n{np.asarray(ours[name])}\ntheirs:\n{np.asarray(theirs[name])}"
        )
    return found
