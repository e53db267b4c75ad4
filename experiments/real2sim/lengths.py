"""Both lengths of a double pendulum by Adam, from headings alone (section III of the paper)."""

from typing import Any

import jax
import numpy as np
import optax
import plotly.graph_objects as go

from experiments.real2sim.pendulum import NOISE, recorded, text, trajectory
from truesim.identification.posterior import Trajectories
from truesim.report.figures import INK, TRACE_COLORS, PageFigure, apply_style

TRUTH, STARTS = np.array([0.5, 0.35]), ((0.3, 0.5), (0.8, 0.2), (0.25, 0.25), (0.8, 0.8))
"""True lengths, and start values [m]."""
EPOCHS, RATE, ALLOWED = 80, 0.03, 0.02
"""Steps of Adam, its learning rate [m], and the largest accepted relative error."""


def optimize(trajectories: Trajectories, headings: np.ndarray, start: tuple[float, ...]) -> np.ndarray:
    """Lengths after every epoch of Adam on the mean square of the headings' errors [m]."""
    cost = trajectories.huber(headings, threshold=np.inf)
    theta, method = np.array(start), optax.adam(RATE)
    memory, way = method.init(theta), [theta]
    for _ in range(EPOCHS):
        with jax.numpy_dtype_promotion("standard"):  # optax mixes types
            step, memory = method.update(cost(theta[None])[1][0], memory)
        theta = theta + np.asarray(step)
        way.append(theta)
    return np.stack(way)


def double_pendulum(seed: int) -> tuple[str, Any, Any, list[PageFigure]]:
    """Title, header and rows of a table, and the figure."""
    recording = recorded(text(TRUTH), seed)
    trajectories = Trajectories(trajectory(recording, lambda lengths: (lengths, lengths)), TRUTH, noise=NOISE)
    rows, figure = [], go.Figure()
    for start in STARTS:
        way = optimize(trajectories, recording.headings, start)
        errors = way[-1] / TRUTH - 1
        good = "yes" if np.abs(errors).max() < ALLOWED else "NO"
        rows.append((f"{start[0]}, {start[1]}", *way[-1].tolist(), *(100 * errors).tolist(), good))
        for k in range(2):
            figure.add_scatter(
                y=way[:, k], line={"color": TRACE_COLORS[k]}, name=f"length {k + 1}", showlegend=start == STARTS[0]
            )
    for length in TRUTH:
        figure.add_hline(y=length, line={"color": INK, "dash": "dash", "width": 1})
    apply_style(figure, 380).update_layout(xaxis_title="epoch", yaxis_title="length [m]")
    title = f"Double pendulum, lengths {TRUTH} m, {EPOCHS} epochs of Adam"
    header = ("start [m]", "length 1 [m]", "length 2 [m]", "error 1 [%]", "error 2 [%]", "within 2 %")
    words = "Both lengths from headings, from four starts; dashed lines are the truth."
    return title, header, rows, [PageFigure("Lengths of a double pendulum", words, figure)]
