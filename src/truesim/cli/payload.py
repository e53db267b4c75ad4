"""Payload of an arm for `truesim identify --payload`."""

from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from truesim.cli.console import results
from truesim.cli.log_warnings import read_checked
from truesim.core.persistence.atomic import write_json
from truesim.files.robots import load
from truesim.identification.fit import Fit
from truesim.identification.regression.payload import Payload, identify_payload

PAYLOAD_FILE = "payload.json"


def find(fit: Fit, body: str, loaded: Sequence[Path], mapping: Path | None, weighed: float | None) -> Payload:
    """Estimate a payload, and write it into the folder of the fit.

    Args:
        fit: Fit of the arm without the payload.
        body: Body that carries it.
        loaded: Logs with it.
        mapping: File that renames and scales the logs' own columns.
        weighed: Its known mass [kg], if any.
    """
    model = load(fit.request.robot)
    found = identify_payload(model, fit.logs, read_checked(model, loaded, mapping), body, weighed=weighed)
    if fit.folder is not None:
        write_json(fit.folder / PAYLOAD_FILE, found.document())
    return found


def print_payload(payload: Payload) -> None:
    """Print a payload with its 95 % intervals."""
    console = results()
    table = Table(f"payload at {escape(payload.body)}", "value", "95 % interval", "unit", box=None)
    rows = [("mass", payload.mass, payload.mass_std, "kg")]
    rows += [(f"com[{k}]", c, s, "m") for k, (c, s) in enumerate(zip(payload.com, payload.com_std, strict=True))]
    pairs = zip(payload.inertia, payload.inertia_std, strict=True)
    rows += [(f"inertia[{k}]", c, s, "kg m^2") for k, (c, s) in enumerate(pairs)]
    for name, value, std, unit in rows:
        table.add_row(name, f"{value:.5g}", f"{value - 1.96 * std:.4g} … {value + 1.96 * std:.4g}", unit)
    console.print(table)
    if payload.scale != 1.0:
        console.print(
            f"The weighed load asks for torque constants that are {payload.scale:.4f} times the log's, "
            f"± {196 * payload.scale_std:.2g} %."
        )
    else:
        console.print(
            f"The interval of the mass holds an error of the torque constants of {100 * payload.scale_std:.3g} %; "
            "--weighed with a known load calibrates them."
        )
