"""Export trees of hinges and slides as URDF; a body with several joints becomes a chain of massless links."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from truesim.core.errors import TruesimError
from truesim.files.robots.findings import Collector
from truesim.files.robots.frames import matrix_of_quaternion, rpy_of_rotation
from truesim.files.robots.urdf_edit import INERTIA_ATTRIBUTES
from truesim.files.robots.xml_edit import number, numbers
from truesim.physics.model.kinds import BALL, FREE, SLIDE
from truesim.physics.model.model import Model
from truesim.physics.model.source import Finding

ROOT = "world"


class UniqueNames:
    """Generator of unique names."""

    def __init__(self, taken: tuple[str, ...]):
        self.taken = set(taken)

    def new(self, name: str) -> str:
        """`name`, followed by underscores until it is unique."""
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name


def export_urdf(model: Model) -> tuple[str, tuple[Finding, ...]]:
    """URDF text of a model, and findings about what is lost."""
    found = Collector()
    links, joints = UniqueNames(model.bodies.names), UniqueNames(model.joints.names)
    lines = [f'<link name="{ROOT}">', *_shapes(model, -1, found), "</link>"]
    for b, name in enumerate(model.bodies.names):
        lines += [f'<link name="{_escaped(name)}">', *_inertial(model, b), *_shapes(model, b, found), "</link>"]
        lines += _joints(model, b, links, joints)
    for kind, names in (("actuator", model.actuators.names), ("site", model.sites.names)):
        for name in names:
            found.add(kind, name, "URDF has no place for it")
    for sensor in model.sensors.declared:
        found.add("sensor", sensor.name, "URDF has no place for it")
    body = "\n".join(f"  {line}" for line in lines)
    text = f'<?xml version="1.0"?>\n<robot name="{_escaped(model.name) or "robot"}">\n{body}\n</robot>\n'
    return text, found.findings()


def _inertial(model: Model, b: int) -> list[str]:
    bodies = model.bodies
    entries = " ".join(
        f'{name}="{number(value)}"' for name, value in zip(INERTIA_ATTRIBUTES, bodies.inertia[b], strict=True)
    )
    return [
        "  <inertial>",
        f"    {_origin(bodies.com[b], np.eye(3))}",
        f'    <mass value="{number(bodies.mass[b])}"/>',
        f"    <inertia {entries}/>",
        "  </inertial>",
    ]


def _joints(model: Model, b: int, links: UniqueNames, joints: UniqueNames) -> Iterator[str]:
    """Joints of a body: each rotates about its own anchor, and the body's frame follows the last."""
    bodies, parent = model.bodies, model.bodies.parents[b]
    above = ROOT if parent < 0 else bodies.names[parent]
    position, R = np.asarray(bodies.position[b]), matrix_of_quaternion(bodies.orientation[b])
    own = [j for j, body in enumerate(model.joints.bodies) if body == b]
    before = np.zeros(3)
    for j in own:
        kind = model.joints.kinds[j]
        anchor = before if kind in (SLIDE, FREE) else np.asarray(model.joints.position[j])
        below = bodies.names[b] if j == own[-1] and not np.any(anchor) else links.new(f"{bodies.names[b]}_{j}")
        yield from _joint(model, j, above, below, _origin(position + R @ (anchor - before), R))
        if below != bodies.names[b]:
            yield f'<link name="{_escaped(below)}"/>'
        above, position, R, before = below, np.zeros(3), np.eye(3), anchor
    if above != bodies.names[b]:
        name = joints.new(f"{bodies.names[b]}_fixed")
        yield from _element(name, "fixed", above, bodies.names[b], [_origin(position - R @ before, R)])


def _joint(model: Model, j: int, parent: str, child: str, origin: str) -> list[str]:
    joints, name, kind = model.joints, model.joints.names[j], model.joints.kinds[j]
    if kind == BALL:
        raise TruesimError(f"URDF has no ball joints, and joint {name!r} is one; save as MJCF (.xml) instead.")
    if kind == FREE:
        return _element(name, "floating", parent, child, [origin])
    effort = number(joints.force_range[j][1]) if joints.force_limited[j] else "0"
    lower, upper = (number(x) for x in joints.range[j]) if joints.limited[j] else ("0", "0")
    word = "prismatic" if kind == SLIDE else "revolute" if joints.limited[j] else "continuous"
    parts = [
        origin,
        f'<axis xyz="{numbers(joints.axis[j])}"/>',
        f'<limit lower="{lower}" upper="{upper}" effort="{effort}" velocity="0"/>',
        f'<dynamics damping="{number(joints.damping[j])}" friction="{number(joints.frictionloss[j])}"/>',
    ]
    return _element(name, word, parent, child, parts)


def _element(name: str, kind: str, parent: str, child: str, parts: list[str]) -> list[str]:
    ends = [f'<parent link="{_escaped(parent)}"/>', f'<child link="{_escaped(child)}"/>']
    inner = [f"  {part}" for part in (*ends, *parts)]
    return [f'<joint name="{_escaped(name)}" type="{kind}">', *inner, "</joint>"]


def _shapes(model: Model, b: int, found: Collector) -> Iterator[str]:
    geoms = model.geoms
    for g, shape in enumerate(geoms.shapes):
        if geoms.bodies[g] != b:
            continue
        size = [number(x) for x in geoms.size[g]]
        length = number(2 * geoms.size[g][1])
        match shape:
            case "sphere":
                xml = f'<sphere radius="{size[0]}"/>'
            case "box":
                xml = f'<box size="{numbers(2 * np.asarray(geoms.size[g]))}"/>'
            case "cylinder" | "capsule":
                xml = f'<{shape} radius="{size[0]}" length="{length}"/>'
            case _:
                found.add("geom", geoms.names[g], f"a {shape} is left out of the URDF")
                continue
        tag = "collision" if geoms.contype[g] or geoms.conaffinity[g] else "visual"
        origin = _origin(geoms.position[g], matrix_of_quaternion(geoms.orientation[g]))
        yield f"  <{tag}>{origin}<geometry>{xml}</geometry></{tag}>"


def _origin(position: ArrayLike, R: np.ndarray) -> str:
    return f'<origin xyz="{numbers(position)}" rpy="{numbers(rpy_of_rotation(R))}"/>'


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
