"""Every figure, us and peers in one run: `python -m benchmarks [--json FILE] [--page FILE]`.

Each measurement runs in a process of its own, on one core unless threads are measured, within a time limit. Ratios are
oriented so that larger is better.
"""

import argparse
import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measure import in_own_process


@dataclass(frozen=True)
class Row:
    """One comparison; `ours` and `peer` are None if that side could not be measured."""

    name: str
    ours: float | None
    peer: float | None
    peer_name: str
    unit: str
    ratio: float | None
    target: float


def _row(name: str, ours: float | None, peer: float | None, peer_name: str, target: float, unit: str = "us") -> Row:
    ratio = peer / ours if ours and peer else None
    return Row(name, ours, peer, peer_name, unit, ratio, target)


def against_engines() -> list[Row]:
    """Forward and derivative speed against MuJoCo C and Pinocchio."""
    ours = {
        name: in_own_process("benchmarks.ours", name)
        for name in ("arm", "quadruped", "humanoid", "single_rollout", "gradient", "acceleration_derivatives")
    }
    peers = {
        name: in_own_process("benchmarks.peers", name)
        for name in ("arm", "quadruped", "humanoid", "acceleration_derivatives")
    }
    us = {name: result.get("us") for name, result in ours.items()}
    them = {name: result.get("us") for name, result in peers.items()}
    forward = ours["gradient"].get("forward")
    return [
        _row("7-joint arm, step, batch 1,024", us["arm"], them["arm"], "MuJoCo C", 12),
        _row("7-joint arm, 1,000-step rollout, one instance", us["single_rollout"], them["arm"], "MuJoCo C", 3),
        _row("12-joint quadruped, step, batch 1,024", us["quadruped"], them["quadruped"], "MuJoCo C", 8),
        _row("humanoid, step, batch 1,024", us["humanoid"], them["humanoid"], "MuJoCo C", 5),
        _row("gradient of a 1,000-step rollout, a step", us["gradient"], forward, "our forward pass", 0.25),
        _row("gradient of a 1,000-step rollout, a step", us["gradient"], them["arm"], "MuJoCo C, forward", 1),
        _row(
            "acceleration and its derivatives, 7 joints",
            us["acceleration_derivatives"],
            them["acceleration_derivatives"],
            "Pinocchio",
            5,
        ),
    ]


def threads() -> Row:
    """Two threads against one."""
    result = in_own_process("benchmarks.ours", "threads", cores=2)
    return _row("100-step rollout, batch 4,096, 2 threads", result.get("2"), result.get("1"), "1 thread", 1.7, "s")


def compilation() -> list[Row]:
    """Compile times, from cold and with a warm cache; the peer is the time allowed."""
    rows = []
    limits = {"compile_step": ("step", 2.0, 0.8), "compile_gradient": ("gradient", 6.0, 3.0)}
    for name, (what, cold, warm) in limits.items():
        with tempfile.TemporaryDirectory() as folder:
            for state, limit in (("cold", cold), ("warm cache", warm)):
                result = in_own_process("benchmarks.ours", name, cache=folder)
                rows.append(_row(f"compile, 7-joint {what}, {state}", result.get("s"), limit, "allowed", 1, "s"))
    return rows


def against_mjx() -> list[Row]:
    """MJX by our kernels against MJX by XLA, and our physics against MJX."""
    rows = []
    for name in ("cube", "quadruped"):
        result = in_own_process("benchmarks.mjx", name, seconds=600)
        rows.append(_row(f"mjx.step, {name}, batch 256", result.get("us"), result.get("xla"), "MJX by XLA", 10))
    free = in_own_process("benchmarks.mjx", "quadruped_free", seconds=600)
    ours = in_own_process("benchmarks.ours", "quadruped")
    rows.append(_row("12-joint quadruped without contact", ours.get("us"), free.get("us"), "MJX", 50))
    return rows


def table(rows: list[Row]) -> Table:
    """The rows for a terminal."""
    result = Table("measurement", "ours", "peer", "", "unit", "ratio", "at least")
    for row in rows:
        numbers = ["missing" if x is None else f"{x:.3g}" for x in (row.ours, row.peer, row.ratio)]
        style = None if row.ratio is None or row.ratio >= row.target else "red"
        cells = row.name, *numbers[:2], row.peer_name, row.unit, numbers[2], f"{row.target:g}"
        result.add_row(*cells, style=style)
    return result


def page(rows: list[Row]) -> str:
    """The rows as a page of documentation."""
    lines = ["# Benchmarks", "", "Made by `make bench`; ratios above the last column are met.", ""]
    lines += ["| measurement | ours | peer | | unit | ratio | at least |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        numbers = ["missing" if x is None else f"{x:.3g}" for x in (row.ours, row.peer, row.ratio)]
        cells = [row.name, *numbers[:2], row.peer_name, row.unit, numbers[2], f"{row.target:g}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure everything and show it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    parser.add_argument("--page", type=Path, help="also write a page of documentation to this file")
    options = parser.parse_args()
    rows = [*against_engines(), threads(), *compilation(), *against_mjx()]
    Console(width=130).print(table(rows))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"rows": [asdict(row) for row in rows]}, indent=2))
    if options.page:
        options.page.write_text(page(rows))


if __name__ == "__main__":
    main()
