"""The relative cost begins with 1 and never rises where a stage begins."""

import pytest

from truesim.identification.solve.relative_cost import RelativeCost


def test_stages_continue_where_the_one_before_ended():
    """A stage with another scale begins at the last value, and keeps its own ratios."""
    relative = RelativeCost()
    found = [relative(cost) for cost in (8.0, 4.0, 100.0, 25.0)]
    assert found == pytest.approx([1.0, 0.5, 0.5, 0.125])


def test_a_perfect_start_stays_finite():
    """A cost of zero stays zero."""
    relative = RelativeCost()
    assert [relative(0.0), relative(0.0)] == [0.0, 0.0]
