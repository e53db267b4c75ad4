"""Player: a replay on a timeline, with a switch for every robot and the signals beneath."""

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from truesim.scenes.motions import BodyPoses
from truesim.scenes.nodes import RobotNodes, add_replay
from truesim.scenes.replay import Replay
from truesim.scenes.viewer_library import viewer

LABELS = {"recorded": "Real robot", "fitted": "Fitted (blue)", "start": "Start (orange)"}
SPEEDS = ("0.1x", "0.25x", "0.5x", "1x", "2x")
SECONDS_BETWEEN_FRAMES = 1 / 30
SCENE_ASPECT = 0.9
"""Width of the scene beside the panel of controls relative to its height, on a small screen."""


class Player:
    """Controls of a replay, and the thread that plays it."""

    def __init__(
        self,
        server: Any,
        replay: Replay,
        moved: Callable[[float], None] | None = None,
        options: Any = None,
        upper: float = 1.0,
    ):
        """Show a replay.

        Args:
            server: Server of the scene.
            replay: Robots and motions.
            moved: Called with the time that is shown [s].
            options: Container of the controls of speed and robots; beneath the timeline by default.
            upper: Part of the scene, from above, that is not covered by a panel where a motion is shown.
        """
        self._server, self._moved, self._upper, self._lock = server, moved, upper, threading.RLock()
        self._playing, self._begin, self._origin = False, 0.0, 0.0
        self._closed = threading.Event()
        self.replay = replay
        self.nodes: dict[str, RobotNodes] = {}
        self.on_frame: Callable[[int], None] | None = None
        """Called with the frame that is drawn, for what moves along with the robots."""
        gui = server.gui
        self._play = gui.add_button("Play", icon=_icon("PLAYER_PLAY"))
        self._time = gui.add_slider("Time [s]", 0.0, 1.0, 0.001, 0.0)
        with options or contextlib.nullcontext():
            self._speed = gui.add_dropdown("Speed", SPEEDS, initial_value="1x")
            self._switches = {name: gui.add_checkbox(label, True, visible=False) for name, label in LABELS.items()}
        self._play.on_click(lambda _: self.toggle())
        self._time.on_update(lambda event: self._scrubbed(event.client is not None))
        for switch in self._switches.values():
            switch.on_update(lambda _: self._show_chosen())
        self.show(replay)
        self._thread = threading.Thread(target=self._run, name="truesim player", daemon=True)
        self._thread.start()

    @property
    def frame(self) -> int:
        """Frame that is shown."""
        return int(np.clip(np.searchsorted(self.replay.time, self._time.value), 0, len(self.replay.time) - 1))

    @property
    def is_playing(self) -> bool:
        """True while the replay runs."""
        return self._playing

    def show(self, replay: Replay) -> None:
        """Show another replay from its beginning."""
        with self._lock:
            self._playing, self.on_frame = False, None
            self._label()
            for node in self.nodes.values():
                node.root.remove()
            begin, end = float(replay.time[0]), float(replay.time[-1])
            moving = end > begin
            self.replay = replay
            self.nodes = add_replay(self._server, replay, SCENE_ASPECT, self._upper if moving else 1.0)
            self._time.min, self._time.max = begin, end if moving else begin + 1.0
            self._time.value = begin
            for control in (self._play, self._time, self._speed):
                control.visible = moving
            for name, switch in self._switches.items():
                switch.visible = name in replay.poses and len(replay.poses) > 1
            self._show_chosen()

    def change(self, poses: Mapping[str, BodyPoses]) -> None:
        """Replace the poses of some robots, at the frame that is shown."""
        with self._lock:
            self.replay = dataclasses.replace(self.replay, poses={**self.replay.poses, **poses})
            self._draw()

    def toggle(self) -> None:
        """Play or pause."""
        with self._lock:
            if not self._playing and self._time.value >= self._time.max - 1e-9:
                self._time.value = self._time.min
            self._playing = not self._playing
            self._begin, self._origin = time.monotonic(), float(self._time.value)
            self._label()

    def _label(self) -> None:
        self._play.label = "Pause" if self._playing else "Play"
        self._play.icon = _icon("PLAYER_PAUSE" if self._playing else "PLAYER_PLAY")

    def _scrubbed(self, by_hand: bool) -> None:
        with self._lock:
            if by_hand:
                self._begin, self._origin = time.monotonic(), float(self._time.value)
            self._draw()

    def _draw(self) -> None:
        frame = self.frame
        with self._server.atomic():
            for name, node in self.nodes.items():
                node.move(self.replay.poses[name], frame)
            if self.on_frame is not None:
                self.on_frame(frame)
        if self._moved is not None:
            self._moved(float(self._time.value))

    def _show_chosen(self) -> None:
        for name, node in self.nodes.items():
            node.root.visible = name not in self._switches or bool(self._switches[name].value)

    def close(self) -> None:
        """End the thread, before the server stops."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(SECONDS_BETWEEN_FRAMES):
            with self._lock:
                if not self._playing:
                    continue
                factor = float(self._speed.value.removesuffix("x"))
                now = self._origin + factor * (time.monotonic() - self._begin)
                if now >= self._time.max:
                    self._time.value = self._time.max
                    self._playing = False
                    self._label()
                else:
                    self._time.value = now
                self._draw()


def _icon(name: str) -> Any:
    return getattr(viewer().Icon, name)
