"""A robot file becomes a model: the format is told by the root element, the sidecar is read by itself."""

import os
from pathlib import Path

from truesim.core.errors import FileError
from truesim.formats import sidecar
from truesim.formats.mjcf import read_mjcf
from truesim.formats.urdf import read_urdf
from truesim.formats.xml_edit import parse, read_text
from truesim.model.model import Model
from truesim.model.source import Source

FORMATS = {"mujoco": "mjcf", "robot": "urdf"}
READERS = {"mjcf": read_mjcf, "urdf": read_urdf}


def load(path: str | os.PathLike[str], *, floating_base: bool = False) -> Model:
    """The model in an MJCF or URDF file, with the changes that its sidecar holds.

    What the file has and the simulation leaves out is listed in `model.findings`.

    Args:
        path: The robot file.
        floating_base: Let the root link of a URDF move freely, for robots that walk or fly.
    """
    path = Path(path)
    model = loads(read_text(path), path=path, floating_base=floating_base)
    return sidecar.apply(model, path)


def loads(text: str, *, path: str | os.PathLike[str] = "robot.xml", floating_base: bool = False) -> Model:
    """The model in an MJCF or URDF text; no sidecar is read.

    Args:
        text: The document.
        path: Where it lives: meshes and included files are looked for beside it.
        floating_base: Let the root link of a URDF move freely.
    """
    path = Path(path)
    root = parse(text, path.name)
    if root.tag not in FORMATS:
        raise FileError(f"{path.name} is neither MJCF nor URDF: its root is <{root.tag}>, not <mujoco> or <robot>.")
    source = Source(path.absolute(), text, FORMATS[root.tag], floating_base)
    if floating_base and source.format == "mjcf":
        raise FileError(f"{path.name} is MJCF: a floating base is for URDF; give the root body a <freejoint/> instead.")
    return READERS[source.format](text, source)
