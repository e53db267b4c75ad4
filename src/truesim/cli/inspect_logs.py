"""Tables of `truesim inspect ROBOT LOG…`: columns, sampling, anomalies, and identifiable parameters."""

import json
import math
import sys
import textwrap
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from truesim.cli.console import titled_table
from truesim.core.grouped import grouped
from truesim.files.logs import Log, Matching, Sampling, matching, missing_samples, prepare, sampling
from truesim.files.logs.match import resembling_column
from truesim.identification.diagnose.observability import JOINT_PARAMETERS, Excitation, excitation, grade
from truesim.physics.dynamics.regressor import INERTIAL_PARAMETERS
from truesim.physics.model.columns import velocity_columns
from truesim.physics.model.model import Model
from truesim.physics.model.source import Finding

LOG_TABLE_WIDTH = 80
"""Characters in a line where the output is not a terminal."""
GRADE_SYMBOLS = {"clear": "●", "faint": "◐", "in sums": "○", "no": "·"}
GRADE_LEGEND = """● identifiable  ◐ weakly  ○ only in combinations  · not, if all others are free
mx = mass times center of mass, Ixx = inertia about the origin of the body"""
NEGLIGIBLE_JITTER = 1e-4
"""Jitter, as a fraction of the sampling period, that is shown as none; larger hides more."""
RENAME = (
    "If it is a log of this robot, --write-mapping mine.toml guesses which column is which, and --mapping mine.toml "
    "renames them."
)
MAX_COMBINATIONS = 16
"""Combinations of parameters that are listed; JSON has all."""


def print_logs(model: Model, logs: list[Log], as_json: bool) -> None:
    """Print columns, sampling and anomalies of logs, and which parameters they can identify."""
    ready = [prepare(log, model) for log in logs]
    shown = excitation(ready, model)
    if as_json:
        print(json.dumps(_finite(_as_json(model, logs, ready, shown)), indent=1))
        return
    console = Console(width=None if sys.stdout.isatty() else LOG_TABLE_WIDTH, highlight=False)
    console.print(_sampling(logs), "")
    if not _print_matches(console, model, ready):
        return
    _print_findings(console, ready)
    _print_excitation(console, model, shown)


def _sampling(logs: list[Log]) -> Table:
    table = titled_table("Sampling", "log", "samples", "length", "rate", "jitter", "gaps", "repeated", right=True)
    for log in logs:
        found = sampling(log)
        gaps = f"{len(found.gaps)} ({max(gap.duration for gap in found.gaps):.3g} s)" if found.gaps else "none"
        repeated = str(found.repeated or "none")
        steady = not found.jitter > NEGLIGIBLE_JITTER * found.period
        rate, jitter = f"{found.rate:.4g} Hz", "none" if steady else f"{1000 * found.jitter:.2g} ms"
        table.add_row(escape(log.name), str(found.samples), f"{found.duration:.4g} s", rate, jitter, gaps, repeated)
    return table


def _print_matches(console: Console, model: Model, logs: list[Log]) -> bool:
    """Print which columns belong to the robot; False if none does."""
    matches = [matching(log, model) for log in logs]
    used = {column: what for match in matches for column, what in match.used.items()}
    table = titled_table(f"{len(used)} columns belong to the robot", "column", "is", "lowest", "highest", "")
    for column, what in used.items():
        holders = [log for log in logs if column in log.columns]
        known = np.concatenate([log.columns[column][np.isfinite(log.columns[column])] for log in holders])
        ends = (f"{known.min() + 0.0:.4g}", f"{known.max() + 0.0:.4g}") if len(known) else ("", "")
        table.add_row(escape(column), escape(what), *ends, _rate_or_missing(holders, column, len(known)))
    if used:
        console.print(table, "")
    else:
        _print_wrapped(console, f"No column belongs to this robot. {RENAME}", "yellow")
    for line in _unmatched(model, logs, matches):
        _print_wrapped(console, line)
    console.print()
    return bool(used)


def _rate_or_missing(logs: list[Log], column: str, known: int) -> str:
    """Missing samples of a column, or its own rate where that is lower than the log's."""
    if missing := sum(missing_samples(log, column) for log in logs):
        return f"{100 * missing / (missing + known):.2g} % missing"
    own, rows = sampling(logs[0], [column]).rate, sampling(logs[0]).rate
    return f"{own:.4g} Hz" if own < 0.8 * rows else ""


def _unmatched(model: Model, logs: list[Log], matches: list[Matching]) -> list[str]:
    """Sentences about columns that the robot or the logs lack."""
    unused = {column: meant for match in matches for column, meant in match.unused.items()}
    derived = {column for log in logs for column in log.derived}
    anywhere = {column for match in matches for column in match.used} | derived | set(velocity_columns(model))
    absent = [column for column in matches[0].absent if column not in anywhere]
    lines = [f"'{c}' does not belong to this robot; did you mean '{meant}'?" for c, meant in unused.items() if meant]
    plain = [column for column, meant in unused.items() if not meant]
    if plain:
        guesses = {column: resembling_column(column, absent) for column in plain}
        told = [f"{column} (perhaps {guesses[column]}?)" if guesses[column] else column for column in plain]
        lines.append(f"Columns that do not belong to this robot: {_some(told)}.")
    if any(column.startswith("effort/") for column in plain):
        lines.append("Torques in effort/ can drive the robot: map ctrl/<actuator> to them in a mapping file.")
    if derived:
        lines.append(f"Computed from other columns: {_some(sorted(derived))}.")
    if absent:
        lines.append(f"Quantities of this robot that are not recorded: {_some(absent)}.")
    return lines


def _print_findings(console: Console, logs: list[Log]) -> None:
    many = len(logs) > 1
    found = [(log, finding) for log in logs for finding in log.findings]
    for severity, mark, style in (("warning", "!", "yellow"), ("note", "•", None)):
        chosen = [(log, finding) for log, finding in found if finding.severity == severity]
        lines = [(f"{log.name + ': ' if many else ''}{f.subject}", f.message) for log, f in chosen]
        for line in grouped(lines):
            _print_wrapped(console, f"{mark} {line}", style)
    console.print("No anomalies.\n" if not found else "")


def _print_excitation(console: Console, model: Model, shown: Excitation) -> None:
    console.print(_joint_table(model, shown), "")
    if shown.alone:
        console.print(_body_table(model, shown))
        console.print(GRADE_LEGEND, style="dim")
        console.print(f"\nIdentifies {shown.rank} of the {len(shown.base)} combinations that any motion can identify.")
        _print_combinations(console, shown)
    for remark in shown.remarks:
        console.print(escape(remark))


def _joint_table(model: Model, shown: Excitation) -> Table:
    grades = JOINT_PARAMETERS if shown.alone else ()
    table = titled_table("Motion of the joints", "joint", "travel", "top speed", "forward", *grades)
    for joint in shown.joints:
        known = math.isfinite(joint.travel)
        travel = f"{joint.travel:.3g} {joint.unit}" if known else "not recorded"
        speed = f"{joint.speed:.3g} {joint.unit}/s" if known else ""
        forward = f"{100 * joint.forward:.0f} %" if known and math.isfinite(joint.forward) else ""
        cells = [_grade(shown, f"{joint.name}.{p}") for p in grades]
        table.add_row(escape(joint.name), travel, speed, forward, *cells)
    return table


def _body_table(model: Model, shown: Excitation) -> Table:
    table = titled_table("Identifiable parameters of the bodies", "body", "mass", *INERTIAL_PARAMETERS[1:])
    for body in model.bodies.names:
        grades = (_grade(shown, f"{body}.{parameter}", symbol=True) for parameter in INERTIAL_PARAMETERS)
        table.add_row(escape(body), *grades)
    return table


def _grade(shown: Excitation, name: str, symbol: bool = False) -> str:
    names = [name] if name in shown.alone else [n for n in shown.alone if n.startswith(name.rsplit(".", 1)[0] + "/")]
    grades = [grade(shown.alone[n], shown.together[n]) for n in names if n.endswith(name.rsplit(".", 1)[1])]
    best = min(grades, key=list(GRADE_SYMBOLS).index, default="no")
    return GRADE_SYMBOLS[best] if symbol else best


def _print_combinations(console: Console, shown: Excitation) -> None:
    """Print combinations that can be identified, and those that cannot."""
    for heading, chosen in (
        ("Only in combination:", [b for b in shown.base if " " in b.combination and grade(b.share, 1) != "in sums"]),
        ("Not identifiable from these motions:", [b for b in shown.base if grade(b.share, 1) == "in sums"]),
    ):
        if chosen:
            console.print(heading)
        for parameter in chosen[:MAX_COMBINATIONS]:
            _print_wrapped(console, f"  {parameter.combination}")
        if len(chosen) > MAX_COMBINATIONS:
            console.print(f"  … and {len(chosen) - MAX_COMBINATIONS} more; --json lists all")


def _print_wrapped(console: Console, text: str, style: str | None = None) -> None:
    """Print an item, with its further lines indented."""
    lines = textwrap.wrap(text, console.width, subsequent_indent="    ", break_on_hyphens=False)
    console.print(escape("\n".join(lines)), style=style)


def _some(names: list[str], count: int = 8) -> str:
    return ", ".join(names[:count]) + (f" … ({len(names)} in all)" if len(names) > count else "")


def _as_json(model: Model, logs: list[Log], ready: list[Log], shown: Excitation) -> dict[str, Any]:
    return {
        "robot": model.name,
        "logs": [_log_json(model, *pair) for pair in zip(logs, ready, strict=True)],
        "joints": [vars(joint) for joint in shown.joints],
        "parameters": {
            name: {"shows": grade(alone, shown.together[name]), "alone": alone, "together": shown.together[name]}
            for name, alone in shown.alone.items()
        },
        "combinations": [vars(parameter) for parameter in shown.base],
        "rank": shown.rank,
        "remarks": list(shown.remarks),
    }


def _log_json(model: Model, log: Log, ready: Log) -> dict[str, Any]:
    match = matching(log, model)
    return {
        "name": log.name,
        "sampling": _sampling_json(sampling(log)),
        "used": match.used,
        "unused": match.unused,
        "absent": list(match.absent),
        "derived": sorted(ready.derived),
        "findings": [_finding_json(finding) for finding in ready.findings],
    }


def _sampling_json(found: Sampling) -> dict[str, Any]:
    gaps = [{"start": gap.start, "end": gap.end} for gap in found.gaps]
    return vars(found) | {"rate": found.rate, "duration": found.duration, "gaps": gaps}


def _finding_json(finding: Finding) -> dict[str, str]:
    return {"severity": finding.severity, "subject": finding.subject, "message": finding.message}


def _finite(value: Any) -> Any:
    """The value with None for numbers that are not finite, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
