"""Lengths of two links: hopping finds them where one solve does not."""

import numpy as np

from benchmarks.two_links import problem, starts
from experiments.two_link_lengths.__main__ import EXACT, alone, chains_best, errors, hopped


def test_hopping_reaches_the_truth_from_every_start():
    """On a coarser grid than the experiment's; some of its starts lead a single solve to a wrong minimum."""
    objective, grid = problem(), starts(30)
    single = errors(list(alone(objective, grid).solves))
    many = errors(chains_best(hopped(objective, grid)))
    assert 0.85 < np.mean(single < EXACT) < 0.99
    assert len(many) == 900
    assert many.max() < EXACT
