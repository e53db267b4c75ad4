"""Intervals: standard deviations equal those of repeated estimates, for white and for correlated noise."""

import dataclasses

import numpy as np
import pytest

from tests.identification.recorded import ARM_TRUTH, arm_log
from truesim.identification.diagnose import noise_memory
from truesim.identification.diagnose.covariance import uncertainty
from truesim.identification.solve.options import SolveOptions
from truesim.identification.solve.stages import solve_problem

DRAWS = 20
NOISE = 1e-3


def correlated(rng, shape: tuple[int, int], memory: float) -> np.ndarray:
    """Autoregressive noise of first order."""
    fresh = rng.normal(size=shape) * np.sqrt(1 - memory**2)
    fresh[0] /= np.sqrt(1 - memory**2)
    out = np.empty(shape)
    for k, row in enumerate(fresh):
        out[k] = row + (memory * out[k - 1] if k else 0.0)
    return NOISE * out


@pytest.mark.parametrize(
    ("memory", "window"),
    [(0.0, None), (0.5, None), (0.8, 0.2), (0.9, 0.3)],
    ids=["white", "correlated", "short windows", "long memory"],
)
def test_estimates_spread_as_far_as_their_intervals_say(arm_of, memory, window):
    """Errors in units of their standard deviations have a mean square of one, to within chance.

    Initial states of short windows absorb most of the slow noise, which must not pass for white noise.
    """
    clean, rng, errors = arm_log(noise=0.0), np.random.default_rng(0), []
    names, options = ("qpos/shoulder", "qpos/elbow"), SolveOptions(window=window)
    for _ in range(DRAWS):
        noise = correlated(rng, (len(clean.time), 2), memory)
        noisy = {name: clean.columns[name] + noise[:, k] for k, name in enumerate(names)}
        solution = solve_problem(arm_of(dataclasses.replace(clean, columns={**clean.columns, **noisy})), options)
        std = np.sqrt(np.diag(uncertainty(solution).values))
        errors.append((solution.problem.values(solution.theta)[0] - ARM_TRUTH) / std)
    assert 0.7 < np.sqrt(np.mean(np.square(errors))) < 1.3


def test_correlation_is_noticed(arm_of):
    """Correlated samples carry less information."""
    clean, rng = arm_log(noise=0.0), np.random.default_rng(0)
    noise = correlated(rng, (len(clean.time), 2), 0.8)
    columns = {**clean.columns, "qpos/elbow": clean.columns["qpos/elbow"] + noise[:, 0]}
    columns["qpos/shoulder"] = clean.columns["qpos/shoulder"] + NOISE * rng.normal(size=len(clean.time))
    found = uncertainty(solve_problem(arm_of(dataclasses.replace(clean, columns=columns))))
    assert found.correlation_time[0] < 2 < 4 < found.correlation_time[1]


def test_logs_of_unequal_length_in_which_some_windows_are_drawn(arm_of, monkeypatch):
    """Noise is drawn in one of two logs, the shorter one; its window is as long as the longest."""
    monkeypatch.setattr(noise_memory, "DRAWN_SAMPLES", 400)
    logs = [arm_log(0.6, seed=1, name="short"), arm_log(seed=2, name="long")]
    solution = solve_problem(arm_of(*logs), SolveOptions(window=10.0))
    assert solution.windows.shape[0] == 2
    assert np.isfinite(uncertainty(solution).values).all()
