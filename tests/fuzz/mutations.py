"""Mutations of files: bytes, numbers and words are changed, taken out, doubled and moved."""

import random
import re

NUMBER = re.compile(rb"-?\d+\.?\d*(?:[eE][-+]?\d+)?")
STRANGE = (
    *(b"nan", b"-1", b"0", b"1e308", b"999999999", b"-inf", b"", b"2147483648", b"1e-320", b"1e9"),
    *(b"abc", b"\xff\xfe", b"null", b"[]", b"{}", b'"'),
)
"""What stands in the place of a number; the first ones keep most formats intact."""
NUMBERS = STRANGE[:10]


def mutate(data: bytes, seed: int, count: int | None = None) -> bytes:
    """Data with a few random changes; those of odd seeds only replace numbers by others.

    Args:
        data: The content of a file.
        seed: Of the changes.
        count: Number of changes; one to four by default.
    """
    draw = random.Random(seed)
    kinds = (_numeric,) if seed % 2 else KINDS
    for _ in range(count or draw.randint(1, 4)):
        data = draw.choice(kinds)(data, draw)
    return data


def _flip(data: bytes, draw: random.Random) -> bytes:
    if not data:
        return data
    at = draw.randrange(len(data))
    return data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]


def _cut(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _remove(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + data[at + draw.randint(1, 40) :]


def _double(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    part = data[at : at + draw.randint(1, 200)]
    return data[:at] + part * draw.randint(2, 4) + data[at + len(part) :]


def _number(data: bytes, draw: random.Random, words: tuple[bytes, ...] = STRANGE) -> bytes:
    found = list(NUMBER.finditer(data))
    if not found:
        return _flip(data, draw)
    match = draw.choice(found)
    return data[: match.start()] + draw.choice(words) + data[match.end() :]


def _numeric(data: bytes, draw: random.Random) -> bytes:
    return _number(data, draw, NUMBERS)


def _swap_lines(data: bytes, draw: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if len(lines) < 2:
        return _double(data, draw)
    a, b = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


KINDS = (_flip, _flip, _cut, _remove, _double, _number, _number, _number, _swap_lines)
"""Kinds of changes; those of numbers are the most telling."""
