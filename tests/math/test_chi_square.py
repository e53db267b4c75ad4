"""Chi-square distribution against SciPy."""

import pytest
from scipy import special

from truesim.math.chi_square import chi_square_tail


@pytest.mark.parametrize("count", [1, 2, 3, 8, 21, 140])
def test_tail_is_scipys(count):
    """Any number of degrees of freedom, from certain to hardly possible."""
    for statistic in (0.0, 1e-3, 0.7, float(count), 3.0 * count, 40.0 + 5.0 * count):
        assert chi_square_tail(count, statistic) == pytest.approx(special.chdtrc(count, statistic), rel=1e-11)
