"""What networks remember from step to step."""

from typing import NamedTuple

from truesim.core.typing import Array

PREVIOUS = "previous "
"""In front of a port's name: its value in the step before."""


class Memory(NamedTuple):
    """What the next step needs of this one."""

    previous: dict[str, Array]
    """Values of the ports that a rule reads a step late."""
    hidden: dict[str, Array]
    """State of each recurrent network, by the name of its rule."""


class Seen(NamedTuple):
    """What has passed a tap so far."""

    values: dict[str, Array]
    """Values of the ports that a rule reads."""
    hidden: dict[str, Array]
    """State of each recurrent network that has run."""
