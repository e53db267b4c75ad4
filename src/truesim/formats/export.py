"""A model in the other format: MJCF from a URDF source, URDF from any tree of hinges and slides."""

from collections.abc import Callable

from truesim.formats.findings import Collector
from truesim.formats.messages import errors_as_sentences, listening
from truesim.formats.urdf import build, compile_readable
from truesim.formats.urdf_export import export_urdf
from truesim.model import paths
from truesim.model.model import Model
from truesim.model.source import Finding

SMALLEST = 1e-9
"""Mass [kg] and inertia [kg m^2] of a massless link in MJCF, whose moving bodies must have some."""


def export_mjcf(model: Model) -> tuple[str, tuple[Finding, ...]]:
    """The MJCF text of a model that came from a URDF, and what it lost.

    Its inertias are those of balls, which MuJoCo never refuses, and its numbers are rounded: `save` makes them exact.
    """
    source = model.source
    assert source is not None, "save refuses a model without source"
    reading = build(source.text, source.path, source.floating_base)
    for name, mass, inertia in zip(model.bodies.names, model.bodies.mass, model.bodies.inertia, strict=True):
        body = reading.spec.body(name)
        body.mass = max(float(mass), SMALLEST)
        body.inertia = [max(float(sum(inertia[:3])) / 3, SMALLEST)] * 3
    with listening([]), errors_as_sentences(source.path):
        reading.spec.compiler.saveinertial = True
        compile_readable(reading.spec, Collector())
        return reading.spec.to_xml(), ()


EXPORTERS: dict[str, Callable[[Model], tuple[str, tuple[Finding, ...]]]] = {"mjcf": export_mjcf, "urdf": export_urdf}


def kept_by_urdf(model: Model, exported: Model, path: paths.Path) -> bool:
    """Whether a number that the exported URDF does not have may join it through the sidecar.

    Frames differ between the two (a joint of a URDF sits in its link's origin), so poses may not.
    """
    if path.group == "actuators":
        name = model.actuators.names[path.index or 0]
        joints = [m.joints.names[m.actuators.joints[m.actuator(name)]] for m in (model, exported)]
        return joints[0] == joints[1]
    return path.group in (None, "sensors") or (path.group == "joints" and path.field not in ("position", "axis"))
