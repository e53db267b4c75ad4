"""Charts beside the scene: signals of one channel with a mark at the time that is shown."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from truesim.scenes.viewer_library import viewer

MAX_CHART_SAMPLES = 1200
"""Samples of a chart; more are finer and slower."""
CURVES = (("measured", "#8a8f99", 2.5), ("start", "#e0610d", 1.0), ("fitted", "#0072b2", 1.5))
"""Signals from back to front, with color and width."""
BELOW = 0.08
"""Distance of the foot of the mark of time from the curves, relative to their height."""
SECONDS_BETWEEN_MARKS = 0.1


class SignalChart:
    """A channel of a log, measured and simulated."""

    def __init__(
        self,
        server: Any,
        time: np.ndarray,
        rows: Sequence[str],
        signals: Mapping[str, np.ndarray],
        aspect: float = 1.6,
    ):
        """Add the chart to the panel.

        Args:
            server: Server of the panel.
            time: Time of the samples [s].
            rows: Names of the channels.
            signals: Values by curve, shape (samples, rows).
            aspect: Width of the chart relative to its height.
        """
        self._server, self._aspect, self._last = server, aspect, -np.inf
        self._channel = server.gui.add_dropdown("Signal", tuple(rows), initial_value=rows[0])
        self._channel.on_update(lambda _: self._redraw())
        self._chart: Any = None
        self._now = float(time[0])
        self.show(time, rows, signals)

    def show(self, time: np.ndarray, rows: Sequence[str], signals: Mapping[str, np.ndarray]) -> None:
        """Show other signals."""
        keep = np.linspace(0, len(time) - 1, min(len(time), MAX_CHART_SAMPLES)).astype(int)
        self._time, self._rows = np.asarray(time, float)[keep], list(rows)
        self._signals = {name: np.asarray(values, float)[keep] for name, values in signals.items()}
        self._channel.options = tuple(rows)
        self._now = float(self._time[0])
        if self._chart is not None and len(self._chart.data) == len(self._data()):
            self._redraw()
            return
        if self._chart is not None:
            self._chart.remove()
        self._chart = self._add()

    def mark(self, now: float) -> None:
        """Move the mark to a time [s]."""
        if abs(now - self._last) >= SECONDS_BETWEEN_MARKS:
            self._last = self._now = now
            self._redraw()

    def _data(self) -> tuple[np.ndarray, ...]:
        row = self._rows.index(self._channel.value) if self._channel.value in self._rows else 0
        curves = [_begun(self._signals[name][:, row]) for name, _, _ in CURVES if name in self._signals]
        known = np.concatenate([curve[np.isfinite(curve)] for curve in curves])
        low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
        mark = np.full(len(self._time), low - BELOW * (high - low))
        mark[min(int(np.searchsorted(self._time, self._now)), len(mark) - 1)] = high
        strictly = np.maximum.accumulate(self._time + 1e-9 * np.arange(len(self._time)))
        return strictly, *curves, mark

    def _add(self) -> Any:
        uplot = viewer().uplot
        curves = [c for c in CURVES if c[0] in self._signals]
        series = (
            uplot.Series(label="time [s]"),
            *(uplot.Series(label=name, stroke=color, width=width) for name, color, width in curves),
            uplot.Series(label="now", stroke="#c2185b", width=1, points={"show": False}),
        )
        scales = {"x": uplot.Scale(time=False, auto=True), "y": uplot.Scale(auto=True)}
        return self._server.gui.add_uplot(self._data(), series, scales=scales, aspect=self._aspect)

    def _redraw(self) -> None:
        self._chart.data = self._data()


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
    return server.gui.add_uplot(data, series, scales=scales, title="Cost, relative to the first iteration", aspect=1.8)
