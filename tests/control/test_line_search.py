"""Line search of a single problem."""

from truesim.control.line_search import accepted_step

DOWN = -1.0, 1.0
"""A step that is predicted to decrease the cost by one half."""


def test_the_first_sufficient_step_is_taken():
    """A full step that gains a tenth of the prediction; else the longest of the shorter ones that does."""
    assert accepted_step((1.0, 0.5, 0.25), (0.9, 0.2, 0.1), 1.0, 0.0, DOWN) == 0
    assert accepted_step((1.0, 0.5, 0.25), (0.999, 0.7, 0.1), 1.0, 0.0, DOWN) == 1
    assert accepted_step((1.0, 0.5), (1.5, float("nan")), 1.0, 0.0, DOWN) is None


def test_closing_defects_pays_for_cost():
    """With a penalty, a step may raise the cost by less than the defects that it closes."""
    assert accepted_step((1.0,), (1.4,), 1.0, 1.0, (0.5, 0.0)) == 0
    assert accepted_step((1.0,), (2.1,), 1.0, 1.0, (0.5, 0.0)) is None
