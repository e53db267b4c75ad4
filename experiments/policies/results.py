"""What a training has reached."""

from typing import NamedTuple


class Learned(NamedTuple):
    """One training until its goal."""

    learner: str
    seed: int
    cpu_seconds: float
    """CPU time, without compilation [s]."""
    steps: int
    value: float
    """Return of the mean action; the best one where the goal was not reached."""
    reached: bool
