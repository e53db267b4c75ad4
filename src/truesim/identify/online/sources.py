"""Where samples come from: a file that grows, the standard input, or a socket of this machine; CSV or JSON lines.

A line that cannot be read becomes a `Rejected` with the reason, and the stream goes on.
"""

import csv
import ipaddress
import json
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from truesim.core.errors import FileError, TruesimError
from truesim.data.mapping import ColumnMap
from truesim.identify.online.chunks import Rejected, Sample

POLL = 0.02
"""How often a file is looked at for new lines [s]."""
LONGEST_LINE = 1 << 20
"""A line longer than this is no sample [bytes]."""


def samples(
    stream: str, *, patience: float | None = None, mapping: ColumnMap | None = None
) -> Iterator[Sample | Rejected]:
    """Samples of a stream as they arrive.

    Args:
        stream: A file that grows, `-` for the standard input, or `tcp://127.0.0.1:PORT` to wait there for a sender of
            JSON lines.
        patience: The stream has ended when nothing came for this long [s]; None to wait for ever. The standard input
            ends when its sender does.
        mapping: How the stream's own columns are to be called.
    """
    if stream == "-":
        found = _parsed(iter(sys.stdin.readline, ""), "The standard input")
    else:
        found = _socket_samples(stream, patience) if "://" in stream else _file_samples(Path(stream), patience)
    return found if mapping is None else (_renamed(sample, mapping) for sample in found)


def _file_samples(path: Path, patience: float | None) -> Iterator[Sample | Rejected]:
    """Samples of a file, those that are appended later too."""
    if not path.is_file():
        raise FileError(f"There is no file {path} to watch; for a socket write tcp://127.0.0.1:PORT.")
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        yield from _parsed(_lines(file, patience), path.name)


def _parsed(lines: Iterator[str], source: str) -> Iterator[Sample | Rejected]:
    """Samples of lines: JSON objects, or CSV whose first line names the columns."""
    objects, names = False, list[str]()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        objects = objects or (not names and line.lstrip().startswith("{"))
        if objects:
            yield _object(line, number)
            continue
        cells = next(csv.reader([line]))
        if names:
            yield _row(names, cells, number)
        else:
            names = [cell.strip(" \t#%") for cell in cells]
            if "time" not in names:
                raise FileError(f"{source} has no column 'time': its first line is {line.strip()[:80]!r}.")


def _lines(file: IO[str], patience: float | None) -> Iterator[str]:
    """Whole lines; waits for what is still being written."""
    part, last = "", time.monotonic()
    while True:
        part += file.readline()
        if part.endswith("\n"):
            yield part
            part, last = "", time.monotonic()
        elif patience is not None and time.monotonic() - last > patience:
            if part.strip():
                yield part
            return
        else:
            time.sleep(POLL)


def _socket_samples(address: str, patience: float | None) -> Iterator[Sample | Rejected]:
    """JSON lines from the first sender that connects; the stream ends when it hangs up."""
    try:
        listening = socket.create_server(_address(address))
    except OSError as error:
        raise TruesimError(f"Nothing can be heard at {address}: {error.strerror}; give another port.") from None
    with listening as server:
        server.settimeout(patience)
        try:
            sender, _ = server.accept()
        except TimeoutError:
            return
        with sender, sender.makefile("r", encoding="utf-8", errors="replace") as file:
            sender.settimeout(patience)
            number = 0
            while True:
                try:
                    line = file.readline(LONGEST_LINE)
                except (TimeoutError, ConnectionError):
                    return
                number += 1
                if not line:
                    return
                if line.strip():
                    yield _object(line, number)


def _address(address: str) -> tuple[str, int]:
    parts = urlsplit(address)
    example = "tcp://127.0.0.1:5555"
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme != "tcp" or not parts.hostname or not port:
        raise TruesimError(f"{address!r} is no address to listen at; write {example}.")
    host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname
    try:
        own = ipaddress.ip_address(host).is_loopback
    except ValueError:
        own = False
    if not own:
        raise TruesimError(f"{address!r} is not on this machine; only addresses such as {example} are listened at.")
    return host, port


def _object(line: str, number: int) -> Sample | Rejected:
    try:
        found = json.loads(line)
    except ValueError:
        return Rejected(f"Line {number} is not JSON: {line.strip()[:60]!r}.")
    if not isinstance(found, dict):
        return Rejected(f'Line {number} is not an object such as {{"time": 0.1, "qpos/elbow": 0.5}}.')
    return _numbers(found, number)


def _row(names: list[str], cells: list[str], number: int) -> Sample | Rejected:
    if len(cells) != len(names):
        return Rejected(f"Line {number} has {len(cells)} values for {len(names)} columns.")
    return _numbers({name: cell for name, cell in zip(names, cells, strict=True) if cell.strip()}, number)


def _numbers(found: Mapping[str, object], number: int) -> Sample | Rejected:
    sample = {}
    for name, value in found.items():
        if value is None:
            continue
        try:
            sample[name] = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return Rejected(f"Line {number}: {name} is {str(value)[:40]!r}, which is not a number.")
    return sample


def _renamed(sample: Sample | Rejected, mapping: ColumnMap) -> Sample | Rejected:
    """The sample under the names of the convention, in SI units; other columns stay as they are."""
    if isinstance(sample, Rejected):
        return sample
    taken = {source.column for source in mapping.sources.values()}
    out = {name: value for name, value in sample.items() if name not in taken}
    for target, source in mapping.sources.items():
        if source.column is None:
            out[target] = source.offset
        elif source.column in sample:
            out[target] = source.factor * sample[source.column] + source.offset
    return out
