"""A changed model goes back into the user's own file; what the file does not take goes to the sidecar."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from truesim.core.errors import FileError, TruesimError
from truesim.formats import sidecar
from truesim.formats.changes import check_finite, check_structure, differing, rounded_off, with_laws, with_values
from truesim.formats.export import EXPORTERS, kept_by_urdf
from truesim.formats.load import loads
from truesim.formats.mjcf_edit import edit_mjcf
from truesim.formats.urdf_edit import edit_urdf
from truesim.formats.xml_edit import write_text
from truesim.model import paths
from truesim.model.model import Model
from truesim.model.source import Finding, Source

SUFFIXES = {".xml": "mjcf", ".mjcf": "mjcf", ".urdf": "urdf"}
EDITORS = {"mjcf": edit_mjcf, "urdf": edit_urdf}
Beside = dict[str, Any]
"""Values for the sidecar, by path."""
PASSES = 4
"""An edit can uncover another, such as a mass that came from a geom; three passes are the most that MJCF needs."""


def save(model: Model, path: str | os.PathLike[str]) -> tuple[Finding, ...]:
    """What could not be kept in the file itself, after writing the model as MJCF (`.xml`) or URDF (`.urdf`).

    The text that the model was loaded from stays as it is, except for the numbers that changed. Numbers that the
    format cannot hold go to `<path>.truesim.json`, which `load` reads by itself.

    Args:
        model: A model from `load`, with any numbers changed.
        path: Where to write; its suffix says in which format.
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
    write_text(path, text)
    sidecar.write(path, beside)
    return lost + _in_sidecar(beside)


def _format(path: Path, source: Source) -> str:
    """The format to write: the source's own in its own file, else what the suffix says."""
    if path.absolute() == source.path:
        return source.format
    if path.suffix not in SUFFIXES:
        raise FileError(f"Cannot tell the format of {path.name!r}: end it in .xml for MJCF or in .urdf for URDF.")
    return SUFFIXES[path.suffix]


def _into_own_text(model: Model, source: Source) -> tuple[str, Beside, tuple[Finding, ...]]:
    """The source text with the changes, what it did not take, and what is lost."""
    base = _read(source.text, source, model)
    check_structure(model, base)
    model = rounded_off(model, base)
    text, left = _write_into(source.text, source, model)
    lost = () if model.options == base.options else (Finding("options", "changed options are not written", "warning"),)
    return text, _beside(model, base, left), lost


def _into_other_format(model: Model, path: Path) -> tuple[str, Beside, tuple[Finding, ...]]:
    """The model's text in the format of `path`, what it does not hold, and what is lost."""
    kind = SUFFIXES[path.suffix]
    text, lost = EXPORTERS[kind](model)
    source = Source(path, text, kind)
    exported = _read(text, source, model)
    if kind == "urdf":
        left = [at for at in differing(model, exported) if kept_by_urdf(model, exported, at)]
    else:
        text, left = _write_into(text, source, model)
    return text, _beside(model, exported, left), lost


def _beside(model: Model, base: Model, left: list[paths.Path]) -> Beside:
    """What the sidecar has to hold: the laws that the base took over, and the model's values at these paths."""
    values = {str(at): np.asarray(paths.read(model, at), dtype=float).tolist() for at in left}
    return {**sidecar.laws(base), **values}


def _write_into(text: str, source: Source, model: Model) -> tuple[str, list[paths.Path]]:
    """The text edited until it gives the model, and the paths at which it does not: there it stays as it was."""
    start = _read(text, source, model)
    edited, base = _repeated(text, source, start, model)
    left = differing(model, base)
    if set(left) & set(differing(base, start)):
        edited, base = _repeated(text, source, start, with_values(model, start, left))
    return edited, differing(model, base)


def _repeated(text: str, source: Source, base: Model, model: Model) -> tuple[str, Model]:
    """The text after as many passes as change it, and the model that it gives."""
    for _ in range(PASSES):
        edited, base = _edited(text, source, base, model, differing(model, base))
        if edited == text:
            break
        text = edited
    return text, base


def _edited(text: str, source: Source, base: Model, model: Model, changed: list[paths.Path]) -> tuple[str, Model]:
    """The text with the changes at these paths, and the model that it gives.

    If the text no longer loads, as with an inertia that MuJoCo refuses, the changes are tried in halves, so that only
    the number at fault stays as it was.

    Args:
        text: The text to edit.
        source: Where it lives.
        base: The model that it gives.
        model: The model that it should give.
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
    text, base = _edited(text, source, base, model, changed[:middle])
    return _edited(text, source, base, model, changed[middle:])


def _read(text: str, source: Source, model: Model) -> Model:
    """The model that a text gives, with the laws of `model`, which no text can hold."""
    return with_laws(loads(text, path=source.path, floating_base=source.floating_base), model)


def _in_sidecar(beside: Beside) -> tuple[Finding, ...]:
    return tuple(Finding(path, "the file cannot hold it: it is kept in the sidecar", "note") for path in beside)


def _moved_away(source: Source, path: Path) -> tuple[Finding, ...]:
    """A warning if the text names files relative to a folder that it no longer stands in."""
    names_files = "file=" in source.text or "filename=" in source.text
    if not names_files or path.absolute().parent == source.path.parent:
        return ()
    message = f"its meshes and included files are still looked for relative to it, but lie beside {source.path}"
    return (Finding(path.name, message, "warning"),)
