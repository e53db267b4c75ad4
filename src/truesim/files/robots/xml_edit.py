"""Edits of XML that keep the rest of the text byte for byte."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from truesim.core.errors import FileError
from truesim.files.robots.xml_parse import ATTRIBUTE, Element

DECLARED_ENCODING = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([\w.-]+)["']""")

UNCHANGED_NUMBER = 1e-15
"""Difference, relative to the vector's largest entry, up to which a number stays as the user wrote it."""


def read_text(path: Path) -> str:
    """Text of an XML file in its declared encoding, with its line ends; Latin-1 if it is not in that encoding."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise FileError(f"{str(path)!r} is not a regular file.")
        data = path.read_bytes()
    except FileNotFoundError:
        raise FileError(f"There is no file {str(path)!r}.") from None
    except OSError as error:
        raise FileError(f"The file {str(path)!r} cannot be read: {error.strerror}.") from None
    encoding = _encoding(data.removeprefix(b"\xef\xbb\xbf"))
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        if b"\0" in data:
            raise FileError(f"The file {str(path)!r} is not text in the encoding {encoding!r}.") from None
        return data.decode("latin-1")


def write_text(path: Path, text: str) -> None:
    """Write text in the encoding of its XML declaration."""
    path.write_bytes(text.encode(_encoding(text.lstrip("\ufeff").encode()), errors="xmlcharrefreplace"))


def _encoding(data: bytes) -> str:
    """Encoding of the XML declaration; UTF-8 if there is none, or none that exists."""
    declared = DECLARED_ENCODING.match(data)
    name = declared[1].decode() if declared else "utf-8"
    try:
        b" ".decode(name)
    except LookupError:
        return "utf-8"
    return name


def number(value: ArrayLike) -> str:
    """Shortest decimal that reads back as the same float."""
    return repr(float(np.asarray(value))).removesuffix(".0")


def numbers(values: ArrayLike) -> str:
    """Numbers separated by blanks, each the shortest decimal that reads back as the same float."""
    return " ".join(number(value) for value in np.atleast_1d(values))


class Editor:
    """Collection of edits of a text; the rest of the text stays byte for byte."""

    def __init__(self, text: str):
        self.data = text.encode()
        self.edits: list[tuple[int, int, str]] = []

    def result(self) -> str:
        """Edited text."""
        pieces, position = [], 0
        for start, stop, new in sorted(self.edits, key=lambda edit: edit[:2]):
            pieces += [self.data[position:start], new.encode()]
            position = stop
        return b"".join([*pieces, self.data[position:]]).decode()

    def set_numbers(self, element: Element, attribute: str, old: ArrayLike, new: ArrayLike) -> None:
        """Replace the numbers of an attribute that differ between `old` and `new`; add the attribute if absent."""
        old, new = np.atleast_1d(old), np.atleast_1d(new)
        if np.array_equal(old, new):
            return
        span = self._value_span(element, attribute)
        if span is None:
            self._add(element, attribute, numbers(new))
            return
        tokens = list(re.finditer(rb"[^\s]+", self.data[slice(*span)]))
        if np.array_equal(old[len(tokens) :], new[len(tokens) :]):
            old, new = old[: len(tokens)], new[: len(tokens)]
        written = np.array([float(token[0]) for token in tokens[: len(new)]])
        if len(written) < len(new) or not np.allclose(written, old, rtol=1e-9, atol=1e-12):
            rest = [token[0].decode() for token in tokens[len(new) :]]
            self.edits.append((*span, " ".join([numbers(new), *rest])))
            return
        same = (old == new) | (np.abs(new - written) <= UNCHANGED_NUMBER * np.max(np.abs(new)))
        for token, after, keep in zip(tokens, new, same, strict=False):
            if not keep:
                self.edits.append((span[0] + token.start(), span[0] + token.end(), number(after)))

    def set(self, element: Element, attribute: str, value: str) -> None:
        """Replace the whole value of an attribute; add the attribute if absent."""
        span = self._value_span(element, attribute)
        if span is None:
            self._add(element, attribute, value)
        else:
            self.edits.append((*span, value))

    def remove(self, element: Element, *attributes: str) -> None:
        """Remove attributes and the blanks before them."""
        for match in self._attributes(element):
            if match[1].decode() in attributes:
                self.edits.append((match.start(), match.end(), ""))

    def rename(self, element: Element, tag: str) -> None:
        """Change the tag of an element."""
        length = len(element.tag.encode())
        self.edits.append((element.start + 1, element.start + 1 + length, tag))
        if not element.self_closing:
            self.edits.append((element.end + 2, element.end + 2 + length, tag))

    def insert(self, parent: Element, xml: str) -> None:
        """Insert a new element before the parent's children, with their indentation."""
        newline = "\r\n" if b"\r\n" in self.data else "\n"
        outer = self._indent(parent)
        inner = self._indent(parent.children[0]) if parent.children else outer + "  "
        if parent.self_closing:
            slash = self.data.rindex(b"/", parent.start, parent.tag_end)
            while self.data[slash - 1 : slash].isspace():
                slash -= 1
            closing = f">{newline}{inner}{xml}{newline}{outer}</{parent.tag}>"
            self.edits.append((slash, parent.tag_end, closing))
        else:
            on_one_line = parent.children and b"\n" not in self.data[parent.tag_end : parent.children[0].start]
            self.edits.append((parent.tag_end, parent.tag_end, xml if on_one_line else f"{newline}{inner}{xml}"))

    def _add(self, element: Element, attribute: str, value: str) -> None:
        attributes = list(self._attributes(element))
        at = attributes[-1].end() if attributes else element.start + 1 + len(element.tag.encode())
        self.edits.append((at, at, f' {attribute}="{value}"'))

    def _attributes(self, element: Element) -> Iterator[re.Match[bytes]]:
        position = element.start + 1 + len(element.tag.encode())
        while match := ATTRIBUTE.match(self.data, position):
            yield match
            position = match.end()

    def _value_span(self, element: Element, attribute: str) -> tuple[int, int] | None:
        for match in self._attributes(element):
            if match[1].decode() == attribute:
                return match.start(2) + 1, match.end(2) - 1
        return None

    def _indent(self, element: Element) -> str:
        """Blanks before the element on its line; empty if other text precedes it."""
        before = self.data[self.data.rfind(b"\n", 0, element.start) + 1 : element.start]
        return before.decode() if not before.strip() else ""
