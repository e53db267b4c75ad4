"""Charts beside the scene: signals of one channel with a mark at the time that is shown."""

import contextlib
from typing import Any

import numpy as np

from truesim.scenes.viewer_library import viewer
from truesim.studio.signals import Signals

MAX_CHART_SAMPLES = 1200
"""Samples of a chart; more are finer and slower."""
CURVES = (
    ("command", "#2e9e6b", 1.0),
    ("measured", "#8a8f99", 2.5),
    ("start", "#e0610d", 1.0),
    ("fitted", "#0072b2", 1.5),
)
"""Signals from back to front, with color and width."""
BELOW = 0.08
"""Distance of the foot of the mark of time from the curves, relative to their height."""
SECONDS_BETWEEN_MARKS = 0.1
CHART_PADDING = (12, 24, 0, 0)
"""Space above, right, below and left of the curves [px]; labels of the axes reach into it."""


class SignalChart:
    """A channel of a log, measured and simulated."""

    def __init__(
        self,
        server: Any,
        signals: Signals,
        container: Any = None,
        aspect: float = 1.6,
    ):
        """Add the chart to the panel.

        Args:
            server: Server of the panel.
            signals: Measured and simulated channels.
            container: Container of the chart; the panel by default.
            aspect: Width of the chart relative to its height.
        """
        self._server, self._container, self._aspect, self._last = server, container, aspect, -np.inf
        with container or contextlib.nullcontext():
            self._channel = server.gui.add_dropdown("Signal", tuple(signals.rows), initial_value=signals.rows[0])
        self._channel.on_update(lambda _: self._redraw())
        self._chart: Any = None
        self._drawn: tuple[str, ...] = ()
        self._now = float(signals.time[0])
        self.show(signals)

    def show(self, signals: Signals) -> None:
        """Show other signals."""
        time, rows, curves = signals
        keep = np.linspace(0, len(time) - 1, min(len(time), MAX_CHART_SAMPLES)).astype(int)
        self._time, self._rows = np.asarray(time, float)[keep], list(rows)
        self._signals = {name: np.asarray(values, float)[keep] for name, values in curves.items()}
        if tuple(self._channel.options) != tuple(rows):
            self._channel.options = tuple(rows)
        self._now = float(np.clip(self._now, self._time[0], self._time[-1]))
        self._redraw()

    def remove(self) -> None:
        """Take the chart away."""
        self._channel.remove()
        self._chart.remove()

    def mark(self, now: float) -> None:
        """Move the mark to a time [s]."""
        if abs(now - self._last) >= SECONDS_BETWEEN_MARKS:
            self._last = self._now = now
            self._redraw()

    def _data(self) -> tuple[np.ndarray, ...]:
        """Time, the curves that have values, and the mark."""
        row = self._row
        curves = [_begun(self._signals[name][:, row]) for name in self._known]
        known = np.concatenate([curve[np.isfinite(curve)] for curve in curves]) if curves else np.zeros(0)
        low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
        mark = np.full(len(self._time), low - BELOW * (high - low))
        mark[min(int(np.searchsorted(self._time, self._now)), len(mark) - 1)] = high
        strictly = np.maximum.accumulate(self._time + 1e-9 * np.arange(len(self._time)))
        return strictly, *curves, mark

    @property
    def _row(self) -> int:
        return self._rows.index(self._channel.value) if self._channel.value in self._rows else 0

    @property
    def _known(self) -> tuple[str, ...]:
        """Curves that have values in the chosen channel, from back to front."""
        row = self._row
        return tuple(n for n, _, _ in CURVES if n in self._signals and np.isfinite(self._signals[n][:, row]).any())

    def _add(self) -> Any:
        uplot = viewer().uplot
        series = (
            uplot.Series(label="time [s]"),
            *(uplot.Series(label=n, stroke=color, width=width) for n, color, width in CURVES if n in self._drawn),
            uplot.Series(label="now", stroke="#c2185b", width=1, points={"show": False}),
        )
        scales = {"x": uplot.Scale(time=False, auto=True), "y": uplot.Scale(auto=True)}
        with self._container or contextlib.nullcontext():
            return self._server.gui.add_uplot(
                self._data(),
                series,
                scales=scales,
                aspect=self._aspect,
                padding=CHART_PADDING,
                order=self._channel.order + 0.5,
            )

    def _redraw(self) -> None:
        if self._chart is not None and self._drawn == self._known:
            self._chart.data = self._data()
            return
        if self._chart is not None:
            self._chart.remove()
        self._drawn = self._known
        self._chart = self._add()


def _begun(curve: np.ndarray) -> np.ndarray:
    """The curve with a known first value; the library draws nothing of a chart with a curve that begins with NaN."""
    known = np.flatnonzero(np.isfinite(curve))
    begun = curve.copy()
    begun[0] = curve[known[0]] if len(known) else 0.0
    return begun


def cost_chart(server: Any, data: tuple[np.ndarray, np.ndarray]) -> Any:
    """A chart of costs over iterations on a logarithmic scale, in the open container of the panel.

    Args:
        server: Server of the panel.
        data: Iterations, and positive costs.
    """
    uplot = viewer().uplot
    scales = {"x": uplot.Scale(time=False, auto=True), "y": uplot.Scale(auto=True, distr=3)}
    series = (uplot.Series(label="iteration"), uplot.Series(label="cost, relative", stroke=CURVES[2][1], width=2))
    return server.gui.add_uplot(
        data, series, scales=scales, title="Cost, relative to the first iteration", aspect=1.8, padding=CHART_PADDING
    )
