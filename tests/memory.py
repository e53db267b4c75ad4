"""Memory of this process, as the tests measure and return it."""

import ctypes
import gc
import resource
from pathlib import Path

_C_LIBRARY = ctypes.CDLL(None)


def return_freed_memory() -> None:
    """Collect garbage and give what was freed back to the system.

    Compilers free most of their memory in small pieces, which the C library keeps unless it is told to return them.
    """
    gc.collect()
    if hasattr(_C_LIBRARY, "malloc_trim"):  # glibc
        _C_LIBRARY.malloc_trim(0)


def resident_memory() -> int:
    """Resident memory without garbage [bytes]."""
    return_freed_memory()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
