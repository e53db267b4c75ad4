"""Sources of samples: a growing file, standard input, or a local socket, with CSV or JSON lines.

A line that cannot be read becomes a `Rejected` with the reason, and the stream continues.
"""

import csv
import ipaddress
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from truesim.core.errors import FileError, TruesimError
from truesim.files.logs.mapping import ColumnMap
from truesim.identification.online.chunks import Rejected, Sample

POLL_INTERVAL = 0.02
"""Time between checks of a file for new lines [s]."""
SILENCE = 2.0
"""Time without a sample after which a stream counts as waiting, and a file that has not grown as finished [s]."""
LONGEST_LINE = 1 << 20
"""Maximum length of a line [bytes]."""


def samples(
    stream: str,
    *,
    patience: float | None = None,
    mapping: ColumnMap | None = None,
    follow: bool = True,
    waiting: Callable[[], None] | None = None,
) -> Iterator[Sample | Rejected]:
    """Read the samples of a stream as they arrive.

    Args:
        stream: A growing file, `-` for standard input, or `tcp://127.0.0.1:PORT` to listen for a sender of JSON lines.
        patience: Time without data after which a stream ends [s]; None to wait forever. Standard input ends with its
            sender.
        mapping: Names and units of the stream's columns.
        follow: Whether to wait for more of a file that has not grown since it was opened.
        waiting: Called once when nothing has arrived for two seconds.
    """
    say = waiting or (lambda: None)
    if stream == "-":
        found = _parse(iter(sys.stdin.readline, ""), "The standard input")
    else:
        found = (
            _socket_samples(stream, patience) if "://" in stream else _file_samples(Path(stream), patience, follow, say)
        )
    return found if mapping is None else (_rename(sample, mapping) for sample in found)


def _file_samples(
    path: Path, patience: float | None, follow: bool, say: Callable[[], None]
) -> Iterator[Sample | Rejected]:
    """Samples of a file, including those that are appended later."""
    if not path.is_file():
        raise FileError(f"There is no file {path} to watch; for a socket write tcp://127.0.0.1:PORT.")
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        yield from _parse(_lines(file, patience, follow, say), path.name)


def _parse(lines: Iterator[str], source: str) -> Iterator[Sample | Rejected]:
    """Parse lines: JSON objects, or CSV with a header."""
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


def _lines(file: IO[str], patience: float | None, follow: bool, say: Callable[[], None]) -> Iterator[str]:
    """Complete lines of a file; waits for lines that are still being written."""
    part, last, said = "", time.monotonic(), False
    size = os.fstat(file.fileno()).st_size
    while True:
        part += file.readline()
        idle = time.monotonic() - last
        if part.endswith("\n"):
            yield part
            part, last = "", time.monotonic()
            continue
        finished = not follow and idle > SILENCE and os.fstat(file.fileno()).st_size == size
        if finished or (patience is not None and idle > patience):
            if part.strip():
                yield part
            return
        if idle > SILENCE and not said:
            said = True
            say()
        time.sleep(POLL_INTERVAL)


def _socket_samples(address: str, patience: float | None) -> Iterator[Sample | Rejected]:
    """JSON lines of the first sender that connects; the stream ends when it disconnects."""
    try:
        listening = socket.create_server(_address(address))
    except OSError as error:
        raise TruesimError(f"Cannot listen at {address}: {error.strerror}; give another port.") from None
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
        raise TruesimError(f"{address!r} is not a valid address; write {example}.")
    host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname
    try:
        own = ipaddress.ip_address(host).is_loopback
    except ValueError:
        own = False
    if not own:
        raise TruesimError(f"{address!r} is not an address of this machine; write one such as {example}.")
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


def _rename(sample: Sample | Rejected, mapping: ColumnMap) -> Sample | Rejected:
    """Sample with mapped names in SI units; other columns are unchanged."""
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
