"""MJCF in: MuJoCo compiles the user's text; what is broken or not there is said in one sentence."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np

from truesim.core.errors import FileError
from truesim.formats.compiled import from_compiled
from truesim.formats.messages import errors_as_sentences, listening
from truesim.formats.xml_edit import Element, parse
from truesim.model.model import Model
from truesim.model.source import Finding, Source

POSITIVE = {"inertial": ("mass", "diaginertia"), "geom": ("mass", "density")}
FINITE = (
    *("pos", "quat", "euler", "axisangle", "axis", "size", "fromto"),
    *("mass", "density", "diaginertia", "fullinertia", "gravity", "timestep"),
    *("damping", "armature", "frictionloss", "stiffness", "springref", "ref", "gear", "kp", "kv"),
)


def read_mjcf(text: str, source: Source) -> Model:
    """Our model of an MJCF text; `source.path` says where its meshes and includes are looked for."""
    _, compiled, findings = compile_mjcf(text, source.path)
    return from_compiled(compiled, source, findings)


def compile_mjcf(text: str, path: Path) -> tuple[mujoco.MjSpec, mujoco.MjModel, tuple[Finding, ...]]:
    """MuJoCo's specification and compiled model of an MJCF text, and what was found on the way.

    Args:
        text: The document; the file at `path` is not read.
        path: Where the document lives: its includes and assets are relative to it.
    """
    _check_numbers(parse(text, path.name), path.name)
    address = str(path.absolute())
    said: list[str] = []
    set_aside: list[Finding] = []
    with listening(said), errors_as_sentences(path):
        spec = mujoco.MjSpec.from_file(address, include={address: text.encode()})
        spec.compiler.fusestatic = False
        set_aside += _set_aside_missing_files(spec, path)
        compiled = spec.compile()
    notes = [Finding(path.name, f"MuJoCo says: {message}", "note") for message in dict.fromkeys(said)]
    return spec, compiled, (*set_aside, *notes)


def _check_numbers(root: Element, name: str) -> None:
    """Refuse numbers that no robot has, before MuJoCo meets them."""
    for element in root.walk():
        for attribute in FINITE:
            value = element.get(attribute)
            for word in value.split():
                with contextlib.suppress(ValueError):
                    where = f"{name}, line {element.line}: {describe(element)} has {attribute}={value!r}"
                    if not np.isfinite(float(word)):
                        raise FileError(f"{where}, which is not a finite number.")
                    if float(word) < 0 and attribute in POSITIVE.get(element.tag, ()):
                        raise FileError(f"{where}, which must not be negative.")


def describe(element: Element) -> str:
    """An element in words: its tag, its name, and its parent if it has no name itself."""
    if element.get("name"):
        return f"{element.tag} {element.get('name')!r}"
    owner = element.parent
    return f"{element.tag} of {describe(owner)}" if owner and owner.get("name") else f"a {element.tag}"


def _set_aside_missing_files(spec: mujoco.MjSpec, path: Path) -> Iterator[Finding]:
    """Remove meshes, height fields, skins and textures whose files are not there, with the geoms that use them."""
    kinds = (("mesh", spec.meshes, "meshdir"), ("hfield", spec.hfields, "meshdir"), ("skin", spec.skins, "meshdir"))
    for kind, assets, folder in (*kinds, ("texture", spec.textures, "texturedir")):
        for asset in list(assets):
            file = _file(spec, asset.file, getattr(spec.compiler, folder), path)
            if file is None or file.exists():
                continue
            name = asset.name or file.stem
            users = [geom for geom in spec.geoms if getattr(geom, f"{kind}name", None) == name]
            for geom in users:
                _refuse_if_inertia(spec, geom, name, file)
                spec.delete(geom)
            for material in spec.materials if kind == "texture" else ():
                material.textures = ["" if texture == name else texture for texture in material.textures]
            spec.delete(asset)
            message = f"file {str(file)!r} is not there" + (f": {len(users)} geom(s) left out" if users else "")
            yield Finding(f"{kind} '{name}'", message)


def _file(spec: mujoco.MjSpec, name: str, folder: str, path: Path) -> Path | None:
    """Where MuJoCo looks for an asset's file."""
    if not name:
        return None
    name = Path(name).name if spec.strippath else name
    return path.absolute().parent / folder / name


def _refuse_if_inertia(spec: mujoco.MjSpec, geom: mujoco.MjsGeom, mesh: str, file: Path) -> None:
    body = geom.parent
    from_geoms = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    explicit = body.explicitinertial and spec.compiler.inertiafromgeom != from_geoms
    low, high = spec.compiler.inertiagrouprange
    weighs = low <= geom.group <= high and geom.mass != 0 and geom.density != 0
    if body != spec.worldbody and weighs and not explicit:
        raise FileError(
            f"The inertia of body {body.name!r} comes from mesh {mesh!r}, but its file {str(file)!r} is not there; "
            "put the file there or give the body an <inertial>."
        )
