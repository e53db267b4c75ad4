"""`truesim`: the entry point and the display of errors."""

import atexit
import errno
import gc
import os
import sys
import threading
from collections.abc import Callable

import typer
from rich.console import Console
from rich.markup import escape

from truesim import __version__
from truesim.cli.verbs import VERB_TABLE, is_completing, list_verbs, load_verb
from truesim.core.errors import TruesimError, unknown_name

INTERRUPTED_EXIT_CODE = 130
"""Exit code after Ctrl-C, the same as typer's."""
GARBAGE_THRESHOLD = 1_000_000
"""New objects between garbage collections. Larger is faster, as imports and a fit leave little garbage, and may keep
some hundred megabytes of it in long runs."""
FILE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO)
"""System errors that are not a defect: full disk, quota, read-only file system, no permission, broken device."""
USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
"""Base class of errors in arguments; typer has click's classes under different names in different versions."""


def main() -> None:
    """Run the command line as a whole process: it ends the process."""
    gc.set_threshold(GARBAGE_THRESHOLD)
    try:
        run()
    except SystemExit as end:
        _leave(end.code)
        raise


def run() -> None:
    """Run the command line; an error of the user is one sentence and exit code 2."""
    os.environ.setdefault("MUJOCO_GL", "disable")  # nothing is rendered, and GLFW is slow to load
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's matrices are small, and threads wait for each other
    guard(lambda: sys.exit(_run(sys.argv[1:] or ["--help"])))


def _leave(code: object) -> None:
    """End the process without tearing down the interpreter, which takes 0.1 s with JAX loaded.

    Only where nothing is lost: no other thread runs, and all output has been written. Functions registered with
    `atexit` are called. Otherwise it returns, and Python ends as usual.
    """
    if not (code is None or isinstance(code, int)) or threading.active_count() > 1:
        return
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return
    os._exit(code or 0)


def _run(arguments: list[str]) -> int:
    """Run a verb, or show the version, the list of verbs or completions; returns the exit code."""
    first, rest = arguments[0], arguments[1:]
    if is_completing():
        return list_verbs().main([], prog_name="truesim", standalone_mode=False) or 0
    if first == "--version":
        print(f"truesim {__version__}")
        return 0
    if first in VERB_TABLE:
        return load_verb(first).main(rest, prog_name=f"truesim {first}", standalone_mode=False) or 0
    if not first.startswith("-"):
        raise unknown_name("verb", first, VERB_TABLE)
    return list_verbs().main(arguments, prog_name="truesim", standalone_mode=False) or 0


def guard(command: Callable[[], object]) -> None:
    """Run a command and show its errors as one sentence on standard error."""
    try:
        command()
    except TruesimError as error:
        _fail(str(error), 2)
    except (KeyboardInterrupt, SystemExit) as end:
        if isinstance(end, SystemExit) and end.code != INTERRUPTED_EXIT_CODE:
            raise
        _fail("Interrupted.", INTERRUPTED_EXIT_CODE)
    except USAGE_ERROR as error:
        _fail(_usage(error), 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has gone: nothing left to flush
        sys.exit(1)
    except OSError as error:
        if os.environ.get("TRUESIM_DEBUG"):
            raise
        if error.errno not in FILE_ERRORS:
            _fail(f"Unexpected {type(error).__name__}: {error}. This is a defect; TRUESIM_DEBUG=1 shows where.", 1)
        where = f" ({error.filename})" if error.filename else ""
        _fail(f"{error.strerror}{where}. What was finished is kept; the same command continues from it.", 2)
    except Exception as error:
        if os.environ.get("TRUESIM_DEBUG"):
            raise
        _fail(f"Unexpected {type(error).__name__}: {error}. This is a defect; TRUESIM_DEBUG=1 shows where.", 1)


def _usage(error: Exception) -> str:
    """An error in the arguments in one sentence, with the command that shows the right ones."""
    text = " ".join(error.format_message().split())  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    return f"{text.rstrip('.')} (see {context.command_path} --help)." if context and text else text


def _fail(sentence: str, code: int) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"[bold red]error:[/] {escape(sentence)}")
    sys.exit(code)
