"""`truesim design`: the motion that tells most about what is uncertain."""

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from truesim.cli import design_options as given
from truesim.cli.arguments import Robot
from truesim.cli.fit_options import Channel, Free, Seed
from truesim.cli.pairs import named_numbers, pairs
from truesim.core.errors import TruesimError
from truesim.data import write_log
from truesim.formats import load
from truesim.identify.design import Choices, Designer, Limits, Plan
from truesim.identify.design.prior import fitted_information, fitted_noise, fitted_values
from truesim.identify.design.search import STIFFNESS
from truesim.identify.folder import read_fit

FULL = 0.9
"""Limits of which more is used are named."""


def design(
    robot: Robot,
    free: Free,
    seconds: given.Duration,
    out: given.Out = Path("excitation.csv"),
    speed: given.Speed = None,
    force_limit: given.Torque = None,
    position: given.Range = None,
    noise: given.Noise = None,
    channel: Channel = None,
    fit: given.FitFolder = None,
    rate: given.Rate = 200.0,
    criterion: given.Criterion = "intervals",
    starts: given.Starts = 2,
    iterations: given.Iterations = 60,
    seed: Seed = 0,
    force: given.Force = False,
) -> None:
    """Find the motion of ROBOT that tells most about what is uncertain, within its limits, and write its commands.

    Limits come from the robot file and from the options, whichever are tighter. Play the file with `truesim simulate
    --controls` or on the robot, then identify from what was recorded. Bodies are not kept from touching each other.
    """
    if out.exists() and not force:
        raise TruesimError(f"{out} exists already; choose another --out, or --force to write over it.")
    if not out.resolve().parent.is_dir():
        raise TruesimError(f"There is no folder {out.parent} to write {out.name} into.")
    model, known = load(robot), None if fit is None else read_fit(fit)
    readings = {} if known is None else fitted_noise(known)
    choices = Choices(
        seconds=seconds,
        rate=rate,
        noise={**readings, **named_numbers(noise, "CHANNEL=VALUE")},
        channels=tuple(channel or _channels(readings)),
        criterion=criterion,
        starts=starts,
        iterations=iterations,
        seed=seed,
    )
    limits = Limits.of(
        model,
        positions=pairs(position, "LOW:HIGH"),
        speeds=named_numbers(speed, "JOINT=VALUE"),
        forces=named_numbers(force_limit, "ACTUATOR=VALUE"),
    )
    if known is not None:
        model = fitted_values(model, known)
    designer = Designer(model, free or (), limits, choices)
    if known is not None:
        designer = designer.knowing(fitted_information(designer.parameters, known))
    plan = _searched(designer)
    write_log(out, plan.columns())
    _report(plan, out)


def _channels(readings: dict[str, float]) -> tuple[str, ...]:
    """What the fit compared, or all joint positions."""
    return tuple(readings) or ("qpos/*",)


def _searched(designer: Designer) -> Plan:
    """The best plan, with progress on standard error."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("compiling the simulation and its derivatives", total=None)

        def seen(stage: int, cost: float) -> None:
            text = f"stage {stage + 1} of {len(STIFFNESS)}, intervals so far x {np.exp(cost - first):.3g}"
            progress.update(task, description=text)

        first = designer.cost_at_rest()
        return designer.search(seen)


def _report(plan: Plan, out: Path) -> None:
    console = Console(highlight=False, soft_wrap=True)
    table = Table("parameter", "value", "95 % before", "95 % after", "unit", box=None)
    for e in plan.expected:
        table.add_row(escape(e.path), f"{e.value:.5g}", f"± {1.96 * e.before:.3g}", f"± {1.96 * e.after:.3g}", e.unit)
    console.print(table)
    used = [f"{name} {100 * u:.0f} %" for name, u in zip(plan.limits.names, plan.usage, strict=True) if u > FULL]
    console.print(f"Limits that are used by more than {100 * FULL:.0f} %: {', '.join(used) or 'none'}.")
    console.print(f"Intervals before and after: {plan.gain:.3g} times smaller in the mean.")
    console.print(f"{plan.time[-1]:g} s of commands, from rest to rest, and the motion to expect: {escape(str(out))}")
    console.print("Bodies that could touch were not looked at: watch the motion in simulation before you play it.")
