"""Where a model came from, and what was found while reading it."""

import dataclasses
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Source:
    """The user's own file, as read."""

    path: Path
    text: str
    format: str
    """`mjcf` or `urdf`."""
    floating_base: bool = False
    """Whether a free joint was added above a URDF's root link."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something in a file that the simulation does not, or not exactly, follow."""

    subject: str
    """The element concerned, such as `tendon 'T1'`."""
    message: str
    """What is not simulated, or what was mended, in words."""
    severity: str = "not simulated"
    """`not simulated`, `warning` or `note`."""

    def __str__(self) -> str:
        return f"{self.subject}: {self.message}"
