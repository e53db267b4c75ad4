"""Read MJCF: MuJoCo compiles the user's text; errors and missing files become one sentence each."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from truesim.core.errors import FileError
from truesim.files.robots.compiled import from_compiled
from truesim.files.robots.documents import parse_documents, virtual_files
from truesim.files.robots.messages import collect_warnings, errors_as_sentences
from truesim.files.robots.size_limits import check_size
from truesim.files.robots.xml_parse import Element
from truesim.physics.model.model import Model
from truesim.physics.model.source import Finding, Source

POSITIVE = {"inertial": ("mass", "diaginertia"), "geom": ("mass", "density")}
FINITE = (
    *("pos", "quat", "euler", "axisangle", "axis", "size", "fromto"),
    *("mass", "density", "diaginertia", "fullinertia", "gravity", "timestep"),
    *("damping", "armature", "frictionloss", "stiffness", "springref", "ref", "gear", "kp", "kv"),
)


FUSED = "fusestatic: bodies without joints stay apart, and contact is as stiff as between bodies that are not fused"


def read_mjcf(text: str, source: Source) -> Model:
    """Model of an MJCF text; its meshes and includes are relative to `source.path`."""
    _, compiled, findings = compile_mjcf(text, source.path)
    return from_compiled(compiled, source, findings)


def compile_mjcf(text: str, path: Path) -> tuple[mujoco.MjSpec, mujoco.MjModel, tuple[Finding, ...]]:
    """MuJoCo's specification and compiled model of an MJCF text, with findings.

    Args:
        text: The document and those that it includes, from `documents.gather`; files are not read again.
        path: File of the document, to which its includes and assets are relative.
    """
    root = parse_documents(text, path)
    _check_numbers(root)
    check_size(root, path.absolute().parent)
    documents = virtual_files(text, path)
    said: list[str] = []
    removed: list[Finding] = []
    with collect_warnings(said), errors_as_sentences(path):
        spec = mujoco.MjSpec.from_file(next(iter(documents)), include=documents)
        if spec.compiler.fusestatic:
            spec.compiler.fusestatic = False
            removed.append(Finding("option", FUSED))
        _check_assets(spec, path)
        try:
            compiled = spec.compile()
        except ValueError:
            missing = list(_remove_missing_files(spec, path))
            if not missing:
                raise
            removed += missing
            compiled = spec.compile()
    _snap_frames(compiled)
    notes = [Finding(path.name, f"MuJoCo says: {message}", "note") for message in dict.fromkeys(said)]
    return spec, compiled, (*removed, *notes)


def _snap_frames(m: mujoco.MjModel) -> None:
    """Make frames equal that MuJoCo takes to be equal, since they differ by less than 1e-6.

    MuJoCo then computes the pose of a geom, a site or an inertia as that of its body, or of the body's inertia.
    """
    same = mujoco.mjtSameFrame
    bodies = (m.body_sameframe, m.body_ipos, m.body_iquat, np.arange(m.nbody))
    geoms = (m.geom_sameframe, m.geom_pos, m.geom_quat, m.geom_bodyid)
    sites = (m.site_sameframe, m.site_pos, m.site_quat, m.site_bodyid)
    for frames, position, orientation, body in (bodies, geoms, sites):
        of_inertia = frames == same.mjSAMEFRAME_INERTIA
        position[frames == same.mjSAMEFRAME_BODY] = 0
        position[of_inertia] = m.body_ipos[body[of_inertia]]
        orientation[np.isin(frames, (same.mjSAMEFRAME_BODY, same.mjSAMEFRAME_BODYROT))] = (1, 0, 0, 0)
        of_inertia |= frames == same.mjSAMEFRAME_INERTIAROT
        orientation[of_inertia] = m.body_iquat[body[of_inertia]]


def _check_numbers(root: Element) -> None:
    """Refuse numbers that are not finite, and negative masses."""
    for element in root.walk():
        for attribute in FINITE:
            value = element.get(attribute)
            for word in value.split():
                with contextlib.suppress(ValueError):
                    where = f"{element.file}, line {element.line}: {describe(element)} has {attribute}={value!r}"
                    if not np.isfinite(float(word)):
                        raise FileError(f"{where}, which is not a finite number.")
                    if float(word) < 0 and attribute in POSITIVE.get(element.tag, ()):
                        raise FileError(f"{where}, which must not be negative.")


def describe(element: Element) -> str:
    """Text of an element: its tag and name, or its parent if it has no name."""
    if element.get("name"):
        return f"{element.tag} {element.get('name')!r}"
    owner = element.parent
    return f"{element.tag} of {describe(owner)}" if owner and owner.get("name") else f"a {element.tag}"


def _check_assets(spec: mujoco.MjSpec, path: Path) -> None:
    """Refuse files that are not regular, such as pipes, which would be read for ever."""
    for _, _, file in _asset_files(spec, path):
        if file.exists() and not file.is_file():
            raise FileError(f"{path.name}: {str(file)!r} is not a regular file.")


def _remove_missing_files(spec: mujoco.MjSpec, path: Path) -> Iterator[Finding]:
    """Remove meshes, height fields, skins and textures with missing files, and the geoms that use them."""
    for kind, asset, file in list(_asset_files(spec, path)):
        if file.exists():
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


def _asset_files(spec: mujoco.MjSpec, path: Path) -> Iterator[tuple[str, Any, Path]]:
    """Kind of each asset that has a file, the asset, and the path of its file beside the robot file."""
    kinds = (("mesh", spec.meshes, "meshdir"), ("hfield", spec.hfields, "meshdir"), ("skin", spec.skins, "meshdir"))
    for kind, assets, folder in (*kinds, ("texture", spec.textures, "texturedir")):
        for asset in assets:
            if asset.file:
                name = Path(asset.file).name if spec.strippath else asset.file
                yield kind, asset, path.absolute().parent / getattr(spec.compiler, folder) / name


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
