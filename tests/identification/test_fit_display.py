"""A fit as text, table, HTML and figure says the same as its estimates."""

import pytest

from tests.identification.recorded import ARM_FREE, ARM_WRONG, arm_log
from tests.robots import robot
from truesim.core.errors import NameUnknownError
from truesim.identification.pipeline import identify


@pytest.fixture(scope="module")
def fit():
    """A fit of the planar arm."""
    return identify(robot(ARM_WRONG), [arm_log()], ARM_FREE)


def test_text_frame_and_html_hold_every_number(fit):
    """Each parameter appears with its value; the frame has one row per number."""
    frame, text, page = fit.to_frame(), fit.summary(), fit._repr_html_()
    assert frame.height == sum(e.value.size for e in fit.estimates)
    for name, value in zip(frame["parameter"], frame["value"], strict=True):
        assert name in text
        assert f"{value:.5g}" in text
        assert f"<b>{value:.5g}</b>" in page
    assert len(repr(fit)) < 120


def test_figures_show_a_channel(fit):
    """Three curves per log; a wrong name is told with the right ones."""
    figure = fit.plot()
    assert [trace.name for trace in figure.data] == ["start", "fitted", "measured"]
    with pytest.raises(NameUnknownError, match="channel"):
        fit.plot("qpos/no")
