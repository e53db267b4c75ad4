"""Ports and taps: access to intermediate values of the physics, to read or change them.

Physics declares a port beside the code that computes a quantity, and calls `tap(PORT, value)` where the quantity is
computed. The identity tap returns the value itself and adds no operation to the program.
"""

import dataclasses
from typing import Any

from truesim.core.typing import Array


@dataclasses.dataclass(frozen=True)
class Port:
    """A quantity of a simulation that can be read, and in most cases changed, by name."""

    name: str
    """Such as `joint.damping_torque`."""
    of: str
    """Kind of object with one row each: a key of `truesim.physics.blueprint.ports.ROWS`."""
    unit: str
    doc: str
    components: tuple[str, ...] = ()
    """Names of the numbers of a row, where there are several."""
    writable: bool = True
    """True if a rule may change the value."""
    velocity: str | None = None
    """Name of the port whose product with this one is power, if there is one."""

    @property
    def width(self) -> int:
        """Number of values in a row."""
        return len(self.components) or 1


class Tap:
    """Receiver of the values at ports; this one returns them unchanged."""

    @property
    def seen(self) -> Any:
        """Record of the values that passed; None if none is kept."""
        return None

    def __call__(self, port: Port, value: Array) -> Array:
        """Value to use in place of the given one."""
        return value

    def wants(self, port: Port) -> bool:
        """True if a port is read or changed: for values that physics would not compute otherwise."""
        return False


NO_TAP = Tap()
"""Identity tap: returns every value unchanged."""
