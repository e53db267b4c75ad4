"""Three lengths by a mixture of three Gaussians while samples arrive (section IV of the paper), by both objectives."""

from typing import Any

import numpy as np
import optax

from experiments.real2sim.pendulum import NOISE, STEPS, recorded, text, trajectory
from truesim.identification.posterior import (
    EvidenceLowerBound,
    Kernels,
    Mixture,
    MixtureHistory,
    Real2SimLoss,
    Trajectories,
    observe,
    trajectory_laplace,
)
from truesim.report.figures import PageFigure
from truesim.report.posterior_figures import evolution_figure

TRUTH = np.array([0.5, 0.35, 0.4])
"""Lengths [m]."""
EPOCHS, ALLOWED = 120, 0.02
"""Total number of epochs, and the largest accepted relative error."""
PRIOR = (np.full(3, 0.5), np.full(3, 0.2))
"""Mean and standard deviation of the prior of the lengths [m]."""


def observed(trajectories: Trajectories, headings: np.ndarray, published: bool, seed: int) -> MixtureHistory:
    """History of the mixture while the headings arrive one at a time."""
    apart = PRIOR[1] * np.random.default_rng(seed).normal(size=(3, 3)) / 2
    if published:
        rate = optax.cosine_decay_schedule(0.03, EPOCHS, alpha=0.1)
        search = Mixture(Kernels.around(PRIOR[0] + apart, np.full(3, 0.05)), Real2SimLoss(256), rate=rate, seed=seed)
    else:
        search = Mixture(Kernels.around(PRIOR[0] + apart, PRIOR[1]), EvidenceLowerBound(16), rate=0.5, seed=seed)
    cost_of = trajectories.huber if published else trajectories.negative_log_posterior
    return observe(search, cost_of, iter(headings), STEPS, EPOCHS // STEPS)


def smoothed(evolution: MixtureHistory) -> np.ndarray:
    """Standard deviation of the mixture, averaged over the epochs after each new sample [m]."""
    return evolution.std.reshape(STEPS, -1, evolution.std.shape[1]).mean(axis=1)


def triple_pendulum(seed: int) -> tuple[str, Any, Any, list[PageFigure]]:
    """Title, header and rows of a table, and the figures."""
    recording = recorded(text(TRUTH), seed)
    trajectories = Trajectories(
        trajectory(recording, lambda lengths: (lengths, lengths)), TRUTH, noise=NOISE, prior=PRIOR
    )
    posterior = trajectory_laplace(trajectories, recording.headings, TRUTH)
    rows, figures = [], []
    for published, name in ((True, "published"), (False, "likelihood and entropy")):
        evolution = observed(trajectories, recording.headings, published, seed)
        each = 100 * np.abs(evolution.means[-1] / TRUTH - 1).max()
        whole = 100 * np.abs(evolution.mean[-1] / TRUTH - 1).max()
        std = smoothed(evolution)
        falling = "yes" if np.all(np.diff(np.linalg.norm(std, axis=1)) < 0) else "NO"
        good = "yes" if each < 100 * ALLOWED else "NO"
        last = evolution.std[-1] / posterior.std
        rows.append(
            (
                name,
                len(evolution.loss),
                each,
                whole,
                good,
                1e3 * std[0].max(),
                1e3 * std[-1].max(),
                falling,
                last.max(),
            )
        )
        figures.append(_figure(name, evolution))
    title = f"Triple pendulum, lengths {TRUTH} m, three kernels, samples one at a time"
    header = (
        "objective", "epochs", "worst kernel [%]", "mixture [%]", "within 2 %", "first std [mm]", "last std [mm]",
        "decreases steadily", "over Laplace",
    )  # fmt: skip
    return title, header, rows, figures


def _figure(name: str, evolution: MixtureHistory) -> PageFigure:
    words = "Means of the kernels with one standard deviation; numbers at the vertical lines count the samples used."
    figure = evolution_figure(evolution, [f"length {k + 1} [m]" for k in range(3)], TRUTH)
    return PageFigure(f"Three lengths online: {name}", words, figure)
