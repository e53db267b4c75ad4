"""Save a changed model into the user's own file, and what the file cannot hold into the sidecar."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from truesim.core.errors import FileError, TruesimError
from truesim.files.robots import sidecar
from truesim.files.robots.changes import (
    check_finite,
    check_structure,
    differing,
    undo_rounding,
    with_actuator_models,
    with_couplings,
    with_values,
)
from truesim.files.robots.documents import MARK, rename_included, split
from truesim.files.robots.export import EXPORTERS, kept_by_urdf, with_relative_files
from truesim.files.robots.load import loads
from truesim.files.robots.mjcf_edit import edit_mjcf
from truesim.files.robots.urdf_edit import edit_urdf
from truesim.files.robots.xml_edit import write_text
from truesim.physics.model import paths
from truesim.physics.model.model import Model
from truesim.physics.model.source import Finding, Source

FORMAT_OF_SUFFIX = {".xml": "mjcf", ".mjcf": "mjcf", ".urdf": "urdf"}
EDITORS = {"mjcf": edit_mjcf, "urdf": edit_urdf}
SidecarValues = dict[str, Any]
"""Values for the sidecar, by path."""
ROUNDED = ("delay",)
"""Fields of which the text may hold an approximation: what a simulator can do with it; the sidecar holds the value."""
MAX_EDIT_PASSES = 4
"""Maximum edits of a text; an edit can require another, such as a mass that came from a geom. MJCF needs three."""


def save(model: Model, path: str | os.PathLike[str]) -> tuple[Finding, ...]:
    """Write a model as MJCF (`.xml`) or URDF (`.urdf`); returns findings about what the file cannot hold.

    The text that the model was loaded from is kept, except for the numbers that changed. Numbers that the format cannot
    hold go to `<path>.truesim.json`, which `load` reads as well.

    Args:
        model: A model from `load`, with any numbers changed.
        path: File to write; its suffix gives the format.
    """
    path = Path(path)
    if model.source is None:
        raise TruesimError("This model did not come from a file or text, so there is nothing to write into.")
    if not path.absolute().parent.is_dir():
        raise FileError(f"There is no folder {str(path.parent)!r} to save {path.name!r} in.")
    check_finite(model)
    if _format(path, model.source) == model.source.format:
        text, beside, lost = _into_own_text(model, model.source)
        lost += _moved_away(model.source, path)
    else:
        text, beside, lost = _into_other_format(model, path)
    _write_documents(text, model.source, path)
    sidecar.write(path, beside)
    return lost + _in_sidecar(beside)


def _write_documents(text: str, source: Source, path: Path) -> None:
    """Write the robot file and those included files that changed: in place, or beside a new robot file.

    An included file may belong to other robots too, so beside a new `arm2.xml` it becomes `arm2.part.xml`.
    """
    old = split(source.text, source.path)
    home = source.path if MARK in text else path
    new = split(text, home)
    changed = [file for file in new if file != home.absolute() and old.get(file) != new[file]]
    names: dict[Path, str] = {}
    documents = new
    while path.absolute() != source.path and (added := [file for file in changed if file not in names]):
        names |= {file: f"{path.stem}.{file.name}" for file in added}
        documents = rename_included(new, home, names)
        changed += [file for file in new if file != home.absolute() and documents[file] != new[file]]
    for file in changed:
        write_text(path.parent / names.get(file, file), documents[file])
    write_text(path, documents[home.absolute()])


def _format(path: Path, source: Source) -> str:
    """Format to write: the source's own in its own file, else that of the suffix."""
    if path.absolute() == source.path:
        return source.format
    if path.suffix not in FORMAT_OF_SUFFIX:
        raise FileError(f"Cannot tell the format of {path.name!r}: end it in .xml for MJCF or in .urdf for URDF.")
    return FORMAT_OF_SUFFIX[path.suffix]


def _into_own_text(model: Model, source: Source) -> tuple[str, SidecarValues, tuple[Finding, ...]]:
    """Source text with the changes, values for the sidecar, and findings about what is lost."""
    base = _read(source.text, source, model)
    check_structure(model, base)
    model = undo_rounding(model, base)
    text, left = _write_into(source.text, source, base, model)
    changed = Finding("defaults", "changed simulation defaults are not written", "warning")
    lost = () if model.defaults == base.defaults else (changed,)
    return text, _beside(model, base, left), lost


def _into_other_format(model: Model, path: Path) -> tuple[str, SidecarValues, tuple[Finding, ...]]:
    """Text of the model in the format of `path`, values for the sidecar, and findings about what is lost."""
    kind = FORMAT_OF_SUFFIX[path.suffix]
    text, lost = EXPORTERS[kind](model)
    text = with_relative_files(text, path.parent)
    source = Source(path, text, kind)
    exported = _read(text, source, model)
    if kind == "urdf":
        left = [at for at in differing(model, exported) if kept_by_urdf(model, exported, at)]
    else:
        text, left = _write_into(text, source, exported, model)
    return text, _beside(model, exported, left), lost


def _beside(model: Model, base: Model, left: list[paths.Path]) -> SidecarValues:
    """Values for the sidecar: the base's actuator models, and the model's values at these paths."""
    values = {str(at): np.asarray(paths.read(model, at), dtype=float).tolist() for at in left}
    return {**sidecar.actuator_models(base), **sidecar.coupled_motors(base), **values}


def _write_into(text: str, source: Source, start: Model, model: Model) -> tuple[str, list[paths.Path]]:
    """Text, of the model `start`, edited to represent the model, and the paths at which it is left unchanged."""
    edited, base = _edit_repeatedly(text, source, start, model)
    left = [at for at in differing(model, base) if at.field not in ROUNDED]
    if set(left) & set(differing(base, start)):
        edited, base = _edit_repeatedly(text, source, start, with_values(model, start, left))
    return edited, differing(model, base)


def _edit_repeatedly(text: str, source: Source, base: Model, model: Model) -> tuple[str, Model]:
    """Text edited until it no longer changes, and its model."""
    for _ in range(MAX_EDIT_PASSES):
        edited, base = _edit(text, source, base, model, differing(model, base))
        if edited == text:
            break
        text = edited
    return text, base


def _edit(text: str, source: Source, base: Model, model: Model, changed: list[paths.Path]) -> tuple[str, Model]:
    """Text with the changes at these paths, and its model.

    If the text no longer loads, as with an inertia that MuJoCo refuses, the changes are tried in halves, so that only
    the invalid number is left unchanged.

    Args:
        text: The text to edit.
        source: Its file.
        base: Model of the text.
        model: Model that the text should represent.
        changed: The paths to change.
    """
    edited = EDITORS[source.format](text, source.path, base, with_values(base, model, changed))
    if edited == text:
        return text, base
    try:
        return edited, _read(edited, source, model)
    except FileError:
        if len(changed) == 1:
            return text, base
    middle = len(changed) // 2
    text, base = _edit(text, source, base, model, changed[:middle])
    return _edit(text, source, base, model, changed[middle:])


def _read(text: str, source: Source, model: Model) -> Model:
    """Model of a text, with the actuator models and coupled motors of `model`, which not every text can hold."""
    read = loads(text, path=source.path, floating_base=source.floating_base, held=source.held)
    return with_couplings(with_actuator_models(read, model), model)


def _in_sidecar(beside: SidecarValues) -> tuple[Finding, ...]:
    return tuple(Finding(path, "the file cannot hold it: it is kept in the sidecar", "note") for path in beside)


def _moved_away(source: Source, path: Path) -> tuple[Finding, ...]:
    """Warning if the text refers to files relative to a folder in which it no longer is."""
    names_files = "file=" in source.text or "filename=" in source.text
    if not names_files or path.absolute().parent == source.path.parent:
        return ()
    message = f"its meshes and included files are still looked for relative to it, but lie beside {source.path}"
    return (Finding(path.name, message, "warning"),)
