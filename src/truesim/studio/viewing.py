"""`truesim view`: a robot, a log or a fit in a browser."""

import dataclasses
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from truesim.files.logs import Log
from truesim.identification.fit import Fit
from truesim.physics.model.kinds import HINGE
from truesim.physics.model.model import Model
from truesim.scenes.motions import poses_of, start_configuration
from truesim.scenes.nodes import RobotNodes, add_replay
from truesim.scenes.replay import Replay, fit_replays, log_replays, robot_replay
from truesim.scenes.viewer_library import LOOPBACK, open_server, quiet
from truesim.studio.player import SCENE_ASPECT, Player
from truesim.studio.replay_panel import ReplayPanel
from truesim.studio.signals import Signals, fit_signals, log_signals

PANEL_WIDTH = 500
"""Width of the panel of controls [px]: six stages, and parameters with their numbers, fit in a row."""
BRAND_COLOR = (0, 84, 134)
"""Color of buttons; dark enough for white text."""
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
    nodes = add_replay(server, robot_replay(model), SCENE_ASPECT)
    add_joint_sliders(server, model, nodes["recorded"])
    return Viewing(server, nodes)


def view_log(model: Model, logs: Sequence[Log], host: str = LOOPBACK, port: int | None = None) -> Viewing:
    """Show the motion of prepared logs on a timeline; arguments as those of `view_robot`."""
    server = prepare_server(model.name, host, port)
    replays = log_replays(model, logs)
    signals = {name: functools.partial(log_signals, model, log) for name, log in zip(replays, logs, strict=True)}
    return _view_motions(server, replays, signals)


def view_fit(fit: Fit, host: str = LOOPBACK, port: int | None = None) -> Viewing:
    """Show recorded, fitted and start motion of every log of a saved fit; arguments as those of `view_robot`."""
    assert fit.folder is not None, "the fit was loaded from its folder"
    server = prepare_server(f"{Path(fit.request.robot).name}: {fit.status}", host, port)
    replays = fit_replays(fit.folder)
    return _view_motions(server, replays, {key: functools.partial(fit_signals, fit.signals, key) for key in replays})


def view_replay(replay: Replay, host: str = LOOPBACK, port: int | None = None) -> Viewing:
    """Show a replay on a timeline, without signals; arguments as those of `view_robot`."""
    server = prepare_server(replay.name, host, port)
    player = Player(server, replay)
    return Viewing(server, player.nodes, player)


def prepare_server(title: str, host: str, port: int | None) -> Any:
    """A server with the panel of controls at the side."""
    server = open_server(host, port)
    server.gui.configure_theme(control_width="large", show_logo=False, show_share_button=False, brand_color=BRAND_COLOR)
    server.gui.main_panel.dock_right()
    server.gui.main_panel.set_width(PANEL_WIDTH)
    server.gui.set_panel_label(f"truesim: {title}")
    return server


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


def _view_motions(server: Any, replays: Mapping[str, Replay], signals: Mapping[str, Callable[[], Signals]]) -> Viewing:
    """Replays with their signals."""
    panel = ReplayPanel(server)
    panel.show(replays, signals)
    assert panel.player is not None, "a replay is shown"
    return Viewing(server, panel.player.nodes, panel.player)
