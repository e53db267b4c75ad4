"""`truesim posterior`: parameters that the logs of a fit leave possible, as samples, ranges and robot files."""

from typing import Annotated

import typer

from truesim.cli import lazy
from truesim.cli.arguments import FitFolder, OutputFolder, ReplaceFolder, Seed, Threads
from truesim.cli.console import messages
from truesim.cli.outputs import check_folder
from truesim.core.errors import TruesimError, unknown_name

POSTERIOR_KIND_NAMES = ("laplace", "mixture", "basins")


def posterior(
    fit: FitFolder,
    out: OutputFolder,
    kind: Annotated[
        str,
        typer.Option(
            "--kind", help="laplace (one Gaussian at the fit), mixture (of Gaussians), or basins (from several starts)."
        ),
    ] = "laplace",
    samples: Annotated[int, typer.Option("--samples", help="Number of samples to draw.")] = 1000,
    level: Annotated[float, typer.Option("--level", help="Probability of the ranges.")] = 0.95,
    kernels: Annotated[int, typer.Option("--kernels", help="Number of Gaussians of a mixture.")] = 3,
    starts: Annotated[int, typer.Option("--starts", help="Number of starts of the search for basins.")] = 8,
    variants: Annotated[
        int, typer.Option("--variants", help="Number of robot files to write, each with one sample.")
    ] = 0,
    style: Annotated[
        str | None,
        typer.Option("--format", help="Format of the robot files: mjcf or urdf; by default the robot's own."),
    ] = None,
    export: Annotated[
        list[str] | None,
        typer.Option(
            "--export",
            help="Files to write for other software: mjlab, isaaclab, playground (ranges as their source) or arviz "
            "(samples as JSON).",
            metavar="NAME…",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    threads: Threads = 1,
    force: ReplaceFolder = False,
) -> None:
    """Sample parameters from the posterior of a fit and write them for domain randomization.

    Writes ranges.json, samples.csv and posterior.html, with --variants robot files with sampled parameters, and with
    --export files for other software.
    """
    _check(kind, level, {"samples": samples, "kernels": kernels, "starts": starts})
    if variants < 0:
        raise TruesimError(f"--variants is {variants}; it must be at least 0.")
    lazy.sampling.check_format(style)
    lazy.sampling.check_exports(export or ())
    check_folder(out, force)
    found = lazy.sampling.find_posterior(fit, kind, kernels, starts, seed, messages())
    out.mkdir(parents=True, exist_ok=True)
    within = lazy.sampling.write_samples_and_ranges(out, found, samples, level, seed)
    lazy.sampling.write_exports(out, export or (), found, within, samples, seed)
    if variants:
        lazy.sampling.write_robots(out / "variants", found, variants, style, seed)
    page = lazy.sampling.write_page(out, fit, kind, found, samples, seed)
    lazy.posterior_tables.print_ranges(within, level, found, kind, page)


def _check(kind: str, level: float, counts: dict[str, int]) -> None:
    if kind not in POSTERIOR_KIND_NAMES:
        raise unknown_name("posterior", kind, POSTERIOR_KIND_NAMES)
    if not 0 < level < 1:
        raise TruesimError(f"--level is {level:g}; it must lie between 0 and 1, such as 0.95.")
    for name, count in counts.items():
        if count < 1:
            raise TruesimError(f"--{name} is {count}; it must be at least 1.")
