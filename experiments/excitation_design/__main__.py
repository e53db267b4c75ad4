"""A designed motion of a seven-joint arm compared with the best of 20 chirps, both recorded and fitted.

`python -m experiments.excitation_design [--quick] [--out DIR]`. All masses, and damping
and Coulomb friction of all joints, are unknown. Chirps have one sweep for all joints, or one for each. The machine is
simulated by MuJoCo with encoder noise of 1 mrad; each fit starts from values that are wrong by 20 %.
"""

import argparse
import os
from pathlib import Path

import mujoco
import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from experiments.excitation_design.chirps import chirp
from experiments.recorded import show
from experiments.seven_joint_arm import NOISE, xml
from truesim.files.logs import Log
from truesim.files.robots import loads
from truesim.identification import Fit, solve_problem
from truesim.identification.excitation import Design, Designer, DesignOptions, Limits
from truesim.identification.problem.build import build
from truesim.physics.model import paths

FREE = ("bodies/*.mass", "joints/*.damping", "joints/*.frictionloss")
STEP = 5e-3
"""Time between commands, and step of the machine [s]."""
SPEED = 2.0
"""Highest speed of the joints [rad/s]."""
WRONG = 1.2
"""Factor by which the start values are wrong."""


def recorded(plan: Design, seed: int = 1) -> Log:
    """Log of the machine while it follows a plan, with encoder noise."""
    model = mujoco.MjModel.from_xml_string(xml(step=STEP))
    data = mujoco.MjData(model)
    data.qpos[:] = plan.motion[0, : model.nq]
    angles = np.empty((len(plan.time), model.nq))
    for k, command in enumerate(plan.commands):
        angles[k], data.ctrl[:] = data.qpos, command
        mujoco.mj_step(model, data)
    angles += NOISE * np.random.default_rng(seed).normal(size=angles.shape)
    columns = {f"qpos/j{i + 1}": angles[:, i] for i in range(model.nq)}
    return Log(plan.time, {**columns, **{f"ctrl/a{i + 1}": plan.commands[:, i] for i in range(model.nu)}}, "played")


def fitted(log: Log) -> Fit:
    """The fit to a log, from wrong values."""
    model = loads(xml(step=STEP))
    for parameter in build(model, [log], FREE).parameters:
        model = paths.write(model, parameter.name, WRONG * parameter.start)
    return Fit.of(solve_problem(build(model, [log], FREE)))


def widths(fit: Fit) -> np.ndarray:
    """Widths of the 95 % intervals of all estimates."""
    return np.concatenate([np.ravel(e.high - e.low) for e in fit.estimates])


def designer(seconds: float, starts: int, iterations: int) -> Designer:
    """Designer for the arm with its free parameters and limits."""
    model = loads(xml(step=STEP))
    options = DesignOptions(
        seconds=seconds,
        rate=1 / STEP,
        starts=starts,
        iterations=iterations,
        noise={"qpos/*": NOISE},
        threads=os.cpu_count() or 1,
    )
    return Designer(model, FREE, Limits.of(model, speeds={"*": SPEED}), options)


def picture(plans: dict[str, Design]) -> go.Figure:
    """Plot the joint angles of all motions."""
    figure = make_subplots(rows=len(plans), cols=1, shared_xaxes=True, subplot_titles=list(plans))
    for row, plan in enumerate(plans.values(), start=1):
        for i in range(7):
            color = f"hsl({i * 50}, 60%, 45%)"
            trace = {"x": plan.time, "y": plan.motion[:, i], "line": {"color": color, "width": 1.5}}
            figure.add_scatter(**trace, name=f"j{i + 1}", legendgroup=str(i), showlegend=row == 1, row=row, col=1)
    figure.update_yaxes(title_text="angle [rad]").update_xaxes(title_text="time [s]", row=len(plans), col=1)
    return figure.update_layout(template="plotly_white", height=700)


def main() -> None:
    """Print the tables and plot the motions."""
    parser = argparse.ArgumentParser(prog="python -m experiments.excitation_design")
    parser.add_argument("--quick", action="store_true", help="shorter motions, fewer chirps, a short design")
    parser.add_argument("--out", type=Path, default=Path("excitation_design"), help="folder of the plot")
    arguments = parser.parse_args()
    quick = arguments.quick
    made = designer(seconds=2.0 if quick else 8.0, starts=1 if quick else 2, iterations=10 if quick else 200)
    seeds = range(3 if quick else 20)
    plans = {}
    for name, common in (("best chirp, one sweep", True), ("best chirp, own sweeps", False)):
        chirps = [made.plan(chirp(made, seed, common=common)) for seed in seeds]
        plans[name] = min(chirps, key=lambda plan: plan.mean_std)
    plans["designed"] = made.search()
    fits = {name: fitted(recorded(plan)) for name, plan in plans.items()}
    best = widths(fits["designed"])
    rows = []
    for name, plan in plans.items():
        wide = widths(fits[name])
        mean, times = (float(np.exp(np.mean(np.log(x)))) for x in (wide, wide / best))
        expected = plan.mean_std / plans["designed"].mean_std
        rows.append((name, 3.92 * plan.mean_std, mean, expected, times, float(plan.usage.max())))
    header = ("motion", "expected", "fitted", "over designed: expected", "fitted", "largest use of a limit")
    show("Geometric mean of the 95 % intervals", header, rows)
    names = [e.path for e in plans["designed"].expected]
    ratios = [widths(fits[name]) / best for name in list(plans)[:2]]
    parts = [(name, float(a), float(b)) for name, a, b in zip(names, *ratios, strict=True)]
    show("Intervals over designed ones, by parameter", ("parameter", "one sweep", "own sweeps"), parts)
    arguments.out.mkdir(parents=True, exist_ok=True)
    picture(plans).write_html(arguments.out / "motions.html")
    print(f"\nPlot: {arguments.out / 'motions.html'}")


if __name__ == "__main__":
    main()
