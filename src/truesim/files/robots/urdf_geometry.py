"""Shapes of a URDF: primitives and meshes for MuJoCo, and the paths of mesh files."""

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import mujoco
import numpy as np

from truesim.files.robots.findings import Collector
from truesim.files.robots.frames import quaternion_of_rpy
from truesim.files.robots.urdf_tree import read_numbers
from truesim.files.robots.xml_parse import Element

READABLE_MESH_FORMATS = (".stl", ".obj", ".msh")
DEFAULT_COLOR = (0.7, 0.7, 0.7, 1.0)
VISUAL_GROUP, COLLISION_GROUP = 2, 3


class Shapes:
    """Builder of the geoms of links in a MuJoCo specification; shapes that cannot be read are left out."""

    def __init__(self, spec: mujoco.MjSpec, root: Element, path: Path, found: Collector):
        self.spec, self.path, self.found = spec, path, found
        self.colors = {m.get("name"): m for m in root.all("material") if m.first("color")}
        self.meshes: dict[tuple[str, tuple[float, ...]], str] = {}

    def add(self, body: mujoco.MjsBody, link: Element) -> None:
        """Add the visual and collision shapes of a link to its body."""
        for element in link.children:
            if element.tag not in ("visual", "collision"):
                continue
            geometry = element.first("geometry")
            if geometry is None or not geometry.children:
                self.found.add("link", link.get("name"), f"a {element.tag} without geometry is left out", "warning")
                continue
            try:
                self._add_geom(body, element, geometry.children[0])
            except ValueError as problem:
                self.found.add("link", link.get("name"), f"a {element.tag} is left out: it {problem}", "warning")

    def _add_geom(self, body: mujoco.MjsBody, element: Element, shape: Element) -> None:
        """Add one geom; raises a ValueError if it is invalid."""
        arguments = self._shape(shape)
        if arguments is None:
            return
        place = element.first("origin")
        drawn = element.tag == "visual"
        body.add_geom(
            pos=read_numbers(place, "xyz", (0.0, 0.0, 0.0)),
            quat=quaternion_of_rpy(read_numbers(place, "rpy", (0.0, 0.0, 0.0))),
            rgba=self._color(element),
            group=VISUAL_GROUP if drawn else COLLISION_GROUP,
            contype=int(not drawn),
            conaffinity=int(not drawn),
            **arguments,
        )

    def _shape(self, shape: Element) -> dict | None:
        """MuJoCo's arguments of a shape; None if it is left out."""
        kinds = mujoco.mjtGeom
        match shape.tag:
            case "box":
                kind, size = kinds.mjGEOM_BOX, read_numbers(shape, "size", (0.0, 0.0, 0.0)) / 2
            case "sphere":
                kind, size = kinds.mjGEOM_SPHERE, read_numbers(shape, "radius", (0.0,))
            case "cylinder" | "capsule":
                kind = kinds.mjGEOM_CYLINDER if shape.tag == "cylinder" else kinds.mjGEOM_CAPSULE
                size = np.concatenate(
                    [read_numbers(shape, "radius", (0.0,)), read_numbers(shape, "length", (0.0,)) / 2]
                )
            case "mesh":
                name = self._mesh(shape)
                return {"type": kinds.mjGEOM_MESH, "meshname": name} if name else None
            case _:
                raise ValueError(f"has the shape <{shape.tag}>, which URDF does not know")
        if np.any(size <= 0):
            raise ValueError(f"has a {shape.tag} whose size is not positive")
        return {"type": kind, "size": np.pad(size, (0, 3 - len(size)))}

    def _mesh(self, shape: Element) -> str | None:
        """Name of the mesh of a shape; None if its file is missing or cannot be read."""
        address = shape.get("filename")
        scale = read_numbers(shape, "scale", (1.0, 1.0, 1.0))
        if Path(address).suffix.lower() not in READABLE_MESH_FORMATS:
            message = f"format {Path(address).suffix!r} cannot be read: it is left out"
            self.found.add("mesh", Path(address).name, message)
            return None
        file = find_file(address, self.path)
        if file is None:
            self.found.add("mesh", address, "the file is not there: it is left out")
            return None
        key = (str(file), tuple(scale))
        if key not in self.meshes:
            taken, name = set(self.meshes.values()), file.stem
            while name in taken:
                name += "_"
            shell = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
            self.spec.add_mesh(name=name, file=str(file), scale=scale, inertia=shell)
            self.meshes[key] = name
        return self.meshes[key]

    def _color(self, element: Element) -> np.ndarray:
        material = element.first("material")
        if material is not None and not material.first("color"):
            material = self.colors.get(material.get("name"))
        try:
            return read_numbers(material.first("color"), "rgba", DEFAULT_COLOR) if material else np.array(DEFAULT_COLOR)
        except ValueError:
            return np.array(DEFAULT_COLOR)


def find_file(address: str, robot: Path) -> Path | None:
    """File of an address in a URDF; None if it does not exist.

    Args:
        address: `package://name/…`, `file://…`, an absolute path, or a path relative to the robot file.
        robot: The robot file.
    """
    folder = robot.absolute().parent
    if address.startswith("package://"):
        package, _, rest = unquote(address.removeprefix("package://")).lstrip("/").partition("/")
        candidates = [place / rest for place in _package_folders(package, folder)]
    else:
        candidates = [folder / unquote(address.removeprefix("file://"))]
    return next((file for file in candidates if file.is_file()), None)


def _package_folders(package: str, folder: Path) -> Iterator[Path]:
    """Folders that may be the ROS package of this name, nearest first."""
    for place in (folder, *folder.parents):
        if place.name == package or _declares(place / "package.xml", package):
            yield place
        yield place / package
    for root in filter(None, os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)):
        yield Path(root) if Path(root).name == package else Path(root) / package
    for prefix in filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)):
        yield Path(prefix) / "share" / package


def _declares(manifest: Path, package: str) -> bool:
    """True if a ROS manifest exists and has this package name."""
    return manifest.is_file() and f"<name>{package}</name>" in manifest.read_text(errors="replace")
