"""A robot file and the files that it includes, as one text.

MuJoCo puts the elements of an included file in the place of `<include file="..."/>`. So that a number is edited in the
file in which it stands, the documents are kept one after the other in one text, `main NUL path NUL included ...`, and
`parse_documents` returns the elements of all of them as MuJoCo sees them, with positions in that text.
"""

import os
import re
from pathlib import Path

from truesim.core.errors import FileError
from truesim.files.robots.xml_edit import Editor, read_text
from truesim.files.robots.xml_parse import Element, parse

MARK = "\0"
"""Character around the path of an included document; XML cannot hold it."""
VIRTUAL = "|"
"""Character around the number of a document in its name for MuJoCo."""


def gather(text: str, path: Path) -> str:
    """Text of a robot file, followed by the files that it includes; a missing file is left to MuJoCo's own error.

    Args:
        text: The document.
        path: Its file, to which included files are relative.
    """
    if "<include" not in text or MARK in text:
        return text
    documents = {path.absolute(): text}
    pending = [path.absolute()]
    while pending:
        own = pending.pop()
        for element in parse(documents[own], own.name).walk():
            target = included_file(element, own, path)
            if target is not None and target not in documents:
                documents[target] = read_text(target)
                pending.append(target)
    return join(documents, path)


def join(documents: dict[Path, str], path: Path) -> str:
    """One text of documents by file; `path` is the robot file."""
    rest = [f"{MARK}{file}{MARK}{text}" for file, text in documents.items() if file != path.absolute()]
    return "".join([documents[path.absolute()], *rest])


def split(text: str, path: Path) -> dict[Path, str]:
    """Documents by file, the robot file's own first."""
    main, *rest = text.split(MARK)
    return {path.absolute(): main, **{Path(rest[k]): rest[k + 1] for k in range(0, len(rest), 2)}}


def virtual_files(text: str, path: Path) -> dict[str, bytes]:
    """Documents for MuJoCo by file name, the robot file's own first.

    MuJoCo knows a file that is given in memory by its base name alone, and takes it for every file of that name on
    disk, such as an attached model's: so each document gets a name that no file has. `real_names` undoes it.

    Args:
        text: What `gather` returned.
        path: The robot file.
    """
    documents, home = split(text, path), path.absolute().parent
    bases = {file: f"{VIRTUAL}{k}{VIRTUAL}{file.name}" for k, file in enumerate(documents)}
    names = {file: os.path.join(os.path.relpath(file.parent, home), base) for file, base in bases.items()}
    renamed = rename_included(documents, path, names)
    return {str(file.parent / bases[file]): document.encode() for file, document in renamed.items()}


def real_names(message: str) -> str:
    """Message of MuJoCo with the names of files on disk."""
    return re.sub(rf"{re.escape(VIRTUAL)}\d+{re.escape(VIRTUAL)}", "", message)


def included_file(element: Element, own: Path, path: Path) -> Path | None:
    """File that an `<include>` names, or None: beside the robot file, else beside the including file.

    Args:
        element: Any element.
        own: File in which it stands.
        path: The robot file.
    """
    if element.tag != "include" or not element.get("file"):
        return None
    for home in (path.absolute().parent, own.parent):
        file = Path(os.path.normpath(home / element.get("file")))
        if file.is_file():
            return file
        if file.exists():
            raise FileError(f"{own.name}, line {element.line}: {str(file)!r} is not a regular file.")
    return None


def parse_documents(text: str, path: Path) -> Element:
    """The root element, with the elements of included files in the places of their `<include>`.

    Args:
        text: What `gather` returned.
        path: The robot file.
    """
    roots: dict[Path, Element] = {}
    offset = 0
    for file, document in split(text, path).items():
        if roots:
            offset += len(f"{MARK}{file}{MARK}".encode())
        roots[file] = parse(document, file.name, offset)
        offset += len(document.encode())
    main = roots[path.absolute()]
    _expand(main, path.absolute(), path, roots, {path.absolute()})
    return main


def _expand(element: Element, own: Path, path: Path, roots: dict[Path, Element], seen: set[Path]) -> None:
    children: list[Element] = []
    for child in element.children:
        target = included_file(child, own, path)
        if target is None or target not in roots or target in seen:
            _expand(child, own, path, roots, seen)
            children.append(child)
            continue
        seen.add(target)
        _expand(roots[target], target, path, roots, seen)
        for grandchild in roots[target].children:
            grandchild.parent = element
        children += roots[target].children
    element.children = children


def rename_included(documents: dict[Path, str], path: Path, names: dict[Path, str]) -> dict[Path, str]:
    """Documents in which every `<include>` of a renamed file has the new name.

    Args:
        documents: Text by file.
        path: The robot file.
        names: New name by file, relative to the robot file.
    """
    return {own: _rename_in(text, own, path, names) for own, text in documents.items()}


def _rename_in(text: str, own: Path, path: Path, names: dict[Path, str]) -> str:
    if "<include" not in text:
        return text
    editor = Editor(text)
    for element in parse(text, own.name).walk():
        target = included_file(element, own, path)
        if target in names:
            editor.set(element, "file", names[target])
    return editor.result()
