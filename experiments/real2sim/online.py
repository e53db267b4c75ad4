"""Three lengths by a mixture of three Gaussians while samples arrive (section IV of the paper), by both objectives."""

from typing import Any

import numpy as np
import optax

from experiments.real2sim.pendulum import NOISE, STEPS, recorded, text, trajectory
from truesim.identify.posterior import (
    Evidence,
    Evolution,
    Kernels,
    Mixture,
    Published,
    Trajectories,
    laplace_of,
    observe,
)
from truesim.report.pictures import Picture
from truesim.report.posterior_figures import evolution_figure

TRUTH = np.array([0.5, 0.35, 0.4])
"""Lengths [m]."""
EPOCHS, ALLOWED = 120, 0.02
"""Epochs in all, and the error that is allowed."""
BELIEF = (np.full(3, 0.5), np.full(3, 0.2))
"""What is believed of the lengths before anything is seen [m]."""


def observed(trajectories: Trajectories, headings: np.ndarray, published: bool, seed: int) -> Evolution:
    """The mixture's way while the headings arrive one at a time."""
    apart = BELIEF[1] * np.random.default_rng(seed).normal(size=(3, 3)) / 2
    if published:
        rate = optax.cosine_decay_schedule(0.03, EPOCHS, alpha=0.1)
        search = Mixture(Kernels.around(BELIEF[0] + apart, np.full(3, 0.05)), Published(256), rate=rate, seed=seed)
    else:
        search = Mixture(Kernels.around(BELIEF[0] + apart, BELIEF[1]), Evidence(16), rate=0.5, seed=seed)
    cost_of = trajectories.huber if published else trajectories.evidence
    return observe(search, cost_of, iter(headings), STEPS, EPOCHS // STEPS)


def smoothed(evolution: Evolution) -> np.ndarray:
    """Spread of the whole mixture, averaged over the epochs that follow each new sample [m]."""
    return evolution.std.reshape(STEPS, -1, evolution.std.shape[1]).mean(axis=1)


def triple_pendulum(seed: int) -> tuple[str, Any, Any, list[Picture]]:
    """Title, header and rows of a table, and the pictures."""
    recording = recorded(text(TRUTH), seed)
    trajectories = Trajectories(
        trajectory(recording, lambda lengths: (lengths, lengths)), TRUTH, noise=NOISE, prior=BELIEF
    )
    posterior = laplace_of(trajectories, recording.headings, TRUTH)
    rows, pictures = [], []
    for published, name in ((True, "published"), (False, "likelihood and entropy")):
        evolution = observed(trajectories, recording.headings, published, seed)
        each = 100 * np.abs(evolution.means[-1] / TRUTH - 1).max()
        whole = 100 * np.abs(evolution.mean[-1] / TRUTH - 1).max()
        spread = smoothed(evolution)
        falling = "yes" if np.all(np.diff(np.linalg.norm(spread, axis=1)) < 0) else "NO"
        good = "yes" if each < 100 * ALLOWED else "NO"
        last = evolution.std[-1] / posterior.std
        rows.append(
            (
                name,
                len(evolution.loss),
                each,
                whole,
                good,
                1e3 * spread[0].max(),
                1e3 * spread[-1].max(),
                falling,
                last.max(),
            )
        )
        pictures.append(_picture(name, evolution))
    title = f"Triple pendulum, lengths {TRUTH} m, three kernels, samples one at a time"
    header = (
        "objective", "epochs", "worst kernel [%]", "mixture [%]", "within 2 %", "spread at first [mm]", "at last [mm]",
        "falls steadily", "over Laplace's",
    )  # fmt: skip
    return title, header, rows, pictures


def _picture(name: str, evolution: Evolution) -> Picture:
    words = "Means of the kernels with one standard deviation; numbers on the stripes count the samples seen."
    figure = evolution_figure(evolution, [f"length {k + 1} [m]" for k in range(3)], TRUTH)
    return Picture(f"Three lengths online: {name}", words, figure)
