"""Taps: how physics shows its intermediate values to others, who may read or change them.

Physics declares a port beside the code that computes a quantity, and calls `tap(PORT, value)` where the quantity is
ready. Without anyone at the tap the call returns the value itself and leaves no trace in the program.
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
    """What has a row each: a key of `truesim.simulate.augment.ports.ROWS`."""
    unit: str
    doc: str
    components: tuple[str, ...] = ()
    """Numbers of a row, where it is more than one."""
    writable: bool = True
    """Whether a rule may change it."""
    velocity: str | None = None
    """The port whose product with this one is power, if there is one."""

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return len(self.components) or 1


class Tap:
    """Takes what physics offers; this one changes nothing."""

    @property
    def seen(self) -> Any:
        """What has passed, as far as anyone wants to know it later."""
        return None

    def __call__(self, port: Port, value: Array) -> Array:
        """What takes the place of a value."""
        return value

    def wants(self, port: Port) -> bool:
        """Whether anyone reads or changes a port: for values that physics does not compute for itself."""
        return False


NO_TAP = Tap()
"""Nobody listens."""
