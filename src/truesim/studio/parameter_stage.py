"""The stage of the parameters: which kinds are identified, with a hint of what the logs show of them."""

from collections.abc import Mapping
from typing import Any

from truesim.identification.presets import PRESETS
from truesim.studio.session import Session
from truesim.studio.words import breakable

KEEP, EACH, COMMON = "as in the file", "one value each", "one value for all"
CHOICES = (KEEP, EACH, COMMON)
"""What happens to the parameters of a pattern."""
NO_PRESET = "none"


class ParameterStage:
    """A choice for every kind of parameter that the robot has."""

    def __init__(self, server: Any, session: Session):
        """Make the controls.

        Args:
            server: Server of the page.
            session: State of the studio.
        """
        self._gui, self._session = server.gui, session
        self.choices: dict[str, Any] = {}
        """Control of each pattern."""
        self._preset = self._gui.add_dropdown(
            "Preset", (NO_PRESET, *PRESETS), hint="What is usually unknown in such a robot"
        )
        self._folder = self._gui.add_folder("Parameters to identify")
        self._words = self._gui.add_markdown("")
        self.further = self._gui.add_text(
            "Further", "", hint="Paths or patterns with spaces between, as joints/elbow.damping"
        )

    def offer(self) -> None:
        """Offer the parameters of another robot."""
        for choice in self.choices.values():
            choice.remove()
        with self._folder:
            self.choices = {
                pattern: self._gui.add_dropdown(pattern.rpartition(".")[2], CHOICES, hint=f"{pattern}: {words}")
                for pattern, words in self._session.offered()
            }
        self.describe({})

    def describe(self, hints: Mapping[str, str]) -> None:
        """Describe the offered parameters, and what the logs show of them."""
        rows = [f"| `{breakable(name)}` | {words} | {hints.get(name, '')} |" for name, words in self._session.offered()]
        self._words.content = "| parameters | what | in the logs |\n|---|---|---|\n" + "\n".join(rows)

    def choose(self) -> None:
        """Give the choices to the session."""
        chosen = {how: [name for name, box in self.choices.items() if box.value == how] for how in CHOICES}
        self._session.free = (*chosen[EACH], *self.further.value.split())
        self._session.ties = tuple(chosen[COMMON])
        self._session.preset = None if self._preset.value == NO_PRESET else self._preset.value
