"""Balls on a table: `python -m experiments.visual_prediction [--shares 1 0.1 0.02 0] [--quick] [--out DIR]`.

Three noisy frames in, places ten frames ahead. An encoder finds the balls, truesim moves them, a decoder draws them.
Labels are known for a share of the trials; without any, restitution and friction are also learned. Writes a picture of
true and predicted frames.
"""

import argparse
from itertools import permutations
from pathlib import Path

import jax
import numpy as np
from rich.console import Console
from rich.table import Table as PrintedTable

from experiments.visual_prediction import baselines
from experiments.visual_prediction.networks import PhysicsPredictor, decode, predict_by_mlp
from experiments.visual_prediction.picture import write_strip
from experiments.visual_prediction.scene import BALLS, SEEN, Table, Trials, make_trials
from experiments.visual_prediction.training import Trained, TrainingOptions, train
from truesim.core.typing import Float

ELASTIC, UNKNOWN = Table(), Table(restitution=0.8, friction=0.03)
"""The table whose physics is known, and the one whose physics is learned."""
SHOWN = (0, 3, 6, 9)
"""Predicted frames in the picture."""
QUICK = TrainingOptions(starts=1, trial_steps=5, frame_steps=20, motion_steps=5)


def far(ahead: Float[np.ndarray, "n 10 3 2"], test: Trials) -> Float[np.ndarray, "n 3"]:
    """Distances from the true places ten frames ahead [px]."""
    return np.linalg.norm(ahead[:, -1] - test.places[:, -1], axis=-1)


def sort_balls(places: Float[np.ndarray, "n 3 3 2"], test: Trials) -> Float[np.ndarray, "n 3 3 2"]:
    """Places with the balls in the order of the labels: without labels it is arbitrary, but the same in all trials."""
    orders = [list(order) for order in permutations(range(BALLS))]
    return min(
        (places[:, :, order] for order in orders),
        key=lambda x: np.linalg.norm(x - test.places[:, :SEEN], axis=-1).sum(),
    )


class Report:
    """Rows of the printed table."""

    def __init__(self) -> None:
        self.table = PrintedTable("predictor", "labels", "encoder, px", "ten frames ahead, px", "median", "CPU s")

    def add(self, name: str, share: str, encoder: float | None, deviation: np.ndarray, seconds: float | None) -> None:
        """Add a row."""
        first = "" if encoder is None else f"{encoder:.3f}"
        cpu = "" if seconds is None else f"{seconds:.0f}"
        self.table.add_row(name, share, first, f"{deviation.mean():.2f}", f"{np.median(deviation):.2f}", cpu)

    def add_trained(
        self, name: str, share: str, trained: Trained, predict: PhysicsPredictor, test: Trials
    ) -> np.ndarray:
        """Add the row of a network with physics; returns its predictions."""
        places = sort_balls(baselines.locate_in(trained.weights, test.frames[:, :SEEN]), test)
        ahead = np.asarray(predict(trained.weights, places))
        encoder = np.linalg.norm(places - test.places[:, :SEEN], axis=-1).mean()
        self.add(name, share, float(encoder), far(ahead, test), trained.seconds)
        return ahead


def compare_known(
    shares: list[float], trials: Trials, test: Trials, options: TrainingOptions, report: Report
) -> Trained:
    """Rows of the elastic table: what needs no training, physics with several shares of labels, and networks."""
    seen, physics = test.places[:, :SEEN], PhysicsPredictor((ELASTIC.restitution, ELASTIC.friction))
    report.add("last place, from true places", "", None, far(baselines.stand_still(seen), test), None)
    report.add("constant velocity", "", None, far(baselines.keep_velocity(seen, walls=False), test), None)
    report.add("constant velocity and walls", "", None, far(baselines.keep_velocity(seen, walls=True), test), None)
    report.add("physics from true places", "", None, far(np.asarray(physics({}, seen)), test), None)
    trained = {share: train(trials, share, physics, options) for share in shares}
    for share, found in trained.items():
        report.add_trained("encoder and physics", f"{share:.0%}", found, physics, test)
    best = trained[max(trained)]
    steps = options.frame_steps
    mlp = baselines.train_mlp(trials, best.weights, 10 * steps)
    places = sort_balls(baselines.locate_in(mlp.weights, test.frames[:, :SEEN]), test)
    ahead = np.asarray(predict_by_mlp(mlp.weights, places))
    report.add("encoder and MLP", "100%", None, far(ahead, test), mlp.seconds)
    recurrent = baselines.train_recurrent(trials, best.weights, 3 * steps // 4)
    ahead = baselines.recur(recurrent.weights, test.frames[:, :SEEN])
    report.add("convolutional recurrent network", "100%", None, far(ahead, test), recurrent.seconds)
    return trained[min(trained)]


def draw_prediction(path: Path, trained: Trained, physics: PhysicsPredictor, test: Trials, trial: int) -> None:
    """Picture of a trial: the three seen frames, then true frames above predicted ones."""
    places = baselines.locate_in(trained.weights, test.frames[trial : trial + 1, :SEEN])
    ahead = np.asarray(physics(trained.weights, places))[0, SHOWN, :]
    drawn = np.asarray(decode(trained.weights, np.concatenate([places[0], ahead])))
    later = [SEEN + k for k in SHOWN]
    write_strip(path, [test.frames[trial, [*range(SEEN), *later]], drawn])


def main() -> None:
    """Train, print the table and draw."""
    parser = argparse.ArgumentParser(prog="python -m experiments.visual_prediction")
    parser.add_argument("--shares", type=float, nargs="+", default=[1.0, 0.1, 0.02, 0.0], help="shares of labels")
    parser.add_argument("--quick", action="store_true", help="few trials and steps, to see that all runs")
    parser.add_argument("--out", type=Path, default=Path("visual_prediction"), help="folder of the picture")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    options, count = (QUICK, 60) if arguments.quick else (TrainingOptions(), 1500)
    report = Report()
    test = make_trials(count // 3, 1, ELASTIC)
    found = compare_known(arguments.shares, make_trials(count, 0, ELASTIC), test, options, report)
    physics = PhysicsPredictor((ELASTIC.restitution, ELASTIC.friction))
    hits = np.abs(np.diff(test.places[:, SEEN:], n=2, axis=1)).sum((1, 2, 3))
    draw_prediction(arguments.out / "visual_prediction.png", found, physics, test, int(np.argmax(hits)))
    learned, test = PhysicsPredictor(), make_trials(count // 3, 3, UNKNOWN)
    found = train(make_trials(count, 2, UNKNOWN), 0.0, learned, options)
    report.add_trained("encoder and unknown physics", "0%", found, learned, test)
    true = PhysicsPredictor((UNKNOWN.restitution, UNKNOWN.friction))
    report.add(
        "unknown physics, true places and numbers",
        "",
        None,
        far(np.asarray(true({}, test.places[:, :SEEN])), test),
        None,
    )
    console, numbers = Console(width=120), learned.numbers(found.weights)
    console.print(report.table)
    console.print(
        f"restitution {numbers[0]:.3f} (true {UNKNOWN.restitution}), friction {numbers[1]:.4f} ({UNKNOWN.friction})"
    )


if __name__ == "__main__":
    main()
