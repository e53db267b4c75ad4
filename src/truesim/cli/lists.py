"""Options that take several values: `--free A B C` means `--free A --free B --free C`."""

from collections.abc import Sequence
from pathlib import Path

SEVERAL = (
    *("--free", "--holdout", "--prior", "--bounds", "--tie", "--channel", "--law", "--set", "--changes"),
    *("--validate", "--horizon", "--speed", "--torque", "--range", "--noise"),
)
NAMES_FILES = ("--holdout", "--validate")


def spread(arguments: Sequence[str]) -> list[str]:
    """The arguments with such options repeated before each of their values.

    A list ends at the next option. It also ends at a file, where names of parameters are expected: then the file is a
    log of the command itself.
    """
    out: list[str] = []
    option: str | None = None
    first = False
    for word in arguments:
        if word.startswith("-") and "/" not in word:
            option, first = (word if word in SEVERAL else None), True
        elif option is not None and not first:
            if option not in NAMES_FILES and Path(word).exists():
                option = None
            else:
                out.append(option)
        else:
            first = False
        out.append(word)
    return out
