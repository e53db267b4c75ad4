"""ALE's Breakout as pixels in, actions out, in the settings that are usually reported."""

import dataclasses
from collections.abc import Iterator

import numpy as np

from truesim.core.errors import TruesimError

MOST_FRAMES = 108_000
"""Frames after which a game ends, as in `ALE/Breakout-v5`."""
MOST_POINTS = 864
"""Points of two walls; the game has no third."""
STILL, FIRE, RIGHT, LEFT = range(4)
"""Positions in the game's minimal action set."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """How a game is presented to a player."""

    name: str
    skip: int
    """Frames for which an action is held; the player sees the last of them."""
    sticky: float
    """Probability with which the game repeats the action of the frame before, in every frame."""
    random_start: int = 0
    """Largest number of frames without action after the first ball is served."""


SETTINGS = (
    Setting("skip 4, random starts", 4, 0.0, 30),
    Setting("every frame, sticky 0.25", 1, 0.25),
    Setting("ALE/Breakout-v5", 4, 0.25),
)


class Game:
    """One game: `frame` is what the player sees."""

    def __init__(self, setting: Setting, seed: int):
        """Start a game.

        Args:
            setting: Frame skip, sticky actions and start.
            seed: Seed of the emulator and of the random start.
        """
        try:
            from ale_py import ALEInterface, LoggerMode, roms
        except ImportError as error:
            raise TruesimError("The Breakout experiment needs ale-py: pip install 'truesim[experiments]'.") from error
        ALEInterface.setLoggerMode(LoggerMode.Error)
        self.setting, self.score, self.frames = setting, 0, 0
        self._emulator = ALEInterface()
        self._emulator.setInt("random_seed", seed)
        self._emulator.setFloat("repeat_action_probability", setting.sticky)
        self._emulator.setInt("frame_skip", 1)
        self._emulator.loadROM(roms.get_rom_path("breakout"))
        self._emulator.reset_game()
        self._actions = self._emulator.getMinimalActionSet()
        if setting.random_start:
            self._advance(FIRE, 2)
            self._advance(STILL, int(np.random.default_rng(seed).integers(setting.random_start)))

    @property
    def frame(self) -> np.ndarray:
        """Present picture, 210 x 160 x 3 bytes."""
        return self._emulator.getScreenRGB()

    @property
    def over(self) -> bool:
        """True after the last ball, after the most frames, or when nothing is left."""
        return self._emulator.game_over() or self.frames >= MOST_FRAMES or self.score >= MOST_POINTS

    def act(self, action: int) -> int:
        """Hold an action for the frames of the setting; returns the points it brought."""
        return self._advance(action, self.setting.skip)

    def frames_of(self, action: int) -> Iterator[np.ndarray]:
        """The same as `act`, with the picture after every frame."""
        for _ in range(self.setting.skip):
            self._advance(action, 1)
            yield self.frame

    def _advance(self, action: int, frames: int) -> int:
        before = self.score
        for _ in range(frames):
            self.score += int(self._emulator.act(self._actions[action]))
            self.frames += 1
        return self.score - before
