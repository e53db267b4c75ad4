"""The page of a fit: one file that needs no network, made from the folder of the fit alone."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from truesim.identify.folder import read_fit
from truesim.report import numbers
from truesim.report.sections.advice import advice
from truesim.report.sections.basins import basin_table
from truesim.report.sections.errors import error_table
from truesim.report.sections.headline import headline
from truesim.report.sections.networks import network_section
from truesim.report.sections.parameters import flat_names, parameter_table
from truesim.report.sections.provenance import provenance
from truesim.report.sections.signals import Signals, packed, read_signals

NAME = "report.html"


def write_fit_page(folder: Path) -> Path:
    """Makes the page of the fit in a folder, in the same folder; where it is."""
    page = folder / NAME
    text = fit_page(read_fit(folder), read_signals(folder), folder)
    part = page.with_name(f".{NAME}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(page)
    return page


def fit_page(document: Mapping[str, Any], signals: Signals, folder: Path) -> str:
    """The page as text.

    Args:
        document: What `fit.json` holds.
        signals: What `signals.npz` holds.
        folder: Where they are, for the command that makes them again.
    """
    loader = jinja2.PackageLoader("truesim.report")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.globals["number"] = numbers.number
    environment.globals["source"] = lambda name: Markup(loader.get_source(environment, name)[0])
    return environment.get_template("fit.html").render(
        headline=headline(document, signals.window),
        parameters=parameter_table(document["parameters"]),
        errors=error_table(document),
        unseen=document["unseen"],
        advice=advice(document),
        basins=basin_table(document),
        networks=network_section(document),
        provenance=provenance(document, folder),
        signals=signals,
        several=len(flat_names(document["parameters"])) > 1,
        data=_script(_data(document, signals)),
        plotly=Markup(get_plotlyjs()),
    )


def _data(document: Mapping[str, Any], signals: Signals) -> dict[str, Any]:
    """What the plots are drawn from."""
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
        "logs": packed(signals),
        "convergence": document["convergence"],
        "correlations": {
            "names": flat_names(document["parameters"]),
            "matrix": [[_rounded(x) for x in row] for row in document["correlations"]["matrix"]],
        },
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _script(data: Mapping[str, Any]) -> Markup:
    """JSON that may stand within a script element."""
    return Markup(json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))
