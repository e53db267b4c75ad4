"""`truesim plan`: the motion that minimizes the costs of a task."""

from pathlib import Path
from typing import Annotated

import typer

from truesim.cli import lazy
from truesim.cli.arguments import Contact, ReplaceFile, Robot, Seed, Smoothing, Threads
from truesim.cli.outputs import check_file

TaskFile = Annotated[
    Path,
    typer.Argument(help="Costs, limits and horizon of the motion (TOML).", metavar="TASK", show_default=False),
]
OutputPlan = Annotated[Path, typer.Option("--out", help="File for the commands and the motion (CSV).", metavar="FILE")]
Starts = Annotated[int, typer.Option("--starts", help="Number of initial guesses; the best plan is kept.")]
Iterations = Annotated[int, typer.Option("--iterations", help="Maximum number of iterations.")]

Tighten = Annotated[
    list[float] | None,
    typer.Option(
        "--tighten",
        help="Smoothing of rigid contact in the derivatives, stage by stage, such as 0.1 0.01 0.001.",
        metavar="NUMBER…",
        show_default=False,
    ),
]


def plan(
    robot: Robot,
    task: TaskFile,
    out: OutputPlan = Path("plan.csv"),
    starts: Starts = 1,
    iterations: Iterations = 300,
    contact: Contact = None,
    smoothing: Smoothing = None,
    tighten: Tighten = None,
    seed: Seed = 0,
    threads: Threads = 1,
    force: ReplaceFile = False,
) -> None:
    """Plan the motion of ROBOT that minimizes the costs of TASK within its limits, and write its commands.

    Play the file with `truesim simulate --controls`. A plan that has not converged is written too; the last line says
    so. docs/control.md describes the keys of TASK.
    """
    check_file(out, force)
    options = lazy.control.PlanOptions(
        starts=starts, iterations=iterations, seed=seed, threads=threads, smoothing=tuple(tighten or ())
    )
    found = lazy.planned.plan_motion(robot, task, options, contact=contact, smoothing=smoothing)
    lazy.logs.write_log(out, found.columns())
    lazy.planned.print_plan_costs(found, out)
