"""A film of a game, with the predicted flight of the ball."""

from pathlib import Path

import numpy as np

from experiments.breakout.game import Game, Setting
from experiments.breakout.planning import contact_frames
from experiments.breakout.players import PlanningPlayer
from experiments.breakout.screen import read_scene

FLIGHT = (255, 255, 255)
"""Colour of predicted places."""
MILLISECONDS = 60


def write_film(path: Path, player: PlanningPlayer, setting: Setting, seed: int, begin: int, pictures: int) -> int:
    """Play, and write an animated GIF of what the player sees.

    Args:
        path: File.
        player: The player.
        setting: The game's setting.
        seed: Seed of the game.
        begin: First frame of the film.
        pictures: Number of pictures, one for each decision.
    """
    from PIL import Image

    game, before, film = Game(setting, seed), 0, []
    while not game.over and len(film) < pictures:
        action = player(read_scene(game.frame), game.frames - before)
        before = game.frames
        if game.frames >= begin:
            film.append(Image.fromarray(_with_flight(game.frame, player)).quantize(24, dither=Image.Dither.NONE))
        game.act(action)
    film[0].save(path, save_all=True, append_images=film[1:], duration=MILLISECONDS, loop=0, optimize=True)
    return game.score


def _with_flight(frame: np.ndarray, player: PlanningPlayer) -> np.ndarray:
    """The picture with the predicted places up to the landing."""
    picture = frame.copy()
    if player.flight is None:
        return picture
    at = contact_frames(player.flight)
    for x, y in player.flight[: at[0] + 1 if len(at) else 0 : 3]:
        row, column = np.clip([round(y) + 2, round(x) + 1], 0, [picture.shape[0] - 1, picture.shape[1] - 1])
        picture[row, column] = FLIGHT
    return picture
