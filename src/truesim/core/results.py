"""Outcomes of numerical work inside compiled code: values, not exceptions."""

import equinox as eqx


class RESULTS(eqx.Enumeration):
    """How a step ended; each member is its own message."""

    ok = ""
    not_finite = "The state became infinite or not a number: the time step is too large, or a parameter is unphysical."
    constraints_not_converged = (
        "The joint constraints did not converge: the forces of dry friction and limits are approximate."
    )
