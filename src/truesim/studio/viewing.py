"""`truesim view`: a robot, a log or a fit in a browser."""

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from truesim.files.logs import Log
from truesim.identification.fit import Fit
from truesim.physics.model.kinds import HINGE
from truesim.physics.model.model import Model
from truesim.scenes.motions import poses_of, start_configuration
from truesim.scenes.nodes import RobotNodes, add_replay
from truesim.scenes.replay import Replay, fit_replays, log_replay, robot_replay
from truesim.scenes.viewer_library import LOOPBACK, open_server, quiet
from truesim.studio.charts import SignalChart
from truesim.studio.player import Player

PANEL_WIDTH = 440
"""Width of the panel of controls [px]: names of parameters with their numbers fit into it."""
UNLIMITED_RANGE = (-np.pi, np.pi)
"""Range of the slider of a joint without limits [rad or m]."""


@dataclasses.dataclass(frozen=True)
class Viewing:
    """A running viewer."""

    server: Any
    nodes: Mapping[str, RobotNodes]
    """Robots of a still scene, by name."""
    player: Player | None = None
    """Player of a motion."""

    @property
    def address(self) -> str:
        """Address of the page."""
        return f"http://{self.server.get_host()}:{self.server.get_port()}"

    def stop(self) -> None:
        """Stop the player and the server."""
        if self.player is not None:
            self.player.close()
        with quiet():
            self.server.stop()


def view_robot(model: Model, host: str = LOOPBACK, port: int | None = None) -> Viewing:
    """Show a robot with a slider for every joint.

    Args:
        model: The robot.
        host: Address to listen on.
        port: Port to listen on; the first free one by default.
    """
    server = prepare_server(model.name, host, port)
    nodes = add_replay(server, robot_replay(model))
    add_joint_sliders(server, model, nodes["recorded"])
    return Viewing(server, nodes)


def view_log(model: Model, logs: Sequence[Log], host: str = LOOPBACK, port: int | None = None) -> Viewing:
    """Show the motion of prepared logs on a timeline; arguments as those of `view_robot`."""
    server = prepare_server(model.name, host, port)
    by_name = {log.name: log for log in logs}
    signals = {name: _columns(log) for name, log in by_name.items()}
    player = _show_choice(server, {name: log_replay(model, log) for name, log in by_name.items()}, signals)
    return Viewing(server, player.nodes, player)


def view_fit(fit: Fit, host: str = LOOPBACK, port: int | None = None) -> Viewing:
    """Show recorded, fitted and start motion of every log of a saved fit; arguments as those of `view_robot`."""
    assert fit.folder is not None, "the fit was loaded from its folder"
    server = prepare_server(f"{Path(fit.request.robot).name}: {fit.status}", host, port)
    replays = fit_replays(fit.folder)
    player = _show_choice(server, replays, {key: signals_at(fit.signals, key) for key in replays})
    return Viewing(server, player.nodes, player)


def view_replay(replay: Replay, host: str = LOOPBACK, port: int | None = None) -> Viewing:
    """Show a replay on a timeline, without signals; arguments as those of `view_robot`."""
    server = prepare_server(replay.name, host, port)
    player = Player(server, replay)
    return Viewing(server, player.nodes, player)


Signals = tuple[np.ndarray, Sequence[str], Mapping[str, np.ndarray]]
"""Time [s], names of the channels, and values by curve."""


def prepare_server(title: str, host: str, port: int | None) -> Any:
    """A server with the panel of controls at the side."""
    server = open_server(host, port)
    server.gui.configure_theme(
        control_width="large", show_logo=False, show_share_button=False, brand_color=(0, 114, 178)
    )
    server.gui.main_panel.dock_right()
    server.gui.main_panel.set_width(PANEL_WIDTH)
    server.gui.set_panel_label(f"truesim: {title}")
    return server


def signals_at(signals: Mapping[str, np.ndarray], key: str) -> Signals:
    """Signals of one log of a fit."""
    rows = [str(row) for row in signals["rows"]]
    return signals[f"{key}/time"], rows, {name: signals[f"{key}/{name}"] for name in ("measured", "fitted", "start")}


def add_joint_sliders(server: Any, model: Model, nodes: Any) -> list[Any]:
    """A slider for every hinge and slide; moves the robot at once."""
    q, sliders, lock = start_configuration(model), [], threading.Lock()

    def move() -> None:
        with lock, server.atomic():
            nodes.move(poses_of(model, q[None]), 0)

    with server.gui.add_folder("Joints"):
        for link in model.topology.links:
            if link.joint < 0 or link.kind.nq != 1:
                continue
            limits = model.joints.range[link.joint] if model.joints.limited[link.joint] else UNLIMITED_RANGE
            low, high = float(limits[0]), float(limits[1])
            unit = "rad" if link.kind == HINGE else "m"
            value = float(np.clip(q[link.q_start], low, high))
            label = f"{model.joints.names[link.joint]} [{unit}]"
            slider = server.gui.add_slider(label, low, high, (high - low) / 1000, value)

            def changed(event: Any, at: int = link.q_start) -> None:
                q[at] = event.target.value
                move()

            slider.on_update(changed)
            sliders.append(slider)
    return sliders


def _columns(log: Log) -> Signals:
    names = [name for name in log.columns if np.isfinite(log.columns[name]).any()]
    return log.time, names, {"measured": np.stack([log.columns[name] for name in names], axis=1)}


def _show_choice(server: Any, replays: Mapping[str, Replay], signals: Mapping[str, Signals]) -> Player:
    """Player and chart, with a choice of the log."""
    first = next(iter(replays))
    choice = server.gui.add_dropdown("Log", tuple(replays), initial_value=first, visible=len(replays) > 1)
    chart: SignalChart | None = None
    player = Player(server, replays[first], lambda now: chart.mark(now) if chart is not None else None)
    chart = SignalChart(server, *signals[first])

    @choice.on_update
    def _(_: Any) -> None:
        player.show(replays[choice.value])
        chart.show(*signals[choice.value])

    return player
