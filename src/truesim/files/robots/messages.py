"""Messages of MuJoCo on reading a file: warnings are collected, errors become one sentence."""

import contextlib
import re
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import mujoco

from truesim.core.errors import FileError
from truesim.files.robots.documents import real_names

WARNING_HANDLER_LOCK = threading.Lock()
"""Lock of MuJoCo's warning handler, of which a process has one."""
PLAIN_WORDING = {
    "larger than mjMINVAL": "larger than 1e-15; give the body a geom with mass or an <inertial>",
    "use 'balanceinertia' to fix": "no rigid body has such moments; repair them or set balanceinertia in <compiler>",
}
"""Phrases of MuJoCo's errors with their replacements."""


@contextlib.contextmanager
def collect_warnings(said: list[str]) -> Iterator[None]:
    """Collect the warnings that MuJoCo would print."""
    with WARNING_HANDLER_LOCK, warnings.catch_warnings(record=True) as caught:
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
        message = re.sub(r"^(XML )?Error: |^XML parse error \d+:\s*", "", real_names(str(error))).strip()
        first, *rest = [line for line in message.splitlines() if line.strip()]
        details = " ".join(rest)
        line = re.search(r"line (\d+)", details)
        named = re.search(r"Element (?:name )?'([^']+)'", details)
        where = path.name + (f", line {line[1]}" if line else "") + (f", element {named[1]!r}" if named else "")
        for word, meaning in PLAIN_WORDING.items():
            first = first.replace(word, meaning)
        raise FileError(f"{where}: {first.rstrip('.')}.") from None
