"""XML elements with their positions in the text, under the rules of MuJoCo's reader.

Robot files are written for readers based on tinyxml2, which accept what XML forbids and people write: `--` in comments,
a bare `&` or `<` in values, attributes without a blank between them, blank lines before the declaration.
"""

import dataclasses
import re
from collections.abc import Iterator

from truesim.core.errors import FileError

MAX_NESTING = 300
"""Elements within each other; MuJoCo's own bound on a chain of bodies is lower than what a stack holds."""
NAME = rb"[A-Za-z_:\x80-\xff][\w:.\x80-\xff-]*+"
ATTRIBUTE = re.compile(rb"""\s*+(%b)\s*+=\s*+("[^"]*+"|'[^']*+')""" % NAME)
IGNORED = re.compile(rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<!(?!--|\[CDATA\[)[^>]*+>", re.DOTALL)
START_TAG = re.compile(rb"""<(%b)((?:\s*+%b\s*+=\s*+(?:"[^"]*+"|'[^']*+'))*+)\s*+(/?)>""" % (NAME, NAME))
END_TAG = re.compile(rb"</(%b)\s*+>" % NAME)
REFERENCE = re.compile(r"&(?:#x([0-9a-fA-F]{1,6})|#([0-9]{1,7})|(lt|gt|amp|quot|apos));")
CHARACTERS = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


@dataclasses.dataclass(eq=False)
class Element:
    """XML element; positions are byte offsets in the UTF-8 text."""

    tag: str
    attributes: dict[str, str]
    line: int
    start: int
    """Offset of the start tag's `<`."""
    parent: "Element | None" = None
    children: list["Element"] = dataclasses.field(default_factory=list)
    tag_end: int = 0
    """Offset after the start tag's `>`."""
    end: int = 0
    """Offset of the end tag's `<`; equal to `tag_end` for `<a/>`."""
    self_closing: bool = False
    """True if the element is written as `<a/>`."""
    file: str = ""
    """Name of the document."""

    def get(self, name: str, default: str = "") -> str:
        """Value of an attribute."""
        return self.attributes.get(name, default)

    def all(self, tag: str) -> list["Element"]:
        """Children with this tag."""
        return [child for child in self.children if child.tag == tag]

    def first(self, tag: str) -> "Element | None":
        """First child with this tag."""
        return next((child for child in self.children if child.tag == tag), None)

    def walk(self) -> Iterator["Element"]:
        """This element and all elements below it, in the order of the text."""
        yield self
        for child in self.children:
            yield from child.walk()


def parse(text: str, name: str, offset: int = 0) -> Element:
    """Parse an XML text; what follows the root element is not read.

    Args:
        text: The whole document.
        name: Name of the document, for errors.
        offset: Number of bytes before the document, if it is a part of a longer text; added to all positions.
    """
    try:
        data = text.removeprefix("\ufeff").encode()
    except UnicodeError as error:
        raise FileError(f"{name} holds text that is not valid: {error}.") from None
    offset += len(text.encode()) - len(data)
    document = _Document(data, name)
    open_elements: list[Element] = []
    for tag in document.tags():
        if tag.re is END_TAG:
            if tag[1].decode() != open_elements[-1].tag:
                raise document.broken("mismatched tag")
            element = open_elements.pop()
            element.end = tag.start() + offset
        else:
            element = document.element(tag, offset, open_elements)
            if not element.self_closing:
                open_elements.append(element)
        if not open_elements:
            return element
    raise document.broken("no element found" if not open_elements else f"<{open_elements[-1].tag}> is not closed")


class _Document:
    """A text and the place up to which it has been read."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data, self.name = data, name
        self.position, self.line = 0, 1

    def broken(self, what: str) -> FileError:
        """Error at the present line."""
        return FileError(f"{self.name}, line {self.line}: broken XML ({what}).")

    def tags(self) -> Iterator[re.Match[bytes]]:
        """Start and end tags, in the order of the text; comments and declarations are skipped."""
        depth = 0
        while True:
            begin = self.data.find(b"<", self.position)
            outside = self.data[self.position : begin if begin >= 0 else None]
            if not depth and outside.strip():
                self._advance(self.position + len(outside) - len(outside.lstrip()))
                raise self.broken("text outside of the root element")
            if begin < 0:
                self._advance(len(self.data))
                return
            self._advance(begin)
            found = IGNORED.match(self.data, begin)
            if found is None:
                found = START_TAG.match(self.data, begin) or END_TAG.match(self.data, begin)
                if found is None or (found.re is END_TAG and not depth):
                    raise self.broken("not well-formed")
                yield found
                depth += -1 if found.re is END_TAG else not found[3]
            self._advance(found.end())

    def element(self, tag: re.Match[bytes], offset: int, above: list[Element]) -> Element:
        """Element of a start tag, added to the innermost open element."""
        if len(above) > MAX_NESTING:
            raise FileError(f"{self.name}, line {self.line}: more than {MAX_NESTING} elements within each other.")
        attributes: dict[str, str] = {}
        for attribute in ATTRIBUTE.finditer(tag[2]):
            if (key := attribute[1].decode()) in attributes:
                raise self.broken(f"duplicate attribute {key!r}")
            attributes[key] = REFERENCE.sub(_character, attribute[2][1:-1].decode())
        parent = above[-1] if above else None
        start, end = tag.start() + offset, tag.end() + offset
        element = Element(tag[1].decode(), attributes, self.line, start, parent, [], end, end, bool(tag[3]), self.name)
        if parent is not None:
            parent.children.append(element)
        return element

    def _advance(self, position: int) -> None:
        self.line += self.data.count(b"\n", self.position, position)
        self.position = position


def _character(reference: re.Match[str]) -> str:
    """Character of a reference such as `&lt;` or `&#60;`; the text itself where there is none."""
    hexadecimal, decimal, name = reference.groups()
    if name:
        return CHARACTERS[name]
    code = int(hexadecimal, 16) if hexadecimal else int(decimal)
    valid = 0 < code < 0xD800 or 0xE000 <= code <= 0x10FFFF
    return chr(code) if valid else reference[0]
