"""Export a model to the other format: MJCF from a URDF source, URDF from any tree of hinges and slides."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from truesim.files.robots.findings import Collector
from truesim.files.robots.messages import collect_warnings, errors_as_sentences
from truesim.files.robots.urdf import build, compile_readable
from truesim.files.robots.urdf_export import export_urdf
from truesim.files.robots.xml_edit import Editor
from truesim.files.robots.xml_parse import parse
from truesim.physics.model import paths
from truesim.physics.model.model import Model
from truesim.physics.model.source import Finding
from truesim.physics.model.tendons import couplings

COUPLED_VALUES = ("armature", "damping", "frictionloss")
"""Values of a motor that turns with several joints."""
MIN_EXPORTED_INERTIA = 1e-9
"""Mass [kg] and inertia [kg m^2] of a massless link in MJCF, in which moving bodies must have mass."""


def export_mjcf(model: Model) -> tuple[str, tuple[Finding, ...]]:
    """MJCF text of a model from a URDF, and findings about what is lost.

    Its inertias are isotropic, which MuJoCo always accepts, and its numbers are rounded: `save` makes them exact.
    """
    source = model.source
    assert source is not None, "save refuses a model without source"
    built = build(source.text, source)
    for name, mass, inertia in zip(model.bodies.names, model.bodies.mass, model.bodies.inertia, strict=True):
        body = built.spec.body(name)
        body.mass = max(float(mass), MIN_EXPORTED_INERTIA)
        body.inertia = [max(float(sum(inertia[:3])) / 3, MIN_EXPORTED_INERTIA)] * 3
    for name, joints in couplings(model).items():
        own = model.tendons.names.index(name)
        values = {field: float(np.asarray(getattr(model.tendons, field))[own]) for field in COUPLED_VALUES}
        tendon = built.spec.add_tendon(name=name, **values)
        for joint, coefficient in joints.items():
            tendon.wrap_joint(joint, coefficient)
    with collect_warnings([]), errors_as_sentences(source.path):
        built.spec.compiler.saveinertial = True
        compile_readable(built.spec, Collector())
        return built.spec.to_xml(), ()


def with_relative_files(text: str, folder: Path) -> str:
    """Text in which files below a folder are named relative to it, so that the folder can be moved."""
    editor = Editor(text)
    for element in parse(text, "exported").walk():
        file = Path(element.get("file") or ".")
        if file.is_absolute() and folder.absolute() in file.parents:
            editor.set(element, "file", file.relative_to(folder.absolute()).as_posix())
    return editor.result()


EXPORTERS: dict[str, Callable[[Model], tuple[str, tuple[Finding, ...]]]] = {"mjcf": export_mjcf, "urdf": export_urdf}


def kept_by_urdf(model: Model, exported: Model, path: paths.Path) -> bool:
    """True if a number that the exported URDF cannot hold may go to the sidecar.

    Frames differ between the formats (a joint of a URDF is at its link's origin), so poses may not.
    """
    if path.group == "actuators":
        name = model.actuators.names[path.index or 0]
        return model.driven(model.actuator(name)) == exported.driven(exported.actuator(name))
    by_joint = path.group == "joints" and path.field not in ("position", "axis")
    return by_joint or path.group in (None, "sensors", "tendons")
