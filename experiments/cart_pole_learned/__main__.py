"""A cart-pole is swung up by predictive control while its masses and length are learned.

`python -m experiments.cart_pole_learned [--seeds 20] [--out DIR]`. The model starts with masses and length that are
wrong by half, up or down; measurements have 1 % noise. Three controllers run from the first tick: one that refits its
model five times a second, one that never does, and one that knows the truth. Then the model is refitted only between
episodes, and reward and error of the model are drawn against episodes. Last, CartPole-v1 of gymnasium after one random
episode.
"""

import argparse
import time
from pathlib import Path

import jax
import numpy as np

from experiments.cart_pole_learned.gym import gymnasium_reward
from experiments.cart_pole_learned.scene import PATHS, PERIOD, TRUTH, Fitter, simulator, swing_up
from experiments.line_chart import Line, draw_lines
from truesim.control import PlanOptions, PredictiveController, SimulatedPlant

NOISE = 0.01 * np.array([1.0, np.pi, 3.0, 6.0])
"""1 % of typical positions and velocities."""
SECONDS, UPRIGHT_FROM, REFIT = 8.0, 6.0, 0.2
UPRIGHT = 0.3
"""Angle from upright that counts as upright [rad]."""


class Runs:
    """Controllers that are compiled once and used for all runs."""

    def __init__(self) -> None:
        self.controller = PredictiveController(
            swing_up(TRUTH), iterations=3, inputs=PATHS, options=PlanOptions(starts=8, tolerance=1e-5)
        )
        self.ticks: list[float] = []

    def run(self, values: np.ndarray, fitter: Fitter | None, seed: int, seconds: float = SECONDS) -> tuple:
        """States, commands and last model of a run, with refits if there is a fitter."""
        rng, controller = np.random.default_rng(seed), self.controller
        plant = SimulatedPlant(simulator())
        controller.replace(dict(zip(PATHS, values, strict=True)))
        controller.reset(simulator().initial_state())
        states, measured, commands = [], [], []
        for k in range(round(seconds / PERIOD)):
            q, v, now = plant.observe()
            x = np.concatenate([q, v])
            seen = x + NOISE * rng.normal(size=4)
            if fitter is not None and k and k % round(REFIT / PERIOD) == 0:
                values = fitter.fit(np.array([*measured, seen]), np.array(commands), NOISE)
                controller.replace(dict(zip(PATHS, values, strict=True)))
            begun = time.process_time()
            command = controller(seen[:2], seen[2:], now)
            self.ticks.append(time.process_time() - begun)
            plant.apply(command)
            states.append(x)
            measured.append(seen)
            commands.append(command)
        return np.array(states), np.array(measured), np.array(commands), values


def height(states: np.ndarray) -> np.ndarray:
    """Cosine of the angle from upright: the reward of a tick."""
    return -np.cos(states[:, 1])


def stays_upright(states: np.ndarray) -> bool:
    """True if the pole is upright from `UPRIGHT_FROM` on."""
    return bool(np.all(height(states)[round(UPRIGHT_FROM / PERIOD) :] > np.cos(UPRIGHT)))


def episodes(runs: Runs, wrong: np.ndarray, count: int, seconds: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    """Mean reward of each episode, and error of the model in it; the first one is random, refits follow each."""
    rng, fitter, values = np.random.default_rng(0), Fitter(wrong), wrong
    rewards, errors, all_x, all_u = [], [], [], []
    for k in range(count):
        if k == 0:
            plant, x, u = SimulatedPlant(simulator()), [], []
            for _ in range(round(seconds / PERIOD)):
                q, v, _ = plant.observe()
                x.append(np.concatenate([q, v]))
                u.append(rng.uniform(-5, 5, 1))
                plant.apply(u[-1])
            states, commands = np.array(x), np.array(u)
            measured = states + NOISE * rng.normal(size=states.shape)
        else:
            states, measured, commands, _ = runs.run(values, None, k, seconds)
        errors.append(np.abs(np.log(values / TRUTH)).max())
        rewards.append(height(states).mean())
        all_x.append(measured)
        all_u.append(commands)
        n = min(len(x) for x in all_x)
        values = fitter.fit(all_x[-1][:n], all_u[-1][: n - 1], NOISE)
    return np.array(rewards), np.array(errors)


def main() -> None:
    """Run everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="number of runs")
    parser.add_argument("--episodes", type=int, default=6, help="number of episodes")
    parser.add_argument("--out", type=Path, default=Path("docs"), help="folder of the figure")
    options = parser.parse_args()
    runs, upright = Runs(), {"learning": 0, "wrong model": 0, "true model": 0}
    for seed in range(options.seeds):
        signs = np.random.default_rng(100 + seed).choice([0.5, 1.5], 3)
        wrong = TRUTH * signs
        found = {
            "learning": runs.run(wrong, Fitter(wrong), seed),
            "wrong model": runs.run(wrong, None, seed),
            "true model": runs.run(TRUTH, None, seed),
        }
        for name, (states, *_) in found.items():
            upright[name] += stays_upright(states)
        error = np.abs(found["learning"][3] / TRUTH - 1).max()
        print(
            seed,
            signs,
            {name: stays_upright(x[0]) for name, x in found.items()},
            f"model within {error:.1%}",
            flush=True,
        )
    for name, count in upright.items():
        print(f"{name}: upright within {UPRIGHT_FROM:g} s in {count} of {options.seeds} runs")
    print(f"a tick takes {1e3 * np.median(runs.ticks):.2f} ms of CPU time (median)")
    rewards, errors = episodes(runs, TRUTH * np.array([1.5, 0.5, 1.5]), options.episodes)
    ideal = height(runs.run(TRUTH, None, 1, 3.0)[0]).mean()
    x = np.arange(len(rewards), dtype=float)
    lines = [
        Line("reward", x, rewards),
        Line("error of the model", x, errors),
        Line("true model", x, np.full(len(x), ideal)),
    ]
    draw_lines(
        options.out / "cart_pole_learned.svg",
        "Learning while controlling",
        ("episode", "mean height, log error"),
        lines,
    )
    print("rewards", np.round(rewards, 3), "errors", np.round(errors, 4), "true model", round(ideal, 3))
    print("CartPole-v1 after one random episode:", [gymnasium_reward(seed) for seed in range(5)])


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
