"""Rows for a terminal, for other programs, and for the documentation."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from truesim.bench.machine import machine, versions
from truesim.bench.run import Row
from truesim.report.ratios import Ratio, ratio_chart

COLUMNS = ("measurement", "ours", "peer", "against", "ratio", "at least", "compile", "memory")
METHOD = """\
Made by `make bench` (`truesim bench` in an installed package) in one run on one machine. Every measurement is a process
of its own with a time limit, on one core and one thread unless its name says otherwise; the best of many repetitions
counts. `ratio` is the peer's time by ours, so larger is better, and `at least` is what it has to reach. Times are those
of one step of one instance; `compile` is from cold, tracing included, and `memory` is the most that the process held,
each ours / the peer's. Every process loads truesim and JAX, whoever it measures. Numbers are float64 unless a name says
otherwise, and inertial parameters are inputs of our kernels, not constants.

- **MuJoCo C** is stepped by `mujoco.rollout`, which loops in C. **Pinocchio** and **pytinydiffsim** are called from
  Python; the same call on an empty model, or as many calls that do nothing, are subtracted. **MJX** and **brax**
  (generalized coordinates) are compiled by XLA, in float32, with all arrays in XLA's memory beforehand; without contact
  MJX is run as its own benchmark does, with all of its `Data` carried from step to step.
- The wheel of pytinydiffsim has no derivatives, so only its forward step is measured.
- The humanoid is gymnasium's file with constraints off and Euler integration on both sides. The gradient is in all
  inertial parameters, the initial state and all controls of 64 instances, and its time includes the forward pass.
"""


def as_json(rows: Sequence[Row]) -> dict[str, Any]:
    """Everything measured, and on what."""
    return {"rows": [asdict(row) for row in rows], "machine": machine(), "versions": versions()}


def table(rows: Sequence[Row]) -> Table:
    """The rows for a terminal; what misses its target is red."""
    result = Table(*COLUMNS, box=None, header_style="dim", pad_edge=False)
    for row in rows:
        result.add_row(*map(escape, _cells(row)), style=None if row.met else "red")
    return result


def notes(rows: Sequence[Row]) -> list[str]:
    """Missing sides and their reasons, and how well results agree."""
    return [f"{row.name}: {row.note}." for row in rows if row.note]


def write_page(rows: Sequence[Row], path: Path) -> Path:
    """Writes the page, and beside it the picture, whose path is returned."""
    picture = path.with_suffix(".svg")
    ratios = [Ratio(row.name, _sides(row), row.ratio, row.target) for row in rows]
    picture.write_text(ratio_chart("truesim and its peers", ratios))
    path.write_text(page(rows, picture.name))
    return picture


def page(rows: Sequence[Row], picture: str) -> str:
    """The page of documentation, which shows the picture of that name."""
    lines = ["# Benchmarks", "", METHOD, f"![Ratios and their targets]({picture})", ""]
    lines += ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    lines += ["| " + " | ".join(_cells(row)) + " |" for row in rows]
    lines += ["", *(f"- {note}" for note in notes(rows))]
    installed = ", ".join(f"{name} {version or 'not installed'}" for name, version in versions().items())
    on = machine()
    lines += ["", f"Measured on {on['processor']}, {on['cores']} cores, {on['system']}, Python {on['python']}, with"]
    lines += [f"{installed}."]
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> tuple[str, ...]:
    ours, peer = (_number(value, f" {row.unit}") for value in (row.ours, row.peer))
    compilation = _pair(row.ours_compile, row.peer_compile, "s")
    memory = _pair(row.ours_memory, row.peer_memory, "MB")
    return row.name, ours, peer, row.peer_name, _number(row.ratio), f"{row.target:g}", compilation, memory


def _sides(row: Row) -> str:
    ours, peer = (_number(value, f" {row.unit}") for value in (row.ours, row.peer))
    return f"{ours}, {row.peer_name} {peer}"


def _pair(ours: float | None, peer: float | None, unit: str) -> str:
    if ours is None and peer is None:
        return ""
    return " / ".join("-" if value is None else f"{value:.3g}" for value in (ours, peer)) + f" {unit}"


def _number(value: float | None, unit: str = "") -> str:
    return "missing" if value is None else f"{value:.3g}{unit}"
