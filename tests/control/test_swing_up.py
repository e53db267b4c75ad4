"""Swing-ups of the benchmarks: the minimum that crocoddyl and IPOPT find too."""

import pytest

from benchmarks.swing_up import PROBLEMS, task_of
from truesim.control import plan

CROCODDYL_COST = 0.8338075730754009
"""Cost of BoxFDDP of crocoddyl 3.2.1 for the cart-pole, from rest; IPOPT's is 0.83381."""


def test_the_cart_pole_reaches_the_cost_of_other_tools(tmp_path):
    """The same dynamics, costs, bounds and guess lead to the same minimum."""
    found = plan(task_of(PROBLEMS["cart-pole"], tmp_path))
    assert found.converged
    assert found.cost == pytest.approx(CROCODDYL_COST, rel=1e-5)
