"""Selection of evenly spaced pieces of long logs."""

import dataclasses

import numpy as np

from truesim.identification.problem.problem import Problem
from truesim.identification.problem.recording import Recording

MOST_SAMPLES = 16_000
"""Maximum number of samples: more are slower and more accurate."""
PIECE_SAMPLES = 500
"""Number of samples of a piece of a long log."""


def thin_logs(problem: Problem) -> Problem:
    """Problem with evenly spaced pieces of its logs, if they have more samples than needed."""
    total = sum(last - first for r in problem.recordings for first, last in r.pieces)
    if total <= MOST_SAMPLES:
        return problem
    return dataclasses.replace(problem, recordings=tuple(_pieces(r, MOST_SAMPLES / total) for r in problem.recordings))


def _pieces(recording: Recording, part: float) -> Recording:
    pieces = [
        (int(at), min(int(at) + PIECE_SAMPLES, last))
        for first, last in recording.pieces
        for at in np.linspace(
            first, max(first, last - PIECE_SAMPLES), max(1, round(part * (last - first) / PIECE_SAMPLES))
        )
    ]
    return dataclasses.replace(recording, pieces=tuple(pieces))
