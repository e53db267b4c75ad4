"""Randomization from a distribution that SimOpt, DROPO or BayRn found."""

from collections.abc import Sequence

import numpy as np

from truesim.core.errors import TruesimError
from truesim.policies.adaptation.gaussian import Gaussian
from truesim.policies.randomization import Randomization

JOINT_SAMPLES = 1000
"""Samples from which episodes draw, which keep the correlations."""


def to_randomization(
    distribution: Gaussian,
    paths: Sequence[str],
    *,
    low: Sequence[float] | None = None,
    high: Sequence[float] | None = None,
    seed: int = 0,
) -> Randomization:
    """Randomization of parameters by path, for training like any other.

    Args:
        distribution: The distribution.
        paths: Path of each of its parameters, such as `bodies/pole.mass`.
        low: Smallest value of each parameter, such as 0 for masses; samples are clipped.
        high: Largest value.
        seed: Seed of the samples.
    """
    if len(paths) != len(distribution.mean):
        raise TruesimError(
            f"The distribution has {len(distribution.mean)} parameters, but {len(paths)} paths are given."
        )
    samples = distribution.sample(np.random.default_rng(seed), JOINT_SAMPLES)
    samples = np.clip(
        samples, -np.inf if low is None else np.asarray(low), np.inf if high is None else np.asarray(high)
    )
    return Randomization(samples={path: samples[:, k] for k, path in enumerate(paths)})
