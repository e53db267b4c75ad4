"""Curves of suggested networks: axes show the curve, not one value that is far away from it."""

import re

import numpy as np

from truesim.report.suggest_page import CURVE_HEIGHT, suggest_page


def document(y: np.ndarray) -> dict:
    """Suggestions with one curve of these values."""
    x = np.linspace(-1, 1, len(y))
    suggestion = {
        "port": "actuator.force",
        "names": ["yaw"],
        "kind": "motor curve",
        "inputs": ["actuator.force"],
        "explained": 0.9,
        "error": 0.05,
        "reach": 0.95,
        "curve": {"x": x.tolist(), "y": y.tolist(), "name": "yaw", "input": "actuator.force"},
    }
    return {
        "sentence": "Correct the motor.",
        "needed": True,
        "suggestions": [suggestion],
        "remaining": 5.0,
        "window": 0.08,
    }


def heights(page: str) -> np.ndarray:
    """Heights of the points of a page's curve [px]."""
    return np.array([float(y) for y in re.findall(r'<circle cx="[-\d.]+" cy="([-\d.]+)"', page)])


def test_one_value_far_away_does_not_flatten_the_curve():
    """A curve with a first value ten times too large fills the frame as it does without."""
    y = np.sin(np.linspace(0, 6, 300))
    whole = heights(suggest_page(document(y)))
    assert np.ptp(whole) > 0.85 * CURVE_HEIGHT
    spoiled = y.copy()
    spoiled[0] = -60.0
    shown = heights(suggest_page(document(spoiled)))
    assert len(shown) == len(whole) - 1
    assert np.ptp(shown) > 0.4 * CURVE_HEIGHT
