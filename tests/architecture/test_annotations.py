"""Annotations are checked while tests run."""

import dataclasses

import numpy as np
import pytest
from beartype.roar import BeartypeCallHintViolation

from tests.annotations import CHECKED, _check
from truesim.core.typing import Float
from truesim.math.spatial.rotation import skew


@_check
def halves(a: Float[np.ndarray, "n 3"], b: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The second argument without its last entry if it is negative."""
    return b if b[-1] >= 0 else b[:-1]


@_check
@dataclasses.dataclass
class Pair:
    """A record whose parts have one length."""

    a: Float[np.ndarray, " n"]
    b: Float[np.ndarray, " n"]


def test_sizes_of_axes_agree_within_a_call():
    """Arguments, results and fields of records have one size for each name of an axis."""
    halves(np.zeros((2, 3)), np.zeros(2))
    Pair(np.zeros(4), np.zeros(4))
    for call in (
        lambda: halves(np.zeros((2, 3)), np.zeros(3)),
        lambda: halves(np.zeros((2, 3)), np.array([0.0, -1.0])),
        lambda: halves(np.zeros((2, 3)), np.zeros(2, int)),
        lambda: Pair(np.zeros(4), np.zeros(5)),
    ):
        with pytest.raises(BeartypeCallHintViolation):
            call()


def test_the_package_is_checked():
    """A function of the package refuses a vector of another length."""
    assert "truesim.math" in CHECKED
    with pytest.raises(BeartypeCallHintViolation):
        skew(np.zeros(4))
