"""The page of a fit: one HTML file that works offline, made from the fit's folder alone."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from truesim.identification.fit_folder import read_document
from truesim.report import document as decisions
from truesim.report import numbers
from truesim.report.sections.advice import advice
from truesim.report.sections.basins import basin_table
from truesim.report.sections.errors import error_table
from truesim.report.sections.headline import headline
from truesim.report.sections.networks import network_section
from truesim.report.sections.parameters import flat_names, parameter_table
from truesim.report.sections.provenance import provenance
from truesim.report.sections.replay import replay_section
from truesim.report.sections.residuals import log_errors, residual_dots
from truesim.report.sections.signals import FitSignals, pack, read_signals
from truesim.report.sections.torque import torque_table

FIT_PAGE = "report.html"


def write_fit_page(folder: Path) -> Path:
    """Write the page of a fit into the fit's folder.

    Returns:
        Path of the page.
    """
    page = folder / FIT_PAGE
    text = fit_page(read_document(folder), read_signals(folder), folder)
    part = page.with_name(f".{FIT_PAGE}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(page)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    return page


def fit_page(document: Mapping[str, Any], signals: FitSignals, folder: Path) -> str:
    """The page as HTML text.

    Args:
        document: Content of `fit.json`.
        signals: Content of `signals.npz`.
        folder: Folder of the fit, named in the command that repeats it.
    """
    loader = jinja2.PackageLoader("truesim.report")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.globals["number"] = numbers.number
    environment.globals["source"] = lambda name: Markup(loader.get_source(environment, name)[0])
    return environment.get_template("fit.html").render(
        headline=headline(document, signals.window),
        replay=replay_section(folder),
        parameters=parameter_table(document["parameters"], _ties(document)),
        errors=error_table(document),
        torque=torque_table(document),
        log_errors=log_errors(signals),
        not_identifiable=decisions.not_identifiable(document),
        advice=advice(document),
        basins=basin_table(document),
        networks=network_section(document),
        provenance=provenance(document, folder),
        signals=signals,
        several=len(flat_names(document["parameters"])) > 1,
        data=_script(_data(document, signals)),
        plotly=Markup(get_plotlyjs()),
    )


def _data(document: Mapping[str, Any], signals: FitSignals) -> dict[str, Any]:
    """Data of the plots."""
    units = document.get("units", {})
    return {
        "channels": [
            {
                "name": row,
                "unit": numbers.unit(units.get(row, "")),
                "noise": document["noise"].get(row, {}).get("sensor"),
            }
            for row in signals.rows
        ],
        "logs": pack(signals),
        "residuals": residual_dots(signals),
        "convergence": _continued(document["convergence"]),
        "correlations": {
            "names": flat_names(document["parameters"]),
            "matrix": [[_rounded(x) for x in row] for row in document["correlations"]["matrix"]],
        },
    }


def _ties(document: Mapping[str, Any]) -> list[list[str]]:
    """Patterns of parameters that share a value."""
    given = document.get("options", {}).get("problem", {}).get("ties", [])
    return [[tie] if isinstance(tie, str) else list(tie) for tie in given]


def _continued(iterations: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Iterations with their cost relative to the first one, continued over stages.

    Within a stage the cost never rises. A stage divides residuals by another noise, so that its costs have another
    scale: they are scaled such that it begins where the stage before ended.
    """
    shown: list[dict[str, Any]] = []
    scale, stage = 1.0, 1
    for k, here in enumerate(iterations):
        cost, before = here["cost"], iterations[k - 1]["cost"] if k else None
        if before is None:
            scale = 1 / cost if cost else 1.0
        elif cost is not None and before is not None and cost > before:
            scale *= before / cost
            stage += 1
        shown.append({**here, "relative": None if cost is None else scale * cost, "stage": stage})
    return shown


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _script(data: Mapping[str, Any]) -> Markup:
    """JSON that is safe inside a script element."""
    return Markup(json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))
