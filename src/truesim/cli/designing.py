"""Designs of `truesim design`: the optimization with progress, and the printed plan."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from truesim.cli.console import messages, results
from truesim.files.robots import load
from truesim.identification.after_fit import compared_channels, designer_for
from truesim.identification.excitation import Design, Designer, DesignOptions, Limits
from truesim.identification.excitation.fourier import FourierMotion, FourierOptions, design_fourier, file_speeds
from truesim.identification.excitation.search import STAGE_STIFFNESS
from truesim.identification.fit import Fit

REPORTED_USAGE = 0.9
"""Fraction of a limit above which it is printed; a larger value prints fewer limits."""


GivenLimits = tuple[Mapping[str, tuple[float, float]], Mapping[str, float], Mapping[str, float]]
"""Ranges by joint, speed limits by joint, and limits by actuator."""


def design_motion(
    robot: Path, free: Sequence[str], options: DesignOptions, given: GivenLimits, fit: Path | None
) -> Design:
    """The best motion within limits, with progress on standard error.

    Args:
        robot: Robot file.
        free: Patterns of the uncertain parameters.
        options: Options of the design; empty channels mean those of the fit, or all joint positions.
        given: Limits beside those of the file.
        fit: Folder of an earlier fit, whose values, intervals and noise are used.
    """
    known = load(robot) if fit is None else Fit.load(fit)
    positions, speeds, forces = given
    limits = Limits.of(
        known.model if isinstance(known, Fit) else known, positions=positions, speeds=speeds, forces=forces
    )
    options = dataclasses.replace(options, channels=tuple(options.channels) or compared_channels(known))
    return _optimize(designer_for(known, free, limits, options))


def design_periodic(robot: Path, given: GivenLimits, seconds: float, rate: float, seed: int) -> FourierMotion:
    """The best periodic motion of an arm within limits.

    Args:
        robot: Robot file.
        given: Limits beside those of the file; speed limits of a URDF are used where none is given.
        seconds: Duration [s].
        rate: Sampling rate [Hz].
        seed: Seed of the search.
    """
    model = load(robot)
    positions, speeds, forces = given
    limits = Limits.of(model, positions=positions, speeds={**file_speeds(model), **speeds}, forces=forces)
    return design_fourier(model, limits, FourierOptions(seconds=seconds, rate=rate, seed=seed))


def print_periodic(motion: FourierMotion, out: Path) -> None:
    """Print condition numbers and reversals of a periodic motion, and where it was written."""
    console = results()
    table = Table("joint", "range", "top speed", "top torque", "reversals", box=None)
    for j, (name, count) in enumerate(motion.reversals.items()):
        q, v, torque = motion.q[:, j], motion.v[:, j], motion.torque[:, j]
        shown = (f"{q.min():.2f} … {q.max():.2f}", f"{np.abs(v).max():.3g}", f"{np.abs(torque).max():.3g}", str(count))
        table.add_row(escape(name), *shown)
    console.print(table)
    once = [name for name, count in motion.reversals.items() if count < 2]
    if once:
        console.print(f"{', '.join(once)}: hardly reverses, so that friction cannot be told from gravity and offsets.")
    console.print(
        f"Condition number of the torque equations: {motion.condition:.3g}; random motions within the same limits have "
        f"{motion.typical_condition:.3g}."
    )
    console.print(f"{motion.time[-1]:g} s of positions, velocities and expected torques: {escape(str(out))}")


def _optimize(designer: Designer) -> Design:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=messages(), transient=True) as progress:
        task = progress.add_task("compiling the simulation and its derivatives", total=None)

        def callback(stage: int, cost: float) -> None:
            text = f"stage {stage + 1} of {len(STAGE_STIFFNESS)}, intervals so far x {np.exp(cost - first):.3g}"
            progress.update(task, description=text)

        first = designer.cost_at_rest()
        return designer.optimize(callback)


def print_plan(plan: Design, out: Path) -> None:
    """Print expected intervals, limits that are reached, and where the commands were written."""
    console = results()
    table = Table("parameter", "value", "95 % before", "95 % after", "unit", box=None)
    for e in plan.expected:
        table.add_row(escape(e.path), f"{e.value:.5g}", f"± {1.96 * e.before:.3g}", f"± {1.96 * e.after:.3g}", e.unit)
    console.print(table)
    usage = zip(plan.limits.names, plan.usage, strict=True)
    used = [f"{name} {100 * u:.0f} %" for name, u in usage if u > REPORTED_USAGE]
    console.print(f"Limits used by more than {100 * REPORTED_USAGE:.0f} %: {', '.join(used) or 'none'}.")
    console.print(f"The intervals become {plan.gain:.3g} times smaller on average.")
    console.print(f"{plan.time[-1]:g} s of commands, from rest to rest, with the expected motion: {escape(str(out))}")
    console.print("Collisions between bodies are not checked: simulate the motion before you play it on the robot.")
