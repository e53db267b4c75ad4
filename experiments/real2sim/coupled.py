"""A pendulum whose length and centre of mass mirror each other: the posterior is a ridge.

The centre of mass lies at a fraction of the length, and only its distance from the pivot, their product, shows in the
motion. Laplace's posterior is the tangent of the ridge; a mixture of likelihood and entropy bends along it.
"""

from typing import Any

import numpy as np

from experiments.real2sim.pendulum import NOISE, recorded, text, trajectory
from truesim.identify.posterior import MixtureSettings, Trajectories, laplace_of, mixture_around
from truesim.report.pictures import Picture
from truesim.report.posterior_figures import pairs_figure

TRUTH = np.array([0.5, 0.7])
"""Length [m], and the fraction of it at which the centre of mass lies."""
BELIEF = (np.array([0.55, 0.65]), np.array([0.12, 0.15]))
"""Mean and standard deviation beforehand."""
DRAWN = 2000


def coupled(seed: int) -> tuple[str, Any, Any, list[Picture]]:
    """Title, header and rows of a table, and the picture."""
    recording = recorded(text(TRUTH[:1], [TRUTH.prod()]), seed)
    predict = trajectory(recording, lambda theta: (theta[:1], theta[:1] * theta[1:]))
    trajectories = Trajectories(predict, TRUTH, noise=NOISE, prior=BELIEF)
    start = laplace_of(trajectories, recording.headings, BELIEF[0])
    cost = trajectories.evidence(recording.headings)
    bent, _ = mixture_around(cost, start, MixtureSettings(kernels=6, epochs=500, samples=8))
    rows, samples = [], {}
    for name, posterior in (("Laplace", start), ("likelihood and entropy", bent)):
        drawn = samples[name] = posterior.sample(DRAWN, seed)
        product = drawn.prod(axis=1)
        correlation = float(np.corrcoef(drawn.T)[0, 1])
        surplus = float(np.median(cost(drawn)[0]) - cost(start.mean[None])[0][0])
        rows.append(
            (name, *posterior.std.tolist(), correlation, float(product.mean()), float(np.std(product)), surplus)
        )
    title = f"Length and centre of mass of one pendulum, truth {TRUTH}, product {TRUTH.prod():.3f} m"
    header = ("posterior", "std of length [m]", "of fraction", "correlation", "product [m]", "its std [m]", "misfit")
    words = (
        "Only the product of length and fraction shows in the motion. Samples along the ridge; the cross is the truth. "
        "The misfit of a typical sample, half a chi-square beyond that of the best fit, is 0.7 if it lies on the ridge."
    )
    figure = pairs_figure(samples, ("length [m]", "fraction"), TRUTH)
    return title, header, rows, [Picture("A ridge", words, figure)]
