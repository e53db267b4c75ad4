"""Status codes of numerical work inside compiled code: values, not exceptions."""

from typing import Any

import equinox as eqx


class RESULTS(eqx.Enumeration):
    """Status of a step; each member is its own message."""

    ok: Any = ""
    not_finite: Any = (
        "The state became infinite or not a number: the time step is too large, or a parameter is unphysical."
    )
    constraints_not_converged: Any = (
        "The joint constraints did not converge: the forces of dry friction and limits are approximate."
    )
    contacts_not_converged: Any = (
        "The contacts did not converge: impulses are approximate. Bodies may be wedged, or masses very different."
    )
    contacts_overflow: Any = "More points touch than the contact model has room for: raise its capacity."


def message(result: RESULTS) -> str:
    """Message of a status code."""
    return RESULTS[result]  # type: ignore[misc]
