"""XML as the user wrote it: a tree that knows where each tag stands in the text, and edits that touch nothing else."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

import numpy as np
from numpy.typing import ArrayLike

from truesim.core.errors import FileError

ATTRIBUTE = re.compile(rb"""\s+([^\s=/>]+)\s*=\s*("[^"]*"|'[^']*')""")
DECLARED_ENCODING = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([\w.-]+)["']""")

SAME = 1e-15
"""A number this close to the one that is written, relative to the vector's largest, is left as the user wrote it."""


@dataclasses.dataclass(eq=False)
class Element:
    """One element; positions are byte offsets in the UTF-8 text."""

    tag: str
    attributes: dict[str, str]
    line: int
    start: int
    """Offset of the start tag's `<`."""
    parent: "Element | None" = None
    children: list["Element"] = dataclasses.field(default_factory=list)
    tag_end: int = 0
    """Offset behind the start tag's `>`."""
    end: int = 0
    """Offset of the end tag's `<`; of an element without content (`<a/>`), the same as `tag_end`."""
    hollow: bool = False
    """Whether it is written as `<a/>`."""

    def get(self, name: str, default: str = "") -> str:
        """Value of an attribute."""
        return self.attributes.get(name, default)

    def all(self, tag: str) -> list["Element"]:
        """Children with this tag."""
        return [child for child in self.children if child.tag == tag]

    def first(self, tag: str) -> "Element | None":
        """The first child with this tag."""
        return next((child for child in self.children if child.tag == tag), None)

    def walk(self) -> Iterator["Element"]:
        """This element and everything below it, in the order of the text."""
        yield self
        for child in self.children:
            yield from child.walk()


def read_text(path: Path) -> str:
    """Text of an XML file in the encoding that it declares, every byte of its line ends kept."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise FileError(f"There is no file {str(path)!r}.") from None
    except OSError as error:
        raise FileError(f"The file {str(path)!r} cannot be read: {error.strerror}.") from None
    declared = DECLARED_ENCODING.match(data.removeprefix(b"\xef\xbb\xbf"))
    encoding = declared[1].decode() if declared else "utf-8"
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        raise FileError(f"The file {str(path)!r} is not text in the encoding {encoding!r}.") from None


def write_text(path: Path, text: str) -> None:
    """Write text in the encoding that its XML declaration names."""
    declared = DECLARED_ENCODING.match(text.lstrip("\ufeff").encode())
    path.write_bytes(text.encode(declared[1].decode() if declared else "utf-8", errors="xmlcharrefreplace"))


def parse(text: str, name: str) -> Element:
    """The tree of an XML text.

    Args:
        text: The whole document.
        name: What to call it in errors.
    """
    data, open_elements, roots = text.encode(), [], []  # type: bytes, list[Element], list[Element]
    parser = expat.ParserCreate("utf-8")

    def start(tag: str, attributes: dict[str, str]) -> None:
        parent = open_elements[-1] if open_elements else None
        element = Element(tag, attributes, parser.CurrentLineNumber, parser.CurrentByteIndex, parent)
        element.tag_end = _tag_end(data, element.start)
        element.hollow = data[element.tag_end - 2 : element.tag_end] == b"/>"
        (parent.children if parent else roots).append(element)
        open_elements.append(element)

    def end(tag: str) -> None:
        element = open_elements.pop()
        element.end = element.tag_end if element.hollow else parser.CurrentByteIndex

    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise FileError(f"{name}, line {error.lineno}: broken XML ({expat.ErrorString(error.code)}).") from None
    return roots[0]


def _tag_end(data: bytes, start: int) -> int:
    """Offset behind the `>` that closes the start tag at `start`."""
    position = start + 1 + len(re.match(rb"[^\s/>]+", data[start + 1 :])[0])  # type: ignore[index]
    while match := ATTRIBUTE.match(data, position):
        position = match.end()
    return data.index(b">", position) + 1


def number(value: ArrayLike) -> str:
    """The shortest decimal that reads back as the same float."""
    return repr(float(np.asarray(value))).removesuffix(".0")


def numbers(values: ArrayLike) -> str:
    """Numbers separated by blanks, each the shortest that reads back the same."""
    return " ".join(number(value) for value in np.atleast_1d(values))


class Editor:
    """Collects edits of a text; everything that is not edited stays byte for byte."""

    def __init__(self, text: str):
        self.data = text.encode()
        self.edits: list[tuple[int, int, str]] = []

    def result(self) -> str:
        """The edited text."""
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
        same = (old == new) | (np.abs(new - written) <= SAME * np.max(np.abs(new)))
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
        """Take attributes out, with the blanks before them."""
        for match in self._attributes(element):
            if match[1].decode() in attributes:
                self.edits.append((match.start(), match.end(), ""))

    def rename(self, element: Element, tag: str) -> None:
        """Give an element another tag."""
        length = len(element.tag.encode())
        self.edits.append((element.start + 1, element.start + 1 + length, tag))
        if not element.hollow:
            self.edits.append((element.end + 2, element.end + 2 + length, tag))

    def insert(self, parent: Element, xml: str) -> None:
        """Put a new element in front of the parent's children, indented as they are."""
        newline = "\r\n" if b"\r\n" in self.data else "\n"
        outer = self._indent(parent)
        inner = self._indent(parent.children[0]) if parent.children else outer + "  "
        if parent.hollow:
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
        """The blanks in front of the element on its line; empty if something else stands there."""
        before = self.data[self.data.rfind(b"\n", 0, element.start) + 1 : element.start]
        return before.decode() if not before.strip() else ""
