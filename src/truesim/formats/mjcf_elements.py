"""Where each body, joint, geom, site and actuator of a compiled model stands in the user's MJCF text."""

import dataclasses
from collections.abc import Sequence

from truesim.formats.xml_edit import Element
from truesim.model.model import Model

GENERATORS = ("include", "replicate", "attach", "composite", "flexcomp")
"""Elements that MuJoCo replaces by others: behind them, counting no longer finds an element."""


@dataclasses.dataclass(frozen=True)
class Located:
    """An element of the text."""

    element: Element
    framed: bool = False
    """Whether a `<frame>` stands between it and its body, so that its pose is not relative to the body."""


@dataclasses.dataclass(frozen=True)
class Elements:
    """The element of each object of a model, by index; None where it is not in this text."""

    bodies: Sequence[Located | None]
    joints: Sequence[Located | None]
    geoms: Sequence[Located | None]
    sites: Sequence[Located | None]
    actuators: Sequence[Located | None]


@dataclasses.dataclass
class _Body:
    located: Located | None
    parts: dict[str, list[Located]] = dataclasses.field(default_factory=lambda: {"joint": [], "geom": [], "site": []})


def locate(root: Element, model: Model, actuators: Sequence[int]) -> Elements:
    """The elements of a model's objects.

    MuJoCo numbers bodies depth first, and the joints, geoms and sites of each body in the order of the text, the
    world's first. If the text has elements that generate others, only objects with names are found.

    Args:
        root: The `<mujoco>` element.
        model: The model that the text gives.
        actuators: For each actuator of the model, its number among the file's actuators.
    """
    world, bodies = _Body(None), list[_Body]()
    for section in root.all("worldbody"):
        _collect(section, world, bodies, framed=False)
    motors = [Located(element) for section in root.all("actuator") for element in section.children]
    counted = not any(element.tag in GENERATORS for element in root.walk())

    def match(found: list[Located], names: Sequence[str]) -> list[Located | None]:
        if counted and len(found) == len(names):
            return list(found)
        named = {located.element.get("name"): located for located in found}
        return [named.get(name) for name in names]

    def parts(kind: str) -> list[Located]:
        return [located for body in (world, *bodies) for located in body.parts[kind]]

    return Elements(
        bodies=match([body.located for body in bodies if body.located], model.bodies.names),
        joints=match(parts("joint"), model.joints.names),
        geoms=match(parts("geom"), model.geoms.names),
        sites=match(parts("site"), model.sites.names),
        actuators=match([motors[i] for i in actuators] if counted else motors, model.actuators.names),
    )


def _collect(element: Element, body: _Body, bodies: list[_Body], *, framed: bool) -> None:
    """Gather what belongs to `body`, and the bodies below it, from an element's children."""
    for child in element.children:
        match child.tag:
            case "body":
                inner = _Body(Located(child, framed))
                bodies.append(inner)
                _collect(child, inner, bodies, framed=False)
            case "frame":
                _collect(child, body, bodies, framed=True)
            case "joint" | "freejoint":
                body.parts["joint"].append(Located(child, framed))
            case "geom" | "site":
                body.parts[child.tag].append(Located(child, framed))
