"""Elements of the user's MJCF text by body, joint, geom, site and actuator of its model."""

import dataclasses
from collections.abc import Sequence

import mujoco

from truesim.files.robots.supported import simulated_actuators
from truesim.files.robots.xml_parse import Element
from truesim.physics.model.model import Model

LocatedElements = Sequence[Element | None]
"""The element of each object, by index; None where it is not in this text."""


@dataclasses.dataclass(frozen=True)
class MjcfElements:
    """XML elements of a model's objects."""

    bodies: LocatedElements
    joints: LocatedElements
    geoms: LocatedElements
    sites: LocatedElements
    actuators: LocatedElements


def locate(root: Element, model: Model, compiled: mujoco.MjModel) -> MjcfElements:
    """Locate the XML elements of a model's objects.

    MuJoCo numbers bodies depth first, and the joints, geoms and sites of each body in the order of the text, the
    world's first. Where the text has fewer elements than the model has objects, because others come from included
    files or replicas, those with names are found by name.

    Args:
        root: The `<mujoco>` element.
        model: Model of the text.
        compiled: MuJoCo's compiled model.
    """
    bodies: list[Element] = []
    parts: list[list[Element]] = [[]]
    for section in root.all("worldbody"):
        _collect(section, 0, bodies, parts)

    def match(found: list[Element], names: Sequence[str]) -> LocatedElements:
        if len(found) == len(names):
            return found
        named = {element.get("name"): element for element in found}
        return [named.get(name) for name in names]

    def of(*tags: str) -> list[Element]:
        return [element for own in parts for element in own if element.tag in tags]

    motors = [element for section in root.all("actuator") for element in section.children]
    if len(motors) == compiled.nactuator:
        motors = [motors[i] for i in simulated_actuators(compiled)]
    return MjcfElements(
        bodies=match(bodies, model.bodies.names),
        joints=match(of("joint", "freejoint"), model.joints.names),
        geoms=match(of("geom"), model.geoms.names),
        sites=match(of("site"), model.sites.names),
        actuators=match(motors, model.actuators.names),
    )


def _collect(element: Element, owner: int, bodies: list[Element], parts: list[list[Element]]) -> None:
    """Collect the bodies below an element, and into `parts[owner]` the other elements of its body."""
    for child in element.children:
        if child.tag == "body":
            bodies.append(child)
            parts.append([])
            _collect(child, len(bodies), bodies, parts)
        elif child.tag == "frame":
            _collect(child, owner, bodies, parts)
        else:
            parts[owner].append(child)
