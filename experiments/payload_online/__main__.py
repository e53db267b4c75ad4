"""A seven-joint arm picks up a load in motion; time and mass are estimated from the stream.

`python -m experiments.payload_online [--quick] [--out DIR]`. The arm is simulated by MuJoCo at 1 kHz with encoder noise
of 1 mrad; the load is 10 % of the last link's mass, held at the hand. Mass and center of mass of the last link, and
damping and Coulomb friction of all joints, are unknown.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from experiments.recorded import show
from experiments.seven_joint_arm import MASSES, STEP, played, wandering, xml
from truesim.files.robots import loads
from truesim.identification.online import Sample, Update, Watcher, WatchOptions

FREE = ("bodies/link7.mass", "bodies/link7.com", "joints/*.damping", "joints/*.frictionloss")
MASS = "bodies/link7.mass"
LOAD = 0.1 * MASSES[-1]
"""[kg]"""
PICKED = 8.0
"""Time of the pickup [s]."""
AFTER = 6.0
"""Length of the stream after the pickup [s]."""


class Outcome(NamedTuple):
    """Result of one stream."""

    updates: list[Update]
    detected: list[float]
    """Times at which changes were detected [s]."""
    found: float
    """Estimated mass of the load five seconds after pickup; NaN without a change [kg]."""
    rate: float
    """Samples per second of CPU time, after the first fit."""


def stream(commands: np.ndarray, angles: np.ndarray) -> Iterator[Sample]:
    """Rows of a log, one by one."""
    names = [*(f"qpos/j{i + 1}" for i in range(7)), *(f"ctrl/a{i + 1}" for i in range(7))]
    for k, row in enumerate(np.concatenate([angles, commands], axis=1).tolist()):
        yield {"time": k * STEP, **dict(zip(names, row, strict=True))}


def watched(seed: int, load: float = LOAD, seconds: float = PICKED + AFTER, picked: float = PICKED) -> Outcome:
    """Result of one stream; without a load nothing changes."""
    commands = wandering(seconds, seed)
    first = round(min(picked, seconds) / STEP)
    machines = [(xml(), first), (xml(load), len(commands) - first)] if load else [(xml(), len(commands))]
    watcher = Watcher(loads(xml()), FREE, watching=WatchOptions(changes=("bodies/link7.*",)))
    updates, begun, samples = [], 0.0, 0
    for sample in stream(commands, played(machines, commands, seed)):
        found = watcher.feed(sample)
        samples += bool(updates)
        if isinstance(found, Update):
            begun = begun or time.process_time()
            updates.append(found)
    rate = samples / (time.process_time() - begun)
    changes = [u.change for u in updates if u.change is not None]
    mass = np.nan
    if changes:
        before = next(k for k in changes[-1].before if k.path == MASS)
        later = next(u for u in updates if u.time > picked + 5)
        mass = float(later.parameter(MASS).value - before.value)
    return Outcome(updates, [c.detected for c in changes], mass, rate)


def picture(outcome: Outcome) -> go.Figure:
    """Mass of the last link with its interval, over time."""
    known = [(u.time, u.parameter(MASS)) for u in outcome.updates[::5]]
    time_, value, low, high = np.array([(t, k.value, k.low, k.high) for t, k in known], float).T
    figure = go.Figure()
    band = {"x": [*time_, *time_[::-1]], "y": [*high, *low[::-1]], "fill": "toself", "line": {"width": 0}}
    figure.add_scatter(**band, name="95 % interval", fillcolor="rgba(31, 119, 180, 0.25)", mode="lines")
    figure.add_scatter(x=time_, y=value, name="estimate", line={"color": "#1f77b4"})
    truth = np.where(time_ < PICKED, MASSES[-1], MASSES[-1] + LOAD)
    figure.add_scatter(x=time_, y=truth, name="truth", line={"color": "black", "dash": "dot", "shape": "hv"})
    for when in outcome.detected:
        figure.add_vline(x=when, line={"color": "#d62728"}, annotation_text="change detected")
    figure.update_layout(xaxis_title="time [s]", yaxis_title="mass of the last link [kg]", template="plotly_white")
    return figure.update_yaxes(range=[0.66, 0.82])


def main() -> None:
    """Print the tables and plot."""
    parser = argparse.ArgumentParser(prog="python -m experiments.payload_online")
    parser.add_argument("--quick", action="store_true", help="one stream with a load, a short one without")
    parser.add_argument("--out", type=Path, default=Path("payload_online"), help="folder of the plot")
    arguments = parser.parse_args()
    rows, first = [], None
    for seed in range(1 if arguments.quick else 5):
        outcome = watched(seed)
        first = first or outcome
        late = outcome.detected[0] - PICKED if outcome.detected else np.nan
        error = 100 * abs(outcome.found / LOAD - 1)
        rows.append((f"load of {LOAD:.3g} kg, seed {seed}", late, outcome.found, error, outcome.rate))
    header = ("stream", "detected after [s]", "mass after 5 s [kg]", "error [%]", "samples/s of CPU")
    show("Required: detected within 1 s, mass within 10 %, 1,000 samples per second", header, rows)
    seconds = 20.0 if arguments.quick else 120.0
    still = watched(99, load=0.0, seconds=seconds, picked=np.inf)
    show("Nothing changes", ("stream", "false alarms"), [(f"{seconds:g} s", len(still.detected))])
    assert first is not None, "there is at least one stream"
    arguments.out.mkdir(parents=True, exist_ok=True)
    picture(first).write_html(arguments.out / "payload.html")
    print(f"\nPlot: {arguments.out / 'payload.html'}")


if __name__ == "__main__":
    main()
