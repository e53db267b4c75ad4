"""Motions of one or several logs: a choice of the log, the player, and the signals beneath it."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from truesim.scenes.replay import Replay
from truesim.studio.charts import SignalChart
from truesim.studio.player import Player
from truesim.studio.signals import Signals


class ReplayPanel:
    """Controls of replays, made when the first one is shown."""

    def __init__(
        self, server: Any, container: Any = None, options: Any = None, aspect: float = 1.6, upper: float = 1.0
    ):
        """Make room for the controls.

        Args:
            server: Server of the scene.
            container: Container of the controls; the panel by default.
            options: Container of the controls of speed and robots; beneath the timeline by default.
            aspect: Width of the chart of signals relative to its height.
            upper: Part of the scene, from above, that the controls do not cover.
        """
        self._server, self._container, self._options = server, container, options
        self._aspect, self._upper = aspect, upper
        self._replays: Mapping[str, Replay] = {}
        self._signals: Mapping[str, Callable[[], Signals]] = {}
        self.player: Player | None = None
        self.chart: SignalChart | None = None
        self.key = ""
        """Name of the replay that is shown."""
        self.chosen: Callable[[], None] | None = None
        """Called after another log was chosen."""
        with self._inside():
            self._choice = server.gui.add_dropdown("Log", ("",), visible=False)
        self._choice.on_update(lambda event: self._choose() if event.client is not None else None)

    def show(self, replays: Mapping[str, Replay], signals: Mapping[str, Callable[[], Signals]]) -> None:
        """Show the first of several replays, and offer the others.

        Args:
            replays: Replays by name.
            signals: Functions that give the signals of a replay, by its name; those without one have no chart.
        """
        self._replays, self._signals = replays, signals
        first = next(iter(replays))
        self._choice.options = tuple(replays)
        self._choice.value, self._choice.visible = first, len(replays) > 1
        self._show(first)

    def show_signals(self, signals: Signals) -> None:
        """Show other signals of the same log."""
        if self.chart is not None:
            self.chart.show(signals)

    def _choose(self) -> None:
        if self._choice.value in self._replays and self._choice.value != self.key:
            self._show(self._choice.value)
            if self.chosen is not None:
                self.chosen()

    def _show(self, key: str) -> None:
        self.key, replay = key, self._replays[key]
        if self.player is None:
            with self._inside():
                self.player = Player(self._server, replay, self._mark, self._options, self._upper)
        else:
            self.player.show(replay)
        if key not in self._signals:
            self._forget_chart()
        elif self.chart is None:
            self.chart = SignalChart(self._server, self._signals[key](), self._container, self._aspect)
        else:
            self.chart.show(self._signals[key]())

    def _forget_chart(self) -> None:
        if self.chart is not None:
            self.chart.remove()
            self.chart = None

    def _mark(self, now: float) -> None:
        if self.chart is not None:
            self.chart.mark(now)

    def _inside(self) -> Any:
        return self._container or contextlib.nullcontext()
