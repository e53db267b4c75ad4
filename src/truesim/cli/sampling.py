"""Posteriors of `truesim posterior`: approximation, samples, ranges, robot files and page."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape

from truesim.cli.console import messages
from truesim.cli.progress import Counting
from truesim.core.errors import unknown_name
from truesim.identification.fit import Fit
from truesim.identification.posterior import Range, ranges, write_ranges, write_variants
from truesim.identification.posterior.inference_data import write_inference_json
from truesim.identification.posterior.parameters import ParameterPosterior
from truesim.identification.posterior.ranges import VARIANT_SUFFIXES, number_names, write_samples
from truesim.identification.posterior.trainer_files import TRAINER_LIBRARIES, target_ranges, trainer_file
from truesim.identification.problem.fitted import fitted_model
from truesim.report.figures import PageFigure, PageTable, write_figures
from truesim.report.numbers import estimate, number
from truesim.report.posterior_figures import MAX_PLOTTED, evolution_figure, pairs_figure

ARVIZ = "arviz"
"""Name of the samples for ArviZ among the files for other software."""
MAX_LOG_DENSITY_ERROR = 0.3
"""Difference of log densities above which more kernels are recommended."""
MIN_DRAWN_EPOCHS = 5
"""Epochs below which the history of a mixture is not drawn."""


def check_format(style: str | None) -> None:
    """Refuse an unknown format of robot files."""
    if style is not None and style not in VARIANT_SUFFIXES:
        raise unknown_name("format", style, VARIANT_SUFFIXES)


def check_exports(names: Sequence[str]) -> None:
    """Refuse an unknown kind of file for other software."""
    for name in names:
        if name not in (*TRAINER_LIBRARIES, ARVIZ):
            raise unknown_name("export", name, (*TRAINER_LIBRARIES, ARVIZ))


def write_exports(
    out: Path, names: Sequence[str], found: ParameterPosterior, within: Sequence[Range], samples: int, seed: int
) -> None:
    """Write files for other software: `randomize_<library>.py`, and `posterior.json` for ArviZ.

    Args:
        out: Folder.
        names: Libraries.
        found: The posterior.
        within: Its ranges.
        samples: Number of samples.
        seed: Of the samples.
    """
    model = fitted_model(found.problem, found.coordinates.mean)
    numbers = target_ranges(found.problem, within)
    for name in dict.fromkeys(names):
        if name == ARVIZ:
            write_inference_json(out / "posterior.json", found, samples, seed)
        else:
            text = trainer_file(name, model, numbers, found.warnings)
            (out / f"randomize_{name}.py").write_text(text, encoding="utf-8")


def find_posterior(fit: Path, kind: str, kernels: int, starts: int, seed: int, console: Console) -> ParameterPosterior:
    """The posterior of the fit in a folder, with progress.

    Args:
        fit: Folder of the fit.
        kind: `laplace`, `mixture` or `basins`.
        kernels: Number of Gaussians of a mixture.
        starts: Number of starts of the search for basins.
        seed: Of random numbers.
        console: For progress.
    """
    opened = Fit.load(fit)
    with Counting(console, f"Computing the posterior ({kind})") as callback:
        return opened.posterior(kind, kernels=kernels, starts=starts, seed=seed, callback=callback)


def remark(found: ParameterPosterior, kind: str) -> str:
    """Quality of a posterior in a sentence."""
    if found.history is not None:
        return _accuracy(float(found.history.scatter[-1]))
    if kind == "basins":
        return f"The starts converged to {found.minima} {'basin' if found.minima == 1 else 'basins'}."
    return "One Gaussian at the fit; --kind mixture shows whether it is sufficient."


def write_samples_and_ranges(
    out: Path, found: ParameterPosterior, samples: int, level: float, seed: int
) -> list[Range]:
    """Write `ranges.json` and `samples.csv`; returns the ranges.

    Args:
        out: Folder.
        found: The posterior.
        samples: Number of samples.
        level: Probability of the ranges.
        seed: Of the samples.
    """
    values = sampled_values(found, samples, seed)
    within = ranges(found.coordinates, found.problem, level, seed)
    write_ranges(out / "ranges.json", within, level=level, values=values, warnings=found.warnings)
    write_samples(out / "samples.csv", number_names(found.problem), values)
    return within


def sampled_values(found: ParameterPosterior, samples: int, seed: int) -> np.ndarray:
    """Samples in SI units, one a row."""
    return np.asarray(found.problem.values(found.coordinates.sample(samples, seed))[0])


def write_robots(folder: Path, found: ParameterPosterior, variants: int, style: str | None, seed: int) -> None:
    """Write robot files with sampled parameters, and print what their format cannot hold."""
    console = messages()
    written, findings = write_variants(folder, found.problem, found.coordinates.sample(variants, seed), style)
    for finding in findings:
        console.print(f"[yellow]{finding.severity}:[/] {escape(str(finding))}")
    console.print(f"{len(written)} robot files in {escape(str(folder))}.")


def write_page(out: Path, fit: Path, kind: str, found: ParameterPosterior, samples: int, seed: int) -> Path:
    """Write `posterior.html`: samples pair by pair, and the history of a mixture."""
    names, values, history = number_names(found.problem), sampled_values(found, samples, seed), found.history
    size = values.shape[1]
    text = "Samples of the posterior, in SI units, for each pair of parameters."
    if size > MAX_PLOTTED:
        text += f" Only the {MAX_PLOTTED} most correlated of {size} numbers are drawn; samples.csv has all."
    figures = [PageFigure("Joint distribution", text, pairs_figure({kind: values}, names))]
    if history is not None and len(history.loss) >= MIN_DRAWN_EPOCHS:
        coordinates = [f"x{k}" for k in range(history.means.shape[2])]
        labels = names if len(names) == len(coordinates) else coordinates
        words = "Means of the kernels with one standard deviation, in the coordinates of the optimizer."
        figures.append(PageFigure("Convergence of the mixture", words, evolution_figure(history, labels)))
    lead = " ".join([f"Distribution of the parameters, given the logs of the fit “{fit}”.", *found.warnings])
    return write_figures(out / "posterior.html", "Posterior", lead, figures, [_quantile_table(names, values)])


def _quantile_table(names: Sequence[str], values: np.ndarray) -> PageTable:
    """Mean, standard deviation and 95 % range of every parameter."""
    low, middle, high = np.quantile(values, [0.025, 0.5, 0.975], axis=0)
    columns = zip(names, middle, values.mean(axis=0), values.std(axis=0), low, high, strict=True)
    rows = [
        [name, *(estimate(float(x), float(std)) for x in (middle, mean)), number(float(std), 2),
         *(estimate(float(x), float(std)) for x in ends)]
        for name, middle, mean, std, *ends in columns
    ]  # fmt: skip
    headings = ("parameter", "median", "mean", "standard deviation", "2.5 %", "97.5 %")
    return PageTable(f"{len(values)} samples, in SI units", headings, rows)


def _accuracy(error: float) -> str:
    """Accuracy of a mixture in a sentence."""
    text = f"The mixture's density typically differs from the posterior's by {100 * np.expm1(error):.2g} %"
    return f"{text}." if error < MAX_LOG_DENSITY_ERROR else f"{text}: increase --kernels."
