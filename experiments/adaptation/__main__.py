"""Adaptation methods on small benchmarks, beside references that do not adapt.

`python -m experiments.adaptation [NAMES] [--quick] [--seeds 2] [--workers ray] [--out results.json]`
"""

import argparse
import json
from pathlib import Path

from experiments.adaptation import (
    balance,
    drive,
    furuta,
    hopper,
    identify_first,
    latent,
    navigation,
    offset,
    online,
    rotation,
    strategy,
)
from experiments.adaptation.rows import Row, Setting
from experiments.recorded import show

BENCHMARKS = {
    "offset": offset.run,
    "navigation": navigation.run,
    "rotation": rotation.run,
    "balance": balance.run,
    "strategy": strategy.run,
    "drive": drive.run,
    "online": online.run,
    "latent": latent.run,
    "identify-first": identify_first.run,
    "furuta": furuta.run,
    "hopper": hopper.run,
}


def cells(row: Row) -> tuple[object, ...]:
    """Cells of a printed row."""
    required = "" if row.required is None else f"{row.required:g}"
    interval = f"[{row.low:.4g}, {row.high:.4g}]"
    return row.method, row.value, interval, required, row.episodes or "", row.seeds, f"{row.seconds:.0f}"


def main() -> None:
    """Run benchmarks and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="benchmarks to run; all by default")
    parser.add_argument("--quick", action="store_true", help="a few updates of each method, to see that all runs")
    parser.add_argument("--seeds", type=int, default=2, help="trainings of each method")
    parser.add_argument(
        "--workers", default="1", help="`ray` or the address of a Ray cluster: one seed on each processor there"
    )
    parser.add_argument("--out", type=Path, help="file for the rows as JSON")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; valid: {', '.join(BENCHMARKS)}")
    rows, setting = list[Row](), Setting(options.quick, options.seeds, options.workers)
    for name in options.names or BENCHMARKS:
        found = BENCHMARKS[name](setting)
        rows += found
        for title in dict.fromkeys(row.benchmark for row in found):
            header = ("method", "mean", "95 %", "required", "episodes", "seeds", "CPU s")
            show(title, header, [cells(row) for row in found if row.benchmark == title])
    if options.out:
        options.out.write_text(json.dumps([row._asdict() for row in rows], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
