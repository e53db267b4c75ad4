"""Long logs, thinned to pieces that are spread over them."""

import dataclasses

import numpy as np

from truesim.identify.problem import Problem
from truesim.identify.recording import Recording

MOST, PIECE = 16_000, 500
"""Samples that are looked at, and those of a piece of a long log."""


def thinned(problem: Problem) -> Problem:
    """The problem with pieces of its logs, spread evenly, if they hold more samples than are needed."""
    total = sum(last - first for r in problem.recordings for first, last in r.segments)
    if total <= MOST:
        return problem
    return dataclasses.replace(problem, recordings=tuple(_pieces(r, MOST / total) for r in problem.recordings))


def _pieces(recording: Recording, part: float) -> Recording:
    pieces = [
        (int(at), min(int(at) + PIECE, last))
        for first, last in recording.segments
        for at in np.linspace(first, max(first, last - PIECE), max(1, round(part * (last - first) / PIECE)))
    ]
    return dataclasses.replace(recording, segments=tuple(pieces))
