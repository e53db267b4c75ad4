"""Errors of the user: each message names the object, the value, the valid choices and the nearest match."""

import contextlib
import difflib
import os
from collections.abc import Iterable, Iterator

MAX_REASON = 200
"""Most characters of a parser's own message in an error."""


class TruesimError(Exception):
    """A mistake that the user can correct; its text is ready to print."""


class FileError(TruesimError):
    """A file that is missing, broken, or holds a value that cannot be simulated."""


class LeftOutWarning(UserWarning):
    """Something in a robot file moves the robot but is not simulated."""


class NameUnknownError(TruesimError, KeyError):
    """A name that does not exist; the message lists what does."""

    __str__ = Exception.__str__


@contextlib.contextmanager
def parsing(file: str, kind: str) -> Iterator[None]:
    """Turn whatever a parser raises on a damaged file into one sentence.

    Parsers of file formats raise errors of every type, and polars panics, on bytes that they do not expect. With
    `TRUESIM_DEBUG` in the environment the error itself is raised.

    Args:
        file: Name of the file.
        kind: What it should be ("a bag").
    """
    try:
        yield
    except (TruesimError, KeyboardInterrupt, SystemExit, GeneratorExit, OSError):
        raise
    except BaseException as error:
        if os.environ.get("TRUESIM_DEBUG"):
            raise
        lines = str(error).splitlines() or [""]
        reason = f"{type(error).__name__} {lines[0]}".strip().rstrip(".")
        raise FileError(f"{file} cannot be read as {kind}: it is damaged ({reason[:MAX_REASON]}).") from None


def unknown_name(kind: str, name: str, valid: Iterable[str], meant: str | None = None) -> NameUnknownError:
    """Error for a name that does not exist, with the nearest valid name.

    Args:
        kind: Kind of the name, in the singular ("joint").
        name: The unknown name.
        valid: Names that exist.
        meant: What is meant, if that is known better than by similar letters.
    """
    names = sorted(valid)
    match = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    nearest = meant or (match[0] if match else None)
    guess = "." if nearest is None else f", did you mean {nearest!r}?"
    shown = ", ".join(names[:12]) + (f" … ({len(names)} in all)" if len(names) > 12 else "")
    return NameUnknownError(f"There is no {kind} named {name!r}{guess} Valid: {shown or 'none'}.")
