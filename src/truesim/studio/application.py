"""`truesim studio`: an identification in six stages, in a browser."""

import functools
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from truesim.core.errors import TruesimError
from truesim.files.logs import Log
from truesim.identification.diagnose.status import Status
from truesim.identification.fit_display import tie_of
from truesim.physics.contact.choose import CONTACT_MODELS, NONE
from truesim.scenes.nodes import add_floor
from truesim.scenes.replay import Replay, log_replays, robot_replay
from truesim.scenes.viewer_library import LOOPBACK
from truesim.studio.charts import cost_chart
from truesim.studio.data_stage import DataStage
from truesim.studio.parameter_stage import ParameterStage
from truesim.studio.player import Player
from truesim.studio.progress import PageObserver
from truesim.studio.replay_panel import ReplayPanel
from truesim.studio.results import ResultPanel
from truesim.studio.session import Session
from truesim.studio.signals import Signals, log_signals
from truesim.studio.viewing import Viewing, prepare_server
from truesim.studio.words import plain

CHART_ASPECT = 2.6
"""Width of the chart of signals relative to its height; larger leaves more of the scene free."""
ABOVE_REPLAY = 0.62
"""Part of the scene, from above, that the panel of the replay leaves free."""
REPLAY_WIDTH, REPLAY_MARGIN = 430, 15
"""Width of the panel of the replay, and its distance from the corner of the scene [px]."""
SHOWN_VALUES = 12
"""Parameters that are listed while a fit runs."""
STAGES = ("1 Robot", "2 Data", "3 Parameters", "4 Check", "5 Solve", "6 Results")


class Studio:
    """The page of a session: one tab per stage, and the robot beside them."""

    def __init__(self, host: str = LOOPBACK, port: int | None = None, out: Path | None = None):
        """Open the studio.

        Args:
            host: Address to listen on.
            port: Port to listen on; the first free one by default.
            out: Folder for the fit; a temporary one by default.
        """
        self.session, self.out = Session(), out
        self.server = prepare_server("studio", host, port)
        self.results: ResultPanel | None = None
        self.observer: PageObserver | None = None
        self._uploads = Path(tempfile.mkdtemp(prefix="truesim-studio-"))
        self._worker: threading.Thread | None = None
        self.server.scene.set_up_direction("+z")
        add_floor(self.server.scene, 1.0)
        gui = self.server.gui
        self._panel = gui.add_panel(visible=False)
        replay, options = self._panel.add_tab("Replay"), self._panel.add_tab("Speed and robots")
        self.replay = ReplayPanel(self.server, replay, options, CHART_ASPECT, ABOVE_REPLAY)
        self._panel.float(x=REPLAY_MARGIN, y=-REPLAY_MARGIN, width=REPLAY_WIDTH)
        self._message = gui.add_markdown("**Begin with a robot file.**")
        self._tabs = gui.add_tab_group()
        builders = (
            self._add_robot, self._add_data, self._add_parameters, self._add_check, self._add_solve, self._add_results,
        )  # fmt: skip
        for name, build in zip(STAGES, builders, strict=True):
            with self._tabs.add_tab(name):
                build()

    @property
    def viewing(self) -> Viewing:
        """The running page."""
        player = self.player
        return Viewing(self.server, {} if player is None else player.nodes, player)

    @property
    def player(self) -> Player | None:
        """Player of the scene, once something is shown."""
        return self.replay.player

    def tell(self, text: str) -> None:
        """Show a sentence above the stages."""
        self._message.content = text

    # Stages

    def _add_robot(self) -> None:
        gui = self.server.gui
        self._robot_path = gui.add_text("Robot file", "", hint="Path of an MJCF or URDF file on this machine")
        self._floating = gui.add_checkbox("Floating base", False, hint="A URDF robot that walks or flies")
        gui.add_button("Load robot").on_click(lambda _: self._when_idle(self.load_robot))
        upload = gui.add_upload_button("Upload a robot file", mime_type=".xml,.urdf", color="gray")
        upload.on_upload(lambda _: self._when_idle(lambda: self.load_robot(self._keep(upload.value))))
        self._robot_words = gui.add_markdown("")

    def load_robot(self, path: Path | None = None) -> None:
        """Load a robot file and show it."""
        path = path or Path(self._robot_path.value.strip()).expanduser()
        model = self.session.load_robot(path, bool(self._floating.value))
        self._robot_path.value = str(path)
        self._show({path.name: robot_replay(model, model.name)}, {})
        self.data.forget()
        self._outdate()
        self._robot_words.content = (
            f"**{model.name or path.name}**: {len(model.bodies.names)} bodies, {len(model.joints.names)} joints, "
            f"{model.nu} actuators, {len(model.sensors.declared)} sensors."
            + "".join(f"\n\n- {plain(str(finding))}" for finding in model.findings[:5])
        )
        self.parameters.offer()
        self.tell(f"{plain(path.name)} is loaded. **Next: Data.**")

    def _add_data(self) -> None:
        self.data = DataStage(self.server, self.session, self.tell, self._show_logs, self._mapping_folder)
        self.data.connect(self._when_idle, self._keep)

    def _mapping_folder(self) -> Path:
        return self.session.fit_folder(self.out).parent

    def load_logs(self, files: Sequence[Path], mapping: Path | None = None) -> None:
        """Load logs, and show the motion and the signals of the first one."""
        self.data.mapping.value = "" if mapping is None else str(mapping)
        self.data.load(files)

    def _show_logs(self, logs: Sequence[Log]) -> None:
        model = self.session.model
        assert model is not None, "logs belong to a robot"
        replays = log_replays(model, logs)
        signals = {name: functools.partial(log_signals, model, log) for name, log in zip(replays, logs, strict=True)}
        self._show(replays, signals)
        self._outdate()
        self.parameters.describe(self.session.hints())

    def _add_parameters(self) -> None:
        self.parameters = ParameterStage(self.server, self.session)

    def _add_check(self) -> None:
        self._contact = self.server.gui.add_dropdown("Contact", CONTACT_MODELS, initial_value=NONE)
        self.server.gui.add_button("Check").on_click(lambda _: self.guard(self.check))
        self._check_words = self.server.gui.add_markdown("")

    def check(self) -> None:
        """Check the choices; the fit can run afterwards."""
        self.parameters.choose()
        self.session.holdout, self.session.contact = int(self.data.holdout.value), self._contact.value
        self._run.disabled = True
        sentences = self.session.check()
        self._run.disabled = False
        self._check_words.content = (
            "".join(f"- {sentence}\n" for sentence in sentences)
            + f"\nOn the command line:\n\n```\n{self.session.command(self.out)}\n```"
        )
        self.tell("The check has passed. **Next: Solve.**")

    def _add_solve(self) -> None:
        gui = self.server.gui
        self._run = gui.add_button("Run", disabled=True)
        self._stop = gui.add_button("Stop", disabled=True, hint="Keeps the best values so far")
        self._run.on_click(lambda _: self.guard(self.run))
        self._stop.on_click(lambda _: self.observer.stop() if self.observer is not None else None)
        self._solving = gui.add_folder("Progress", visible=False)
        self._costs: Any = None
        with self._solving:
            self._progress = gui.add_markdown("")

    def run(self) -> None:
        """Start the fit in a thread of its own; a closed page does not end it."""
        self._refuse_while_running()
        self._run.disabled, self._stop.disabled = True, False
        self.observer = PageObserver(self.tell, self._iterated)
        self._worker = threading.Thread(target=lambda: self.guard(self._fit), name="truesim fit", daemon=True)
        self._worker.start()

    def wait(self, seconds: float) -> None:
        """Wait for the running fit to end."""
        if self._worker is not None:
            self._worker.join(seconds)

    def _iterated(self, observer: PageObserver) -> None:
        costs = np.maximum(observer.costs, 1e-12)
        data = (np.arange(1.0, len(costs) + 1), costs)
        self._solving.visible = True
        if self._costs is not None:
            self._costs.data = data
        elif len(costs) > 1:
            with self._solving:
                self._costs = cost_chart(self.server, data)
        values = [(tie_of(path, self.session.ties) or path, own) for path, own in observer.values.items()]
        rows = [f"| `{path}` | {start:.4g} | {now:.4g} |" for path, (start, now) in values[:SHOWN_VALUES]]
        rows += [f"| and {len(values) - SHOWN_VALUES} more | | |"] if len(values) > SHOWN_VALUES else []
        self._progress.content = "| parameter | start | now |\n|---|---|---|\n" + "\n".join(rows)

    def _fit(self) -> None:
        assert self.observer is not None, "a fit has an observer"
        try:
            fit = self.session.run(self.out, self.observer)
        except KeyboardInterrupt:
            raise TruesimError("The fit was stopped before its first iteration.") from None
        finally:
            self._run.disabled, self._stop.disabled = False, True
        assert self.results is not None, "the panel of results is there"
        self.results.show(fit, self.session.command(fit.folder))
        again = " *Run* continues it." if fit.status == Status.INTERRUPTED else ""
        self.tell(f"Status: **{fit.status}**. The fit is in `{fit.folder}`.{again} **Next: Results.**")

    def _add_results(self) -> None:
        self.results = ResultPanel(self.server, self.replay, self._show, self.guard)

    def _outdate(self) -> None:
        """Forget what was checked and fitted with other files."""
        self._run.disabled, self._check_words.content = True, ""
        self._solving.visible = False
        if self.results is not None:
            self.results.forget()

    # Helpers

    def _when_idle(self, action: Callable[[], None]) -> None:
        """Run an action that changes robot or logs, unless a fit is running."""

        def act() -> None:
            self._refuse_while_running()
            action()

        self.guard(act)

    def _refuse_while_running(self) -> None:
        if self._worker is not None and self._worker.is_alive():
            raise TruesimError("A fit is running: stop it first, or wait for its end.")

    def guard(self, action: Callable[[], None]) -> None:
        """Run an action; an error is one sentence on the page, and nothing is lost."""
        try:
            with jax.enable_x64(True):
                action()
        except TruesimError as error:
            self._warn(str(error))
        except Exception as error:
            self._warn(f"Unexpected {type(error).__name__}: {error}")

    def _warn(self, text: str) -> None:
        """Show a mistake above the stages, and over the scene where those are scrolled away."""
        self.tell(f"⚠ {plain(text)}")
        for client in self.server.get_clients().values():
            client.add_notification("This did not work", text, auto_close_seconds=10.0, color="orange")

    def _show(self, replays: Mapping[str, Replay], signals: Mapping[str, Callable[[], Signals]]) -> None:
        self.replay.show(replays, signals)
        assert self.player is not None, "a replay is shown"
        self._panel.visible = len(self.player.replay.time) > 1

    def _keep(self, upload: Any) -> Path:
        path = self._uploads / Path(upload.name).name
        path.write_bytes(upload.content)
        return path
