"""Memory of networks from step to step."""

from typing import NamedTuple

from truesim.core.typing import Array

PREVIOUS = "previous "
"""Prefix of a port's name: its value in the previous step."""


class NetworkMemory(NamedTuple):
    """Values that the next step needs from this one."""

    previous: dict[str, Array]
    """Values of the ports that a rule reads one step late."""
    hidden: dict[str, Array]
    """State of each recurrent network, by the name of its rule."""


class TapRecord(NamedTuple):
    """Values that have passed a tap so far."""

    values: dict[str, Array]
    """Values of the ports that a rule reads."""
    hidden: dict[str, Array]
    """State of each recurrent network that has run."""
