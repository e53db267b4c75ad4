"""Errors that teach: each names the thing, the value, what is valid and the nearest match."""

import difflib
from collections.abc import Iterable


class TruesimError(Exception):
    """A mistake that the user can mend; its text is one sentence, ready to print."""


class FileError(TruesimError):
    """A file that is missing, broken, or holds a value that cannot be simulated."""


class NameUnknownError(TruesimError, KeyError):
    """A name that does not exist; the message lists what does."""

    __str__ = Exception.__str__


def unknown_name(kind: str, name: str, valid: Iterable[str]) -> NameUnknownError:
    """The error for a name that does not exist, with the nearest valid name.

    Args:
        kind: What the name should have been, in the singular ("joint").
        name: What was asked for.
        valid: The names that exist.
    """
    names = sorted(valid)
    match = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    guess = f", did you mean {match[0]!r}?" if match else "."
    shown = ", ".join(names[:12]) + (f" … ({len(names)} in all)" if len(names) > 12 else "")
    return NameUnknownError(f"There is no {kind} named {name!r}{guess} Valid: {shown or 'none'}.")
