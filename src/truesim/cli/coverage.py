"""Coverage of `truesim calibrate`: repeated fits on simulated logs, kept in a journal, and a page."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from truesim.cli.console import messages
from truesim.cli.progress import Counting
from truesim.core.persistence.journal import Journal, fingerprint
from truesim.identification.fit import Fit
from truesim.identification.fit_folder import values_in
from truesim.identification.posterior import Calibration, laplace
from truesim.identification.posterior.calibration import CALIBRATION_SCHEMA, calibrate
from truesim.report.figures import PageFigure, write_figures
from truesim.report.posterior_figures import MAX_PLOTTED, calibration_figure

COVERAGE_CAPTION = (
    "The first panel shows how often regions of each probability contain the truth. The others show the distribution "
    "of the rank of the truth in the posterior of each parameter. Gray: range of a calibrated posterior by chance."
)


def measure_coverage(
    fit: Path, journal_file: Path, kinds: Sequence[str], count: int, seed: int
) -> dict[str, Calibration]:
    """Calibration of each kind of posterior, with progress on standard error.

    Args:
        fit: Folder of the fit.
        journal_file: File of finished repeats, from which an interrupted run continues.
        kinds: Kinds of posterior.
        count: Number of repeats.
        seed: Of random numbers.
    """
    console = messages()
    opened = Fit.load(fit)
    solution = opened.solution
    key = fingerprint(tuple(kinds), seed, values_in(fit, opened.document))
    journal_file.parent.mkdir(parents=True, exist_ok=True)
    with closing(Journal(journal_file, CALIBRATION_SCHEMA, key)) as journal:
        truths = laplace(solution, opened.uncertainty).sample(count, seed)
        if 0 < len(journal.records) < count:
            console.print(f"Continuing after {len(journal.records)} repeats.")
        with Counting(console, f"Simulating and fitting {count} times") as callback:
            try:
                return calibrate(
                    solution,
                    tuple(kinds),
                    truths,
                    options=opened.request.options.solve,
                    seed=seed,
                    journal=journal,
                    callback=callback,
                )
            except KeyboardInterrupt:
                console.print("Finished repeats are kept; the same command continues after them.")
                raise


def write_coverage_page(out: Path, fit: Path, found: Mapping[str, Calibration]) -> Path:
    """Write `calibration.html`."""
    first = next(iter(found.values()))
    repeats, size = first.ranks.shape
    drawn = f" The first {MAX_PLOTTED} of {size} parameters are drawn." if size > MAX_PLOTTED else ""
    picture = PageFigure("Coverage and ranks", COVERAGE_CAPTION + drawn, calibration_figure(dict(found)))
    lead = f"{repeats} repeats of the fit “{fit}” on simulated logs."
    return write_figures(out / "calibration.html", "Calibration", lead, [picture])
