"""Results as a terminal table, as JSON and as a page of the documentation."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from benchmarks.machine import machine, versions
from benchmarks.ratios import Ratio, ratio_chart
from benchmarks.run import Row

COLUMNS = ("measurement", "ours", "peer", "against", "ratio", "at least", "compile", "memory")
METHOD = """\
Written by `make bench` (`python -m benchmarks --page docs/benchmarks.md`) in one run on one machine. Every measurement
runs in its own process with a time limit, on one core and one thread unless its name says otherwise, and is the best of
many repetitions. `ratio` is the peer's time divided by ours, so larger is better; `at least` is its target. Times are
per step and batch element. `compile` is the compile time without a cache, tracing included, and `memory` is the peak
memory of the process, each as ours / the peer's. Every process loads truesim and JAX, also for peers. Numbers are
float64 unless a name says otherwise, and inertial parameters are inputs of our kernels, not constants.

- **MuJoCo C** is stepped by `mujoco.rollout`, which loops in C. **Pinocchio** and **pytinydiffsim** are called from
  Python; the time of the same call on an empty model, or of as many empty calls, is subtracted. **MJX** and **brax**
  (generalized coordinates) are compiled by XLA in float32, with all arrays on the device beforehand; without contact,
  MJX carries all of its `Data` from step to step, as in its own benchmark.
- The wheel of pytinydiffsim has no derivatives, so only its forward step is measured.
- `truesim` commands are measured as a user waits for them: CPU time of whole processes, start and end included, the
  median of five. `cold` has an empty kernel cache. **mujoco.sysid** solves the same case in a process of its own.
- The humanoid is gymnasium's file without constraints and with Euler integration on both sides. The gradient is with
  respect to all inertial parameters, initial states and controls of a batch of 64, and includes the forward pass.
"""


def as_json(rows: Sequence[Row]) -> dict[str, Any]:
    """All results, with machine and versions."""
    return {"rows": [asdict(row) for row in rows], "machine": machine(), "versions": versions()}


def table(rows: Sequence[Row]) -> Table:
    """Rows for a terminal; those that miss their target are red."""
    result = Table(*COLUMNS, box=None, header_style="dim", pad_edge=False)
    for row in rows:
        result.add_row(*map(escape, _cells(row)), style=None if row.met else "red")
    return result


def notes(rows: Sequence[Row]) -> list[str]:
    """Reasons for missing results, and agreement of results."""
    return [f"{row.name}: {row.note}." for row in rows if row.note]


def write_page(rows: Sequence[Row], path: Path) -> Path:
    """Write the page and its chart; returns the path of the chart."""
    chart = path.with_suffix(".svg")
    ratios = [Ratio(row.name, _sides(row), row.ratio, row.target) for row in rows]
    chart.write_text(ratio_chart("truesim and its peers", ratios))
    path.write_text(page(rows, chart.name))
    return chart


def page(rows: Sequence[Row], chart: str) -> str:
    """The page of the documentation, with the chart of the given file name."""
    lines = ["# Benchmarks", "", METHOD, f"![Ratios and their targets]({chart})", ""]
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
