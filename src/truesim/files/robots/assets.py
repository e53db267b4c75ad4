"""Files that a robot file refers to: meshes, textures, height fields and included files."""

import dataclasses
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from truesim.core.errors import TruesimError
from truesim.files.robots.documents import join, rename_included, split
from truesim.files.robots.save import save
from truesim.files.robots.urdf_geometry import find_file
from truesim.files.robots.xml_edit import Editor, write_text
from truesim.files.robots.xml_parse import Element, parse
from truesim.physics.model.model import Model
from truesim.physics.model.source import Finding, Source

DIRECTORIES = ("meshdir", "texturedir", "assetdir")
OUTSIDE = "parent"
"""Folder that stands for `..` beside a copied robot file, so that nothing is written outside of its folder."""
PACKAGE_FOLDER = "packages"
"""Folder for files of ROS packages beside a copied robot file."""

Copies = dict[str, Path]
"""Original file by its new place, relative to the robot file."""


def save_with_assets(model: Model, path: Path) -> tuple[Finding, ...]:
    """Save a model as `save` does, together with copies of all files that its text refers to by relative path.

    Copies keep their places relative to the robot file; `..` becomes a folder `parent`, and references are changed
    accordingly. Files that do not exist are left out.

    Args:
        model: A model from `load`.
        path: File to write, in the model's own format; its folder must exist.
    """
    source = model.source
    if source is None:
        raise TruesimError("This model did not come from a file or text, so there is nothing to write into.")
    if path.absolute() == source.path:
        return save(model, path)
    return save(dataclasses.replace(model, source=copy_assets(source, path)), path)


def copy_assets(source: Source, path: Path) -> Source:
    """Copy a robot file and what it refers to; returns the source at its new place.

    Args:
        source: Robot file, as read.
        path: Its new file.
    """
    copies: Copies = {}
    documents = split(source.text, source.path)
    if source.format == "mjcf":
        documents = _move_mjcf(documents, source.path, copies)
    else:
        documents = {source.path: _move_urdf(documents[source.path], source.path, copies)}
    names = {own: _inside(os.path.relpath(own, source.path.parent)) for own in documents if own != source.path}
    documents = rename_included(documents, source.path, names)
    moved = {
        path.absolute() if own == source.path else path.absolute().parent / names[own]: documents[own]
        for own in documents
    }
    for place, origin in copies.items():
        target = path.parent / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(origin, target)
    for file, text in moved.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, text)
    return dataclasses.replace(source, path=path.absolute(), text=join(moved, path))


def _move_mjcf(documents: dict[Path, str], path: Path, copies: Copies) -> dict[Path, str]:
    """Documents with references that stay inside of a folder; adds the files to copy."""
    roots = {own: parse(text, own.name) for own, text in documents.items()}
    elements = [element for root in roots.values() for element in root.walk()]
    directories = ["", *(value for element in elements for value in _directories(element).values())]
    moved = {}
    for own, text in documents.items():
        editor = Editor(text)
        for element in roots[own].walk():
            for name, value in _directories(element).items():
                editor.set(element, name, _inside(value))
            if element.tag != "include":
                _move_file(editor, element, path.parent, directories, copies)
        moved[own] = editor.result()
    return moved


def _directories(element: Element) -> dict[str, str]:
    """Relative directories that a `<compiler>` names, by attribute."""
    if element.tag != "compiler":
        return {}
    given = {name: element.get(name) for name in DIRECTORIES if element.get(name)}
    return {name: value for name, value in given.items() if not Path(value).is_absolute()}


def _move_file(editor: Editor, element: Element, home: Path, directories: list[str], copies: Copies) -> None:
    for attribute, name in element.attributes.items():
        if not attribute.startswith("file") or not name or Path(name).is_absolute():
            continue
        for folder, own in _candidates(name, directories):
            if (home / folder / own).is_file():
                place = _inside(os.path.join(folder, own))
                copies[place] = home / folder / own
                editor.set(element, attribute, os.path.relpath(place, _inside(folder) or "."))
                break


def _candidates(name: str, directories: list[str]) -> Iterator[tuple[str, str]]:
    """Places at which MuJoCo may look for a file: with its path, and without it (`strippath`)."""
    for own in dict.fromkeys((name, Path(name).name)):
        for folder in dict.fromkeys(reversed(directories)):
            yield folder, own


def _move_urdf(text: str, path: Path, copies: Copies) -> str:
    editor = Editor(text)
    for element in parse(text, path.name).walk():
        address = element.get("filename")
        file = find_file(address, path) if address else None
        if file is None or address.startswith("file://") or Path(address).is_absolute():
            continue
        package = address.startswith("package://")
        place = f"{PACKAGE_FOLDER}/{address.removeprefix('package://').lstrip('/')}" if package else _inside(address)
        copies[place] = file
        editor.set(element, "filename", place)
    return editor.result()


def _inside(relative: str) -> str:
    """Relative path with `parent` in place of each `..` that leads out of the folder."""
    normal = os.path.normpath(relative) if relative else ""
    parts = [OUTSIDE if part == ".." else part for part in Path(normal).parts]
    return "/".join(parts)
