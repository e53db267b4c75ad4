"""What MuJoCo says while it reads a file: its warnings collected, its errors as one sentence."""

import contextlib
import re
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import mujoco

from truesim.core.errors import FileError

CALLBACK = threading.Lock()
"""MuJoCo has one warning handler for the whole process."""
MEANINGS = {
    "larger than mjMINVAL": "larger than 1e-15; give the body a geom with mass or an <inertial>",
    "use 'balanceinertia' to fix": "no rigid body has such moments; mend them or set balanceinertia in <compiler>",
}
"""Words of MuJoCo's errors, and what they ask of the user."""


@contextlib.contextmanager
def listening(said: list[str]) -> Iterator[None]:
    """Collect what MuJoCo would print."""
    with CALLBACK, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        before = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(said.append)
        try:
            yield
        finally:
            mujoco.set_mju_user_warning(before)
    said += [str(warning.message) for warning in caught]


@contextlib.contextmanager
def errors_as_sentences(path: Path) -> Iterator[None]:
    """MuJoCo's errors as one sentence that names the file, the line and the element."""
    try:
        yield
    except (ValueError, mujoco.FatalError) as error:
        message = re.sub(r"^(XML )?Error: |^XML parse error \d+:\s*", "", str(error)).strip()
        first, *rest = [line for line in message.splitlines() if line.strip()]
        details = " ".join(rest)
        line = re.search(r"line (\d+)", details)
        named = re.search(r"Element (?:name )?'([^']+)'", details)
        where = path.name + (f", line {line[1]}" if line else "") + (f", element {named[1]!r}" if named else "")
        for word, meaning in MEANINGS.items():
            first = first.replace(word, meaning)
        raise FileError(f"{where}: {first.rstrip('.')}.") from None
