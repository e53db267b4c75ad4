"""Results in the studio: estimates, the robot beside the recording, sliders, contact forces and what to try next."""

import functools
import threading
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from truesim.identification.after_fit import suggest
from truesim.identification.diagnose.messages import explain
from truesim.identification.fit import Fit
from truesim.identification.fit_display import tie_of
from truesim.report.numbers import estimate, number, unit
from truesim.scenes.replay import Replay, fit_replays
from truesim.studio.contact_forces import ContactForces, fit_contact_forces
from truesim.studio.replay_panel import ReplayPanel
from truesim.studio.session import resimulate
from truesim.studio.signals import Signals, fit_signals
from truesim.studio.words import breakable, plain

SLIDER_REACH = 3.0
"""End of a slider relative to the estimate; larger reaches farther with coarser steps."""
SHOWN_PORTS = 4
"""Suggested networks that are listed."""
NOTHING_YET = "*Run a fit first.*"
NO_BREAK = "\u00a0"
FORCE_COLOR = (200, 30, 90)
Show = Callable[[Mapping[str, Replay], Mapping[str, Callable[[], Signals]]], None]


class ResultPanel:
    """The last stage of the studio."""

    def __init__(
        self,
        server: Any,
        replay: ReplayPanel,
        show: Show,
        guard: Callable[[Callable[[], None]], None],
    ):
        """Make room for results.

        Args:
            server: Server of the page.
            replay: Panel of the motions.
            show: Shows motions with their signals in the panel.
            guard: Runs an action, and shows its error on the page.
        """
        self._server, self._replay, self._show = server, replay, show
        self._summary = server.gui.add_markdown(NOTHING_YET)
        self._folder = server.gui.add_folder("What if", visible=False)
        with self._folder:
            reset = server.gui.add_button("Back to the estimates", hint="Undo all changes of the sliders below")
            reset.on_click(lambda _: guard(self._reset))
        self._estimates: dict[str, float] = {}
        self._more = server.gui.add_folder("Look closer", visible=False)
        with self._more:
            forces = server.gui.add_button("Show contact forces", hint="Normal forces of the fitted robot, as lines")
            forces.on_click(lambda _: guard(self.show_contact_forces))
            suggestions = server.gui.add_button("Suggest networks", hint="Which term of the physics one should correct")
            suggestions.on_click(lambda _: guard(self.show_suggestions))
            self._words = server.gui.add_markdown("")
        self._lines: Any = None
        self.forces: ContactForces | None = None
        self.sliders: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._fit: Fit | None = None

    @property
    def words(self) -> str:
        """Sentences about contact forces and suggestions."""
        return str(self._words.content)

    def show(self, fit: Fit, command: str) -> None:
        """Show a fit."""
        assert fit.folder is not None, "the studio saves its fits"
        replays = fit_replays(fit.folder)
        self._forget_forces()
        self._fit = fit
        self._show(replays, {key: functools.partial(fit_signals, fit.signals, key) for key in replays})
        self._replay.chosen = self._other_log
        self._summary.content = summary(fit, command)
        self._words.content = ""
        for slider in self.sliders.values():
            slider.remove()
        self._folder.visible = self._more.visible = True
        with self._folder:
            ties = fit.request.options.problem.ties
            self.sliders = {
                e.path: self._slider(tie_of(e.path, ties) or e.path, e) for e in fit.estimates if e.value.size == 1
            }
        self._estimates = self._chosen_values()

    def forget(self) -> None:
        """Forget the fit, because another robot or other logs were loaded."""
        self._forget_forces()
        self._fit, self._replay.chosen = None, None
        self._summary.content, self._words.content = NOTHING_YET, ""
        self._folder.visible = self._more.visible = False

    def _other_log(self) -> None:
        """Simulate the log that is shown now with the values of the sliders, if they were moved."""
        self._forget_forces()
        self._words.content = ""
        if self._chosen_values() != self._estimates:
            self.changed()

    def _chosen_values(self) -> dict[str, float]:
        return {path: float(slider.value) for path, slider in self.sliders.items()}

    def _reset(self) -> None:
        """Move all sliders back to the estimates."""
        for path, slider in self.sliders.items():
            slider.value = self._estimates[path]
        self.changed()

    def show_contact_forces(self) -> None:
        """Compute the contact forces of the fitted robot, and draw those of the frame that is shown."""
        player = self._replay.player
        if self._fit is None or player is None:
            return
        self._words.content = "Computing contact forces …"
        self._forget_forces()
        try:
            self.forces = fit_contact_forces(self._fit, self._replay.key)
        except BaseException:
            self._words.content = ""
            raise
        points = self.forces.lines(0, player.replay.camera.radius)
        self._lines = self._server.scene.add_line_segments(
            "/contact forces", points, np.full(points.shape, FORCE_COLOR, np.uint8), line_width=5
        )
        player.on_frame = self._draw_forces
        self._draw_forces(player.frame)
        touching = np.linalg.norm(self.forces.force, axis=-1) > 1e-6
        self._words.content = (
            f"Contact in {100 * touching.any(axis=1).mean():.0f} % of the frames; the longest line is "
            f"{self.forces.largest:.3g} N along the normal."
        )

    def show_suggestions(self) -> None:
        """Ask where a network would explain what is left."""
        if self._fit is None:
            return
        fit = self._fit
        with jax.enable_x64(True):
            found = suggest(fit, callback=lambda step: setattr(self._words, "content", f"{step} …"))
        rows = [
            f"| `{s.port}` | {plain(', '.join(s.names))} | {100 * s.explained:.0f} % |"
            for s in found.found[:SHOWN_PORTS]
        ]
        table = "\n\n| term | acts on | explains |\n|---|---|---|\n" + "\n".join(rows) if rows else ""
        self._words.content = f"{plain(found.sentence)}{table}"

    def _draw_forces(self, frame: int) -> None:
        player = self._replay.player
        if self._lines is None or self.forces is None or player is None:
            return
        if frame < len(self.forces.position):
            self._lines.points = self.forces.lines(frame, player.replay.camera.radius)

    def _forget_forces(self) -> None:
        self.forces = None
        if self._lines is not None:
            self._lines.remove()
            self._lines = None

    def _slider(self, name: str, estimate: Any) -> Any:
        """Slider of an estimate under the name of the parameter or of its tie."""
        value, start = float(estimate.value), float(estimate.start)
        low, high = min(0.0, SLIDER_REACH * value), max(SLIDER_REACH * value, 1.2 * start, 1e-6)
        low, high, step = slider_scale(low, high)
        label = f"{name.partition('/')[2]} [{estimate.unit}]"
        slider = self._server.gui.add_slider(label, low, high, step, float(np.clip(value, low, high)), hint=name)
        slider.on_update(lambda _: self.changed())
        return slider

    def changed(self) -> None:
        """Simulate with the values of the sliders, and move the fitted robot."""
        player = self._replay.player
        if self._fit is None or player is None or not self._lock.acquire(blocking=False):
            return  # a simulation is running; it takes the last values when it ends
        try:
            done: tuple[str, dict[str, float]] | None = None
            while done != (now := (self._replay.key, self._chosen_values())):
                done = key, values = now
                poses, signals = resimulate(self._fit, key, values)
                if key != self._replay.key:
                    continue  # meanwhile another log was chosen
                player.change({"fitted": poses})
                shown = fit_signals(self._fit.signals, key)
                self._replay.show_signals(shown._replace(curves={**shown.curves, "fitted": signals[f"{key}/fitted"]}))
        finally:
            self._lock.release()


def slider_scale(low: float, high: float) -> tuple[float, float, float]:
    """Ends and step of a slider, rounded so that its numbers are short: about 1000 steps of 1, 2 or 5 times 10^n."""
    rough = (high - low) / 1000
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    digits = max(0, -int(np.floor(np.log10(step) + 1e-9)))
    ends = float(step * np.floor(low / step + 1e-9)), float(step * np.ceil(high / step - 1e-9))
    return round(ends[0], digits), round(ends[1], digits), round(float(step), digits)


def summary(fit: Fit, command: str) -> str:
    """Status, estimates, what would explain the rest, and command of a fit as Markdown."""
    rows = []
    for e in (e for e in fit.estimates if e.value.size == 1):
        value, half = float(e.value), (float(e.high) - float(e.low)) / 2
        found = f"**{estimate(value, half / 2)}**{NO_BREAK}±{NO_BREAK}{number(half, 2)}"
        name = tie_of(e.path, fit.request.options.problem.ties) or e.path
        rows.append(f"| `{breakable(name)}` | {number(float(e.start), 3)} | {found} | {unit(e.unit)} |")
    reasons = "".join(f"- {plain(explain(diagnostic))}\n" for diagnostic in fit.diagnostics)
    table = "| parameter | start | value ± 95 % | unit |\n|---|---|---|---|\n" + "\n".join(rows)
    return (
        f"### {str(fit.status).capitalize()}\n{reasons}\n{table}\n\n{score_table(fit)}"
        f"The same on the command line:\n```\n{command}\n```"
    )


def score_table(fit: Fit) -> str:
    """Fixed parameters that would explain the residual if they were free (score test); empty if it was not needed."""
    if not fit.diagnosis.alternatives:
        return ""
    rows = [
        f"| `{breakable(a.pattern)}`{' with ' + ', '.join(a.after) if a.after else ''} | {100 * a.explained:.0f} % |"
        for a in fit.diagnosis.alternatives
    ]
    head = "**Free these as well** (stage 3, *Further*), and the residual falls by:"
    return f"{head}\n\n| parameters | residual |\n|---|---|\n" + "\n".join(rows) + "\n\n"
