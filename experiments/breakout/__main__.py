"""Breakout from pixels by planning with physics that 1,000 random frames have taught.

`python -m experiments.breakout [--games 20] [--setting NAME ...] [--film FILE.gif]`, with `pip install
'truesim[experiments]'`. Prints what was learned, then the scores of several players in three settings of ALE's game.
Games of the table have seeds from 2000 on; settings of the player were chosen on seeds 1000 to 1003.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from experiments.breakout.film import write_film
from experiments.breakout.game import MOST_FRAMES, SETTINGS, Setting
from experiments.breakout.learning import learn, random_play, segments
from experiments.breakout.paddle import open_loop_error
from experiments.breakout.physics import Flights
from experiments.breakout.players import AbstractPlayer, Learned, PlanningPlayer, RandomPlayer, SimplePlayer, play
from truesim.core.errors import unknown_name

TRAINING_SEED, TEST_SEED, FIRST_GAME = 0, 1, 2000
PUBLISHED = "published: random 1.7, human 31.8, DQN 401 (skip 4, no sticky actions)"


def makers(learned: Learned, flights: Flights, setting: Setting) -> dict[str, Callable[[int], AbstractPlayer]]:
    """Players by name, from a seed."""
    return {
        "random": RandomPlayer,
        "follow": lambda seed: SimplePlayer(),
        "intercept": lambda seed: SimplePlayer(flights),
        "constant": lambda seed: PlanningPlayer(learned.constant, learned.ball, flights, setting, seed),
        "plan": lambda seed: PlanningPlayer(learned.paddle, learned.ball, flights, setting, seed),
    }


def scores(make: Callable[[int], AbstractPlayer], setting: Setting, seeds: range, most_frames: int) -> np.ndarray:
    """Scores of some games, printed one by one."""
    found = []
    for seed in seeds:
        found.append(play(make(seed), setting, seed, most_frames).score)
        print(found[-1], end=" ", flush=True)
    return np.array(found)


def main() -> None:
    """Learn, play and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=20, help="games of each player in each setting")
    parser.add_argument("--first-seed", type=int, default=FIRST_GAME, help="seed of the first game")
    parser.add_argument("--frames", type=int, default=MOST_FRAMES, help="frames after which a game is stopped")
    parser.add_argument("--setting", action="append", help="part of a setting's name; all by default")
    parser.add_argument("--player", action="append", help="random, follow, intercept, constant or plan; all by default")
    parser.add_argument("--film", type=Path, help="animated GIF of a part of a game")
    options = parser.parse_args()
    learned = learn(random_play(TRAINING_SEED))
    test = segments(random_play(TEST_SEED, 3000))
    print(learned.paddle, learned.ball, sep="\n")
    for name, model in (("learned paddle", learned.paddle), ("constant velocity", learned.constant)):
        print(f"{name}: {open_loop_error(model, test):.2f} px RMS, 60 and more frames ahead in 3,000 other frames")
    flights = Flights(learned.ball)
    if options.film is not None:
        player = PlanningPlayer(learned.paddle, learned.ball, flights, SETTINGS[0], FIRST_GAME)
        score = write_film(options.film, player, SETTINGS[0], FIRST_GAME, begin=3200, pictures=220)
        print(f"{options.film}: {score} points so far")
        return
    wanted = options.setting or [setting.name for setting in SETTINGS]
    for setting in (s for s in SETTINGS if any(part in s.name for part in wanted)):
        players = makers(learned, flights, setting)
        for name in options.player or players:
            if name not in players:
                raise unknown_name("player", name, tuple(players))
            begun = time.process_time()
            seeds = range(options.first_seed, options.first_seed + options.games)
            found = scores(players[name], setting, seeds, options.frames)
            seconds = time.process_time() - begun
            spread = f"{found.min()} to {found.max()}, median {np.median(found):.0f}"
            print(f"\n{setting.name} | {name} | mean {found.mean():.1f} | {spread} | {seconds:.0f} CPU s", flush=True)
    print(PUBLISHED)


if __name__ == "__main__":
    main()
