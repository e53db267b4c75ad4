"""Chi-square distribution."""

import math


def chi_square_tail(count: int, statistic: float) -> float:
    """Probability that a chi-square with `count` degrees of freedom exceeds `statistic`.

    Q(n/2, h) = sum of exp(-h) h^a / Gamma(a + 1) over a = 0, 1, ..., n/2 - 1 with h = statistic / 2; for an odd n, a
    begins at 1/2, and erfc(sqrt(h)) is added (Abramowitz and Stegun, 26.4.4 and 26.4.5).
    """
    if statistic <= 0:
        return 1.0
    h, odd = statistic / 2, count % 2
    terms = (math.exp(a * math.log(h) - h - math.lgamma(a + 1)) for a in (k + odd / 2 for k in range(count // 2)))
    return math.fsum(terms) + (math.erfc(math.sqrt(h)) if odd else 0.0)
