"""Load a robot file as a model; the root element gives the format, the sidecar is applied if there is one."""

import os
from collections.abc import Sequence
from pathlib import Path

from truesim.core.errors import FileError, parsing
from truesim.files.robots import sidecar
from truesim.files.robots.documents import MARK, gather
from truesim.files.robots.mjcf import read_mjcf
from truesim.files.robots.urdf import read_urdf
from truesim.files.robots.xml_edit import read_text
from truesim.files.robots.xml_parse import parse
from truesim.physics.model.model import Model
from truesim.physics.model.source import Source

FORMATS = {"mujoco": "mjcf", "robot": "urdf"}
ROBOT_READERS = {"mjcf": read_mjcf, "urdf": read_urdf}


def load(path: str | os.PathLike[str], *, floating_base: bool = False, held: Sequence[str] = ()) -> Model:
    """Model of an MJCF or URDF file, with the values of its sidecar.

    `model.findings` lists the features of the file that are not simulated.

    Args:
        path: The robot file.
        floating_base: Let the root link of a URDF move freely, for robots that walk or fly.
        held: Joints of a URDF that are fixed at zero, such as those of a gripper.
    """
    path = Path(path)
    model = loads(read_text(path), path=path, floating_base=floating_base, held=held)
    return sidecar.apply(model, path)


def loads(
    text: str,
    *,
    path: str | os.PathLike[str] = "robot.xml",
    floating_base: bool = False,
    held: Sequence[str] = (),
) -> Model:
    """Model of an MJCF or URDF text, without a sidecar.

    Args:
        text: The document.
        path: Its file: meshes and included files are relative to it.
        floating_base: Let the root link of a URDF move freely.
        held: Joints of a URDF that are fixed at zero.
    """
    path = Path(path)
    root = parse(text.split(MARK)[0], path.name)
    if root.tag not in FORMATS:
        raise FileError(f"{path.name} is neither MJCF nor URDF: its root is <{root.tag}>, not <mujoco> or <robot>.")
    text = gather(text, path) if FORMATS[root.tag] == "mjcf" else text
    source = Source(path.absolute(), text, FORMATS[root.tag], floating_base, tuple(held))
    if floating_base and source.format == "mjcf":
        raise FileError(f"{path.name} is MJCF: a floating base is for URDF; give the root body a <freejoint/> instead.")
    if held and source.format == "mjcf":
        raise FileError(f"{path.name} is MJCF: joints are held in URDF only; remove the joint {held[0]!r} instead.")
    with parsing(path.name, f"a robot file ({source.format})"):
        return ROBOT_READERS[source.format](text, source)
