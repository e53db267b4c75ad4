"""Tables of a fit: estimates, networks, errors and status."""

import collections
from pathlib import Path

import numpy as np
from rich.markup import escape
from rich.table import Table

from truesim.cli.console import print_page, results
from truesim.identification.diagnose.diagnosis import Part
from truesim.identification.diagnose.estimates import Flag
from truesim.identification.diagnose.evaluation import Errors
from truesim.identification.diagnose.messages import explain
from truesim.identification.diagnose.status import Code
from truesim.identification.fit import Fit
from truesim.identification.fit_display import ESTIMATE_HEADINGS, noted_rows
from truesim.identification.regression.errors import BAND, TorqueError
from truesim.physics.blueprint import Trained

MAX_OF_A_KIND = 3
"""Diagnostics of one kind that are printed; the report has all."""
ERROR_HEADINGS = {
    Part.TRAIN_START: "logs of the fit: start",
    Part.TRAIN: "logs of the fit: fitted",
    Part.HELD_OUT_START: "held-out logs: start",
    Part.HELD_OUT: "held-out logs: fitted",
}
"""Headings of the parts of `fit.errors`."""


def print_fit(fit: Fit, out: Path, page: Path) -> None:
    """Print estimates, networks, errors and status of a fit.

    Args:
        fit: The fit.
        out: Its folder.
        page: Its report.
    """
    console = results(120)
    estimates = estimate_table(fit)
    if estimates.row_count:
        console.print(estimates)
    if fit.networks is not None:
        console.print(network_table(fit.networks))
    console.print(fit_error_table(fit))
    if fit.torque_errors:
        console.print(fit_torque_table(fit))
    console.print(f"Status: [bold]{fit.status}[/].")
    for sentence in diagnostic_lines(fit):
        console.print(f"  {escape(sentence)}")
    print_page(console, out, page)


def diagnostic_lines(fit: Fit) -> list[str]:
    """Sentences of the diagnostics, a few of each kind; then what to do about a residual that can be explained."""
    lines = []
    counts = collections.Counter(d.code for d in fit.diagnostics)
    for code in counts:
        own = [explain(d) for d in fit.diagnostics if d.code is code]
        lines += own[:MAX_OF_A_KIND]
        if len(own) > MAX_OF_A_KIND:
            lines.append(f"… and {len(own) - MAX_OF_A_KIND} more with {code}; the report lists all.")
    freed = [d.subjects[0] for d in fit.diagnostics if d.code in (Code.FIXED_PARAMETER, Code.CONTRADICTED)]
    if freed:
        patterns = " ".join(f"'{pattern}'" for pattern in (*fit.request.free, *freed))
        lines.append(f"Next: the same command with --free {patterns}.")
    flags = {f.kind for e in fit.estimates for f in e.flags}
    if Flag.WIDENED in flags:
        lines.append(
            "Intervals reach the values that the parameters take with those freed; they hold for no other cause."
        )
    elif Flag.MISFIT in flags:
        lines.append("Do not use the values yet: the intervals count what is missing in the model as noise.")
    return lines


def estimate_table(fit: Fit) -> Table:
    """Start, value and interval of every number that was estimated."""
    rows, common = noted_rows(fit)
    has_notes = any(row[-1] for row in rows)
    table = Table(
        *ESTIMATE_HEADINGS, *([""] if has_notes else []), box=None, caption=escape(common), caption_justify="left"
    )
    for row in rows:
        table.add_row(*map(escape, row if has_notes else row[:-1]))
    return table


def network_table(networks: Trained) -> Table:
    """Port, inputs and weights of every network."""
    table = Table("network", "acts on", "reads", "weights", "largest", box=None)
    for rule in networks.rules:
        weights = networks.weights[rule.name]
        reads = ", ".join(rule.inputs) or "nothing"
        table.add_row(escape(rule.name), rule.output, reads, str(weights.size), f"{np.abs(weights).max():.4g}")
    return table


def fit_error_table(fit: Fit) -> Table:
    """Open-loop errors before and after the fit."""
    parts = [part for part in ERROR_HEADINGS if part in fit.errors]
    window = fit.request.options.diagnose.error_window
    title = f"Median open-loop error over {window:g} s"
    table = Table("channel", *(ERROR_HEADINGS[part] for part in parts), title=title, title_justify="left", box=None)
    for row in fit.errors[Part.TRAIN]:
        cells = [fit.errors[part].get(row) for part in parts]
        table.add_row(escape(row), *("" if cell is None else f"{cell.median:.4g}" for cell in cells))
    return table


def fit_torque_table(fit: Fit) -> Table:
    """Relative torque errors before and after the fit."""
    parts = [part for part in ERROR_HEADINGS if part in fit.torque_errors]
    title = f"Relative torque error while a joint moves, positions and torques below {BAND:g} Hz"
    table = Table("joint", *(ERROR_HEADINGS[part] for part in parts), title=title, title_justify="left", box=None)
    for joint in fit.torque_errors[parts[0]]:
        cells = [fit.torque_errors[part].get(joint) for part in parts]
        table.add_row(escape(joint), *("" if cell is None else f"{100 * cell.relative:.1f} %" for cell in cells))
    means = [np.mean([e.relative for e in fit.torque_errors[part].values()]) for part in parts]
    table.add_row("mean", *(f"{100 * mean:.1f} %" for mean in means))
    return table


def print_torque_errors(found: dict[str, TorqueError], band: float) -> None:
    """Print relative torque errors.

    Args:
        found: Errors by joint.
        band: Band of positions and torques [Hz].
    """
    title = f"Torque error while a joint moves, positions and torques below {band:g} Hz"
    table = Table("joint", "relative", "rms", "samples", box=None, title=title, title_justify="left")
    for joint, e in found.items():
        table.add_row(escape(joint), f"{100 * e.relative:.1f} %", f"{e.rms:.3g}", str(e.samples))
    table.add_row("mean", f"{100 * np.mean([e.relative for e in found.values()]):.1f} %")
    results().print(table)


def print_errors(found: dict[str, Errors], window: float) -> None:
    """Print open-loop errors over windows.

    Args:
        found: Errors by channel.
        window: Length of the windows [s].
    """
    table = Table("channel", "median", "rmse", "windows", box=None, title=f"Open-loop error over {window:g} s")
    for row, e in found.items():
        table.add_row(escape(row), f"{e.median:.4g}", f"{e.rmse:.4g}", str(e.windows))
    results().print(table)
