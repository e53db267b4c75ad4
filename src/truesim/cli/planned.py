"""Plans of `truesim plan`: the optimization, and the printed result."""

from pathlib import Path

from rich.markup import escape
from rich.table import Table

from truesim.cli.console import results
from truesim.control import Plan, PlanOptions, plan
from truesim.control.task_file import read_task
from truesim.files.robots import load
from truesim.physics.contact.choose import NONE, contact_named


def plan_motion(robot: Path, task: Path, options: PlanOptions, *, contact: str | None, smoothing: float | None) -> Plan:
    """Plan of a task file.

    Args:
        robot: Robot file.
        task: Task file.
        options: Options of the optimization.
        contact: Name of the contact model; none by default.
        smoothing: Smoothing of rigid contact.
    """
    model = load(robot)
    return plan(
        read_task(task, model, contact=contact_named(model, contact or NONE, smoothing=smoothing)), options=options
    )


def print_plan_costs(found: Plan, out: Path) -> None:
    """Print the cost of each term, violated limits, designed numbers, and where the commands were written."""
    console = results()
    table = Table("term", "cost", box=None)
    for name, cost in found.costs.items():
        table.add_row(escape(name), f"{cost:.6g}")
    console.print(table)
    for name, violation in found.violations.items():
        console.print(f"The limit {escape(name)} is violated by at most {violation:.2g}.")
    for path, value in found.design.items():
        console.print(f"{escape(path)} = {value:.6g}")
    console.print(f"{found.time[-1] - found.time[0]:g} s of commands, with the motion: {escape(str(out))}")
    console.print(f"{found.message} Cost {found.cost:.6g} after {found.iterations} iterations.")
