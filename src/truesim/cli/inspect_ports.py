"""Table of `truesim inspect ROBOT --ports`: quantities that networks can read or change."""

import contextlib
import json
from typing import NamedTuple

from rich.markup import escape
from rich.table import Table

from truesim.cli.console import results
from truesim.core.errors import TruesimError
from truesim.core.tap import Port
from truesim.physics.blueprint import ports
from truesim.physics.contact.choose import COMPLIANT, CONTACT_MODELS, NONE, contact_named
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator


class PortRow(NamedTuple):
    """A port of one robot."""

    name: str
    shape: tuple[int, ...] | None
    """None if it has no value in this robot."""
    unit: str
    use: str
    """Access of a network, or the reason why the port has no value."""
    doc: str


def print_ports(model: Model, as_json: bool) -> None:
    """Print name, shape, unit and description of every port, in the order of a step."""
    simulators = {}
    for name in CONTACT_MODELS:
        with contextlib.suppress(TruesimError):  # some robots have parts that a contact model refuses
            simulators[name] = Simulator.of(model, contact=contact_named(model, name))
    rows = [_row(port, simulators) for port in ports.PORTS]
    if as_json:
        print(json.dumps([row._asdict() for row in rows], indent=1))
        return
    table = Table("port", "shape", "unit", "use", "description", box=None, title="Ports, in the order of a step")
    for row in rows:
        shape = "" if row.shape is None else "x".join(map(str, row.shape))
        table.add_row(row.name, shape, escape(row.unit), escape(row.use), escape(row.doc))
    results(200).print(table)


def _row(port: Port, simulators: dict[str, Simulator]) -> PortRow:
    having = [name for name, simulator in simulators.items() if ports.absence(simulator, port) is None]
    if not having:
        return PortRow(port.name, None, port.unit, ports.absence(simulators[COMPLIANT], port) or "", port.doc)
    use = "read, change" if port.writable else "read"
    if NONE not in having:
        use += f" (contact {' or '.join(having)})"
    return PortRow(port.name, ports.shape(simulators[having[0]], port), port.unit, use, port.doc)
