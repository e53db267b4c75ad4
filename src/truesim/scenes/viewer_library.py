"""The viewer library, viser: loaded on first use, served on this machine only."""

import contextlib
import io
import socket
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from truesim.core.errors import TruesimError

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8080


def viewer() -> Any:
    """The module `viser`."""
    try:
        return import_module("viser")
    except ModuleNotFoundError as error:
        if error.name != "viser":
            raise
        raise TruesimError("The 3-D viewer is not installed: pip install 'truesim[viewer]'.") from None


def has_viewer() -> bool:
    """True if the viewer library is installed."""
    try:
        viewer()
    except TruesimError:
        return False
    return True


def open_server(host: str = LOOPBACK, port: int | None = None) -> Any:
    """A server of scenes and controls.

    Args:
        host: Address to listen on; other machines can connect to any other than this one's own.
        port: Port to listen on; the first free one from 8080 on by default.
    """
    library = viewer()
    if port is not None and not _is_free(host, port):
        raise TruesimError(f"Port {port} of {host} is in use: give another with --port, or leave it out.")
    with quiet():
        return library.ViserServer(host=host, port=port or free_port(host), verbose=False)


def free_port(host: str, first: int = DEFAULT_PORT) -> int:
    """The first free port from `first` on."""
    for port in range(first, first + 200):
        if _is_free(host, port):
            return port
    raise TruesimError(f"No port between {first} and {first + 200} of {host} is free.")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Context without the library's own messages on standard output."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
