"""Kinova Gen3: torque errors of the robot file and of the regression, and the picture of docs/arms.md.

`python -m experiments.arms [--out FILE]`. The fit is made on all runs but `excitation_2` and `sweep_fast_2`; errors are
relative torque errors of joints that move, in a band of 5 Hz.
"""

import sys
import time
from pathlib import Path

import numpy as np

from experiments.arms.protocol import BAND, HELD_OUT
from experiments.line_chart import Line, draw_lines
from experiments.recorded import folder, show
from truesim.files.logs import read_log
from truesim.files.robots import load
from truesim.identification.problem.build import prepare_logs
from truesim.identification.regression.errors import model_torques, torque_errors
from truesim.identification.regression.signals import band_limited
from truesim.identification.torque_regression import regress_arm

DRAWN = 1
"""Joint of the picture."""


def main() -> None:
    """Regress the torques and print a table."""
    data = folder("kinova_gen3")
    model = load(data / "robot.urdf")
    files = sorted(data.glob("*.csv"))
    train = prepare_logs(model, [read_log(f) for f in files if f.name not in HELD_OUT])
    held = prepare_logs(model, [read_log(data / name) for name in HELD_OUT])
    begin = time.process_time()
    found = regress_arm(model, train)
    seconds = time.process_time() - begin
    fitted = next(iter(found.candidates.values())).written(found.model)
    rows = []
    for log in held:
        before, after = (torque_errors(m, [log], BAND) for m in (model, fitted))
        rows += [(log.name, j, 100 * before[j].relative, 100 * after[j].relative) for j in after]
        rows.append((log.name, "mean", *(100 * np.mean([e.relative for e in x.values()]) for x in (before, after))))
    show(f"Relative torque error [%]; regression in {seconds:.2f} s of CPU", ("log", "joint", "file", "fit"), rows)
    samples = band_limited(model, held[:1], BAND)
    lines = [
        Line("measured", samples.time, samples.torque[:, DRAWN]),
        Line("robot file", samples.time, model_torques(model, samples)[:, DRAWN]),
        Line("regression", samples.time, model_torques(fitted, samples)[:, DRAWN]),
    ]
    out = Path(sys.argv[sys.argv.index("--out") + 1]) if "--out" in sys.argv else Path("arms.svg")
    draw_lines(out, "Torque of joint 2 on a run that was not fitted to", ("time [s]", "torque [N m]"), lines)


if __name__ == "__main__":
    main()
