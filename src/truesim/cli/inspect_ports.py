"""`truesim inspect ROBOT --ports`: where networks can take part in the physics of a robot."""

import json
import sys
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from truesim.contact.choose import COMPLIANT, RIGID, contact_named
from truesim.core.tap import Port
from truesim.model.model import Model
from truesim.simulate import Simulator
from truesim.simulate.augment import ports


class Row(NamedTuple):
    """A port of one robot."""

    name: str
    shape: tuple[int, ...] | None
    """None if it has no value in this robot."""
    unit: str
    use: str
    """What a network can do with it, or why it has no value."""
    doc: str


def inspect_ports(model: Model, as_json: bool) -> None:
    """Prints every port with its shape for this robot, its unit and what it is, in the order of a step."""
    laws = {law: Simulator.of(model, contact=contact_named(model, law)) for law in ("none", RIGID, COMPLIANT)}
    rows = [_row(port, laws) for port in ports.PORTS]
    if as_json:
        print(json.dumps([row._asdict() for row in rows], indent=1))
        return
    console = Console(soft_wrap=True, highlight=False, width=None if sys.stdout.isatty() else 200)
    table = Table("port", "shape", "unit", "use", "what it is", box=None, title="Ports, in the order of a step")
    for row in rows:
        shape = "" if row.shape is None else "x".join(map(str, row.shape))
        table.add_row(row.name, shape, escape(row.unit), escape(row.use), escape(row.doc))
    console.print(table)


def _row(port: Port, laws: dict[str, Simulator]) -> Row:
    having = [law for law, simulator in laws.items() if ports.absence(simulator, port) is None]
    if not having:
        return Row(port.name, None, port.unit, ports.absence(laws[COMPLIANT], port) or "", port.doc)
    use = "read, change" if port.writable else "read"
    if "none" not in having:
        use += f" (contact {' or '.join(having)})"
    return Row(port.name, ports.shape(laws[having[0]], port), port.unit, use, port.doc)
