"""Links and joints of a URDF text, with checked numbers, unique names and one root."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from truesim.core.errors import FileError
from truesim.files.robots.findings import Collector
from truesim.files.robots.frames import rotation_of_rpy
from truesim.files.robots.xml_parse import Element, parse

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")


@dataclasses.dataclass(frozen=True)
class Inertial:
    """Mass properties of a link, as in the file."""

    mass: float = 0.0
    """[kg]"""
    com: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(3))
    """Center of mass in the link frame [m]."""
    rotation: np.ndarray = dataclasses.field(default_factory=lambda: np.eye(3))
    """Orientation of the inertial frame in the link frame."""
    matrix: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((3, 3)))
    """Rotational inertia about the center of mass, axes of the inertial frame [kg m^2]."""


@dataclasses.dataclass(frozen=True)
class UrdfTree:
    """Links and joints by name; duplicate names are made unique."""

    name: str
    file: str
    root: Element
    links: dict[str, Element]
    joints: dict[str, Element]
    children: dict[str, list[str]]
    """Names of the joints below each link, in the order of the file."""
    base: str | None
    """Root link; None if the robot is empty."""

    def child(self, joint: str) -> str:
        """Name of the link that a joint moves."""
        return _end(self.joints[joint], "child")

    def joint_of(self, link: str) -> str | None:
        """Name of the joint that moves a link."""
        return next((name for name in self.joints if self.child(name) == link), None)


def read_tree(text: str, file: str, found: Collector) -> UrdfTree:
    """Read the links and joints of a URDF text.

    Args:
        text: The document.
        file: Name of the file, for errors.
        found: Collector of findings.
    """
    root = parse(text, file)
    links = _unique(root.all("link"), "link", file, found)
    joints = _unique(root.all("joint"), "joint", file, found)
    children: dict[str, list[str]] = {name: [] for name in links}
    moved: dict[str, str] = {}
    for name, joint in joints.items():
        if joint.get("type") not in JOINT_TYPES:
            raise error(file, joint, f"has type {joint.get('type')!r}; valid are {', '.join(JOINT_TYPES)}")
        for role in ("parent", "child"):
            if _end(joint, role) not in links:
                raise error(file, joint, f"names the {role} link {_end(joint, role)!r}, which does not exist")
        child = _end(joint, "child")
        if child in moved:
            raise error(file, joint, f"moves link {child!r}, which joint {moved[child]!r} moves already")
        moved[child] = name
        children[_end(joint, "parent")].append(name)
    bases = [name for name in links if name not in moved]
    if len(bases) > 1:
        roots = ", ".join(repr(name) for name in bases[:5])
        raise FileError(f"{file}: a robot must have one root link, but {roots} all have no parent.")
    if not links:
        found.add("robot", root.get("name"), "has no links", "warning")
    _list_extras(root, found)
    tree = UrdfTree(root.get("name"), file, root, links, joints, children, bases[0] if bases else None)
    _check_connected(tree)
    return tree


def _end(joint: Element, role: str) -> str:
    element = joint.first(role)
    return element.get("link") if element else ""


def _unique(elements: list[Element], kind: str, file: str, found: Collector) -> dict[str, Element]:
    named: dict[str, Element] = {}
    for element in elements:
        name = element.get("name")
        if not name:
            raise FileError(f"{file}, line {element.line}: a {kind} has no name.")
        if name in named and kind == "link":
            found.add(kind, name, "is given twice: the first counts", "warning")
            continue
        while name in named:
            found.add(kind, name, f"is given twice: the second is called '{name}_'", "warning")
            name += "_"
        named[name] = element
    return named


def _check_connected(tree: UrdfTree) -> None:
    reached = [tree.base] if tree.base else []
    for link in reached:
        reached += [tree.child(joint) for joint in tree.children[link]]
    if lost := [name for name in tree.links if name not in reached]:
        raise FileError(f"{tree.file}: the joints above link {lost[0]!r} form a loop; a robot must be a tree.")


def _list_extras(root: Element, found: Collector) -> None:
    """Add findings about elements that are not simulated."""
    known = {
        "robot": ("link", "joint", "material"),
        "link": ("inertial", "visual", "collision"),
        "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
    }
    for owner in (root, *root.all("link"), *root.all("joint")):
        for element in owner.children:
            if element.tag not in known[owner.tag]:
                name = element.get("name") if owner is root else owner.get("name")
                found.add(element.tag if owner is root else owner.tag, name, f"<{element.tag}> is not simulated")


def error(file: str, element: Element, problem: str) -> FileError:
    """Error about an element, with its line."""
    owner = element
    while not owner.get("name") and owner.parent:
        owner = owner.parent
    part = "" if owner is element else f"<{element.tag}> of "
    return FileError(f"{file}, line {element.line}: {part}{owner.tag} {owner.get('name')!r} {problem}.")


def read_numbers(element: Element | None, attribute: str, default: Sequence[float]) -> np.ndarray:
    """Numbers of an attribute, as many as in `default`, which applies if it is absent; ValueError if invalid."""
    if element is None or attribute not in element.attributes:
        return np.array(default, dtype=float)
    text = element.get(attribute)
    try:
        values = np.array([float(word) for word in text.split()])
    except ValueError:
        hint = "; expand the file with xacro first" if "${" in text else ""
        raise ValueError(f"has {attribute}={text!r}, which is not a number{hint}") from None
    if len(values) != len(default):
        raise ValueError(f"has {attribute}={text!r} with {len(values)} number(s) instead of {len(default)}")
    if not np.all(np.isfinite(values)):
        raise ValueError(f"has {attribute}={text!r}, which is not finite")
    return values


def vector(file: str, element: Element | None, attribute: str, default: Sequence[float]) -> np.ndarray:
    """Numbers of an attribute, as `read_numbers`, with errors that name the element."""
    try:
        return read_numbers(element, attribute, default)
    except ValueError as problem:
        assert element is not None, "only an attribute that is there can be wrong"
        raise error(file, element, str(problem)) from None


def scalar(file: str, element: Element | None, attribute: str, default: float = 0.0) -> float:
    """Number of an attribute; the default if it is absent."""
    return float(vector(file, element, attribute, [default])[0])


def origin(file: str, element: Element) -> tuple[np.ndarray, np.ndarray]:
    """Position and rotation matrix of an element's `<origin>`."""
    place = element.first("origin")
    return vector(file, place, "xyz", (0.0, 0.0, 0.0)), rotation_of_rpy(vector(file, place, "rpy", (0.0, 0.0, 0.0)))


def inertial(file: str, link: Element) -> Inertial:
    """Mass properties of a link; zeros if the file has none."""
    element = link.first("inertial")
    if element is None:
        return Inertial()
    mass = scalar(file, element.first("mass"), "value")
    if mass < 0:
        raise error(file, element, f"has mass {mass:g} kg, which must not be negative")
    entries = element.first("inertia")
    xx, yy, zz, xy, xz, yz = (scalar(file, entries, name) for name in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    return Inertial(mass, *origin(file, element), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
