"""Figures of posteriors: training of a mixture, pairwise marginals, calibration."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from plotly.subplots import make_subplots

from truesim.core.typing import Float, Int
from truesim.identification.posterior.calibration import Calibration
from truesim.identification.posterior.mixture import MixtureHistory
from truesim.report.figures import INK, LINE, MUTED, TRACE_COLORS, apply_style

MAX_DOTS = 600
"""Largest number of samples in a scatter plot."""
RANK_BINS = 10
"""Number of bins of a histogram of ranks."""
MAX_PLOTTED = 8
"""Largest number of parameters in a matrix of plots."""
MAX_LARGE_LABELS = 4
"""Matrices of plots with more parameters than this have small labels."""


def evolution_figure(
    evolution: MixtureHistory, names: Sequence[str], truth: Float[np.ndarray, " size"] | None = None
) -> Any:
    """Loss, and mean of every kernel with one standard deviation, over epochs; vertical lines count the samples used.

    Args:
        evolution: History of the training.
        names: Names of the coordinates, with units.
        truth: True values, if known.
    """
    rows = len(names) + 1
    figure = make_subplots(rows, 1, shared_xaxes=True, vertical_spacing=0.28 / rows, subplot_titles=["", *names])
    figure.update_annotations(x=0, xanchor="left", font={"size": 12})
    epochs = np.arange(1, len(evolution.loss) + 1)
    figure.add_scatter(x=epochs, y=evolution.loss, line={"color": INK, "width": 1.5}, showlegend=False, row=1, col=1)
    figure.update_yaxes(title_text="loss", type="log" if _spans_decades(evolution.loss) else "linear", row=1, col=1)
    for k in range(evolution.weights.shape[1]):
        for i in range(len(names)):
            _draw_band(figure, epochs, evolution.means[:, k, i], evolution.stds[:, k, i], k, i)
    for i in range(len(names)):
        if truth is not None:
            figure.add_hline(y=float(truth[i]), line={"color": INK, "dash": "dash", "width": 1}, row=i + 2, col=1)
    figure.update_xaxes(title_text="epoch", row=rows, col=1)
    for epoch in np.flatnonzero(np.diff(evolution.seen, prepend=-1)) if evolution.seen.any() else ():
        figure.add_vline(x=int(epoch) + 1, line={"color": MUTED, "dash": "dot", "width": 1})
        figure.add_annotation(
            x=int(epoch) + 1, y=1.0, yref="paper", yanchor="bottom", xanchor="left", showarrow=False,
            text=str(int(evolution.seen[epoch])), font={"color": MUTED, "size": 11},
        )  # fmt: skip
    apply_style(figure, 150 * rows + 90)
    return figure.update_layout(legend={"y": -70 / (150 * rows), "yanchor": "top"})


def pairs_figure(
    samples: Mapping[str, Float[np.ndarray, "n size"]],
    names: Sequence[str],
    truth: Float[np.ndarray, " size"] | None = None,
) -> Any:
    """Scatter plots of all pairs of coordinates, with histograms on the diagonal.

    Args:
        samples: Samples of several posteriors, by name.
        names: Names of the coordinates, with units.
        truth: True values, if known.
    """
    shown = most_correlated(next(iter(samples.values())))
    size = len(shown)
    figure = make_subplots(size, size, horizontal_spacing=0.15 / size, vertical_spacing=0.15 / size)
    for index, (label, values) in enumerate(samples.items()):
        color = TRACE_COLORS[index % len(TRACE_COLORS)]
        for i, own in enumerate(shown):
            figure.add_histogram(
                x=values[:, own], histnorm="probability density", nbinsx=40, marker_color=color, opacity=0.45,
                name=label, legendgroup=label, showlegend=i == 0, row=i + 1, col=i + 1,
            )  # fmt: skip
            for j, other in enumerate(shown[:i]):
                figure.add_scattergl(
                    x=values[:MAX_DOTS, other], y=values[:MAX_DOTS, own], mode="markers", showlegend=False,
                    legendgroup=label, marker={"color": color, "size": 3, "opacity": 0.45}, row=i + 1, col=j + 1,
                )  # fmt: skip
    apply_style(figure, max(420, 150 * size))
    _label_edges(figure, [_fold(names[k]) for k in shown])
    if truth is not None:
        for i in range(size):
            _mark_truth(figure, truth[shown], i)
    return figure.update_layout(barmode="overlay")


def most_correlated(values: Float[np.ndarray, "n size"]) -> Int[np.ndarray, " shown"]:
    """Indices of at most `MAX_PLOTTED` coordinates: those most correlated with others, in ascending order."""
    if values.shape[1] <= MAX_PLOTTED:
        return np.arange(values.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.abs(np.nan_to_num(np.corrcoef(values.T)))
    np.fill_diagonal(correlation, 0.0)
    return np.sort(np.argsort(-correlation.max(axis=1), kind="stable")[:MAX_PLOTTED])


def calibration_figure(found: Mapping[str, Calibration]) -> Any:
    """Coverage of credible regions over their probability, and histograms of the ranks of the true values.

    Args:
        found: Calibrations, by kind of posterior.
    """
    first = next(iter(found.values()))
    size = min(len(first.names), MAX_PLOTTED)
    titles = ["true value within the joint region", *first.names[:size]]
    columns = 3
    rows = -(-(size + 1) // columns)
    figure = make_subplots(rows, columns, subplot_titles=titles, vertical_spacing=0.45 / rows, horizontal_spacing=0.07)
    figure.update_annotations(font={"size": 12})
    levels = np.linspace(0.02, 0.98, 49)
    low, high = np.array([first.chance(float(level)) for level in levels]).T
    _calibrated_band(figure, levels, low, high)
    count = len(first.ranks)
    per_bin = [first.chance(1 / RANK_BINS)[k] * RANK_BINS for k in (0, 1)]
    for index, (kind, calibration) in enumerate(found.items()):
        color = TRACE_COLORS[index % len(TRACE_COLORS)]
        covered = [calibration.coverage(float(level)) for level in levels]
        figure.add_scatter(
            x=levels, y=covered, name=kind, legendgroup=kind, line={"color": color, "width": 2}, row=1, col=1
        )
        for i in range(size):
            heights = np.histogram(calibration.ranks[:, i], RANK_BINS, (0, 1))[0] * RANK_BINS / count
            figure.add_bar(
                x=(np.arange(RANK_BINS) + 0.5) / RANK_BINS, y=heights, marker_color=color, opacity=0.6,
                legendgroup=kind, showlegend=False, row=(i + 1) // columns + 1, col=(i + 1) % columns + 1,
            )  # fmt: skip
    for i in range(size):
        where = {"row": (i + 1) // columns + 1, "col": (i + 1) % columns + 1}
        figure.add_hrect(y0=per_bin[0], y1=per_bin[1], fillcolor=MUTED, opacity=0.15, line_width=0, **where)
        figure.update_xaxes(title_text="rank of the true value", range=[0, 1], **where)
        figure.update_yaxes(rangemode="tozero", **where)
    figure.update_xaxes(title_text="probability of the region", range=[0, 1], row=1, col=1)
    figure.update_yaxes(title_text="fraction of repeats", range=[0, 1], row=1, col=1)
    apply_style(figure, 300 * rows + 60)
    return figure.update_layout(barmode="group", margin={"t": 70}, legend={"y": 1 + 40 / (300 * rows)})


def _draw_band(figure: Any, epochs: np.ndarray, mean: np.ndarray, std: np.ndarray, kernel: int, parameter: int) -> None:
    color = TRACE_COLORS[kernel % len(TRACE_COLORS)]
    where = {"row": parameter + 2, "col": 1}
    figure.add_scatter(
        x=np.concatenate([epochs, epochs[::-1]]), y=np.concatenate([mean + std, (mean - std)[::-1]]), fill="toself",
        fillcolor=color, opacity=0.18, line={"width": 0}, hoverinfo="skip", showlegend=False, **where,
    )  # fmt: skip
    figure.add_scatter(
        x=epochs, y=mean, line={"color": color, "width": 1.8}, name=f"kernel {kernel + 1}",
        showlegend=parameter == 0, **where,
    )  # fmt: skip


def _label_edges(figure: Any, titles: Sequence[str]) -> None:
    """Put titles and ticks of a matrix of plots on its left and lower edges only; hide plots above the diagonal."""
    size = len(titles)
    small = {"size": 10 if size > MAX_LARGE_LABELS else 12}
    for i, title in enumerate(titles):
        figure.update_xaxes(title={"text": title, "font": small}, row=size, col=i + 1)
        figure.update_yaxes(showticklabels=False, row=i + 1, col=i + 1)
        if i:
            figure.update_yaxes(title={"text": title, "font": small, "standoff": 4}, row=i + 1, col=1)
        for j in range(size):
            ticks = {"tickfont": small, "visible": j <= i, "row": i + 1, "col": j + 1}
            figure.update_xaxes(
                nticks=3 if size > MAX_LARGE_LABELS else 5, tickangle=0, showticklabels=i == size - 1, **ticks
            )
            figure.update_yaxes(nticks=5, **ticks)
            if 0 < j < i:
                figure.update_yaxes(showticklabels=False, row=i + 1, col=j + 1)


def _fold(name: str) -> str:
    """The path without its group, broken into several lines."""
    return name.rpartition("/")[2].replace(".", "<br>").replace(" [", "<br>[")


def _spans_decades(values: np.ndarray) -> bool:
    """True for positive numbers that differ by more than a factor of three: they get a logarithmic axis."""
    return bool(np.all(values > 0) and values.max() > 3 * values.min())


def _mark_truth(figure: Any, truth: np.ndarray, i: int) -> None:
    """Mark the true values in one row of a matrix of plots."""
    line = {"color": INK, "dash": "dash", "width": 1}
    figure.add_vline(x=float(truth[i]), line=line, row=i + 1, col=i + 1)
    for j in range(i):
        figure.add_scatter(
            x=[float(truth[j])], y=[float(truth[i])], mode="markers", showlegend=False,
            marker={"symbol": "x", "color": INK, "size": 10}, row=i + 1, col=j + 1,
        )  # fmt: skip


def _calibrated_band(figure: Any, levels: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """Draw the 95 % band of a calibrated posterior."""
    figure.add_scatter(
        x=np.concatenate([levels, levels[::-1]]), y=np.concatenate([high, low[::-1]]), fill="toself",
        fillcolor=MUTED, opacity=0.25, line={"width": 0}, name="calibrated, 95 % band", row=1, col=1,
    )  # fmt: skip
    figure.add_scatter(
        x=[0, 1], y=[0, 1], line={"color": LINE, "width": 1}, showlegend=False, hoverinfo="skip", row=1, col=1
    )
