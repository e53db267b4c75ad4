"""Scope that sets the number of threads of all kernels compiled in it."""

import contextlib
import contextvars
from collections.abc import Iterator

_scoped = contextvars.ContextVar("threads", default=1)


def scoped_threads() -> int:
    """Number of threads of the innermost `use_threads`; one outside of any."""
    return _scoped.get()


@contextlib.contextmanager
def use_threads(count: int) -> Iterator[None]:
    """Compile kernels with at least this many threads.

    Args:
        count: Number of threads over which each kernel splits a batch. Results do not depend on it.
    """
    token = _scoped.set(count)
    try:
        yield
    finally:
        _scoped.reset(token)
