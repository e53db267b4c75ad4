"""`truesim calibrate`: coverage of the intervals of a fit, on simulated logs."""

from typing import Annotated

import typer

from truesim.cli import lazy
from truesim.cli.arguments import FitFolder, OutputFolder, Seed, Threads
from truesim.cli.outputs import check_folder
from truesim.core.errors import TruesimError, unknown_name

CALIBRATED_KIND_NAMES = ("laplace", "mixture")
REPEATS_FILE = "repeats.jsonl"


def calibrate(
    fit: FitFolder,
    out: OutputFolder,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind", help="laplace, mixture, or both; by default laplace.", metavar="KIND…", show_default=False
        ),
    ] = None,
    count: Annotated[int, typer.Option("--repeats", help="Number of simulated fits.")] = 100,
    level: Annotated[float, typer.Option("--level", help="Probability of regions and intervals.")] = 0.95,
    seed: Seed = 0,
    threads: Threads = 1,
    force: Annotated[
        bool, typer.Option("--force", help="Start again, and write into a folder that is not empty.")
    ] = False,
) -> None:
    """Repeat a fit on simulated logs with known parameters and count how often its intervals contain them.

    True parameters are drawn from the posterior of the fit; commands, time stamps and noise are those of its logs.
    Finished repeats are kept in DIR/repeats.jsonl: the same command continues after the last one.
    """
    kinds = tuple(dict.fromkeys(kind or ["laplace"]))
    for name in kinds:
        if name not in CALIBRATED_KIND_NAMES:
            raise unknown_name("posterior", name, CALIBRATED_KIND_NAMES)
    if count < 2:
        raise TruesimError(f"--repeats is {count}; give at least 2.")
    if not 0 < level < 1:
        raise TruesimError(f"--level is {level:g}; it must lie between 0 and 1, such as 0.95.")
    check_folder(out, force, own=REPEATS_FILE)
    if force:
        (out / REPEATS_FILE).unlink(missing_ok=True)
    found = lazy.coverage.measure_coverage(fit, out / REPEATS_FILE, kinds, count, seed)
    page = lazy.coverage.write_coverage_page(out, fit, found)
    lazy.posterior_tables.print_coverage(found, level, page)
