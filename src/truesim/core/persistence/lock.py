"""Lock of a folder: one run at a time writes into it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from truesim.core.errors import TruesimError

try:
    import fcntl
except ImportError:  # Windows: without locks of files
    fcntl = None  # type: ignore[assignment]

LOCK_FILE = ".lock"


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which is created; an error if another run holds it. A killed run leaves no lock.

    Args:
        folder: The folder. If nothing was written into it, it is removed again.
    """
    if folder.exists() and not folder.is_dir():
        yield  # whoever writes there tells that it is a file
        return
    missing = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK_FILE
    with path.open("a") as file:
        if not _acquire(file.fileno()):
            raise TruesimError(f"Another run writes into {folder}; wait for it, or give another folder.")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            if missing and folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def _acquire(descriptor: int) -> bool:
    """Lock an open file; True where there are no locks of files."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
