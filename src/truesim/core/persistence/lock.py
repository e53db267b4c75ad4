"""Lock of a folder: one run at a time writes into it."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from truesim.core.errors import TruesimError

if sys.platform == "win32":
    import msvcrt

    def _acquire(descriptor: int) -> bool:
        """Lock an open file; False if another process holds the lock."""
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _acquire(descriptor: int) -> bool:
        """Lock an open file; False if another process holds the lock."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


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
    try:
        with path.open("a") as file:
            if not _acquire(file.fileno()):
                raise TruesimError(f"Another run writes into {folder}; wait for it, or give another folder.")
            try:
                yield
            finally:
                if sys.platform != "win32":
                    path.unlink(missing_ok=True)  # while it is held, so that no other run can hold a deleted file
    finally:
        if sys.platform == "win32":
            with contextlib.suppress(OSError):  # an open file cannot be deleted there: another run has it
                path.unlink(missing_ok=True)
        if missing and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
