"""Cost of a fit over its iterations, on one scale."""


class RelativeCost:
    """Cost relative to the first iteration; every stage continues where the one before ended.

    A stage estimates the noise anew or joins windows, so that the cost itself may rise where the fit improves.
    """

    def __init__(self) -> None:
        self._scale = 1.0
        self._last: float | None = None

    def __call__(self, cost: float) -> float:
        """The relative cost of the next iteration."""
        if self._last is None:
            self._scale = 1 / cost if cost else 1.0
        elif cost > self._last:
            self._scale *= self._last / cost
        self._last = cost
        return self._scale * cost
