"""Write changed numbers into the user's MJCF text, one function per kind of element.

Numbers that cannot be written are left unchanged: `save` detects them by reading the result, and keeps them in the
sidecar.
"""

import dataclasses
import math
from pathlib import Path

import mujoco
import numpy as np

from truesim.files.robots.documents import parse_documents
from truesim.files.robots.frames import full_inertia, matrix_of_quaternion
from truesim.files.robots.mjcf import compile_mjcf
from truesim.files.robots.mjcf_elements import MjcfElements, locate
from truesim.files.robots.supported import simulated_actuators
from truesim.files.robots.xml_edit import Editor, numbers
from truesim.files.robots.xml_parse import Element
from truesim.physics.model.kinds import BALL, HINGE
from truesim.physics.model.model import Model

ORIENTATIONS = ("euler", "axisangle", "xyaxes", "zaxis")
ANGLES = ("springref", "ref", "range")
JOINT_ATTRIBUTES = {
    "axis": "axis",
    "position": "pos",
    "range": "range",
    "force_range": "actuatorfrcrange",
    **{field: field for field in ("damping", "frictionloss", "armature", "stiffness", "springref", "ref", "margin")},
    **{field: field for field in ("solreffriction", "solimpfriction", "solreflimit", "solimplimit")},
}
LIMITED = {"range": "limited", "force_range": "force_limited"}
GEOM_ATTRIBUTES = ("friction", "margin", "gap", "solref", "solimp")
SAMPLE_ROUNDING = 1e-9
"""Excess over a whole number of time steps below which a delay is rounded down to it [time steps]."""
SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3, "plane": 3}


@dataclasses.dataclass(frozen=True)
class MjcfEdit:
    """One pass of edits over a text."""

    editor: Editor
    root: Element
    spec: mujoco.MjSpec
    compiled: mujoco.MjModel
    elements: MjcfElements
    old: Model
    """Model of the text."""
    new: Model
    """Model that the text should represent."""


def edit_mjcf(text: str, path: Path, old: Model, new: Model) -> str:
    """Text in which the numbers of `old` that differ in `new` are replaced.

    Args:
        text: The user's MJCF and what it includes, from `documents.gather`.
        path: Its file.
        old: Model of the text.
        new: Model that the text should represent.
    """
    spec, compiled, _ = compile_mjcf(text, path)
    root = parse_documents(text, path)
    elements = locate(root, old, compiled)
    edit = MjcfEdit(Editor(text), root, spec, compiled, elements, old, new)
    for step in (_masses, _places, _joints, _geoms, _actuators, _gravity):
        step(edit)
    return edit.editor.result()


def _masses(edit: MjcfEdit) -> None:
    """Mass, center of mass and inertia; a compiler that overrides them is changed first, the bodies in a next pass."""
    old, new = edit.old.bodies, edit.new.bodies
    fields = ("mass", "com", "inertia")
    changed = [
        b
        for b in range(len(old.names))
        if any(not np.array_equal(getattr(old, f)[b], getattr(new, f)[b]) for f in fields)
    ]
    if not changed:
        return
    if edit.spec.compiler.inertiafromgeom == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE:
        for compiler in edit.root.all("compiler"):
            if compiler.get("inertiafromgeom") == "true":
                edit.editor.set(compiler, "inertiafromgeom", "auto")
        return
    scale = _mass_scale(edit)
    for b in changed:
        if body := edit.elements.bodies[b]:
            _inertial(edit, b, body, scale)


def _mass_scale(edit: MjcfEdit) -> float:
    """Factor by which `settotalmass` multiplies the file's masses; sets the total to the new one."""
    if edit.spec.compiler.settotalmass <= 0:
        return 1.0
    plain = edit.spec.copy()
    plain.compiler.settotalmass = -1
    scale = np.sum(edit.compiled.body_mass) / np.sum(plain.compile().body_mass)
    for compiler in edit.root.all("compiler"):
        if "settotalmass" in compiler.attributes:
            total = np.sum(edit.old.bodies.mass), np.sum(edit.new.bodies.mass)
            edit.editor.set_numbers(compiler, "settotalmass", *np.array(total))
    return float(scale)


def _inertial(edit: MjcfEdit, b: int, body: Element, scale: float) -> None:
    old, new, editor = edit.old.bodies, edit.new.bodies, edit.editor
    mass, inertia = new.mass[b] / scale, np.asarray(new.inertia[b]) / scale
    element = body.first("inertial")
    if element is None:
        inertia = np.where(np.abs(inertia) < 1e-15 * np.max(np.abs(inertia)), 0.0, inertia)
        diagonal = not np.any(inertia[3:])
        written = f'diaginertia="{numbers(inertia[:3])}"' if diagonal else f'fullinertia="{numbers(inertia)}"'
        editor.insert(body, f'<inertial pos="{numbers(new.com[b])}" mass="{numbers(mass)}" {written}/>')
        return
    editor.set_numbers(element, "mass", old.mass[b] / scale, mass)
    editor.set_numbers(element, "pos", old.com[b], new.com[b])
    if np.array_equal(old.inertia[b], new.inertia[b]):
        return
    if "fullinertia" in element.attributes:
        editor.set_numbers(element, "fullinertia", old.inertia[b] / scale, inertia)
        return
    before = edit.compiled.body_inertia[b + 1] / scale
    after = _diagonal_in_frame(edit.compiled.body_iquat[b + 1], inertia)
    if after is None:
        editor.remove(element, "diaginertia", "quat", *ORIENTATIONS)
        editor.set(element, "fullinertia", numbers(inertia))
    else:
        same = np.isclose(before, after, rtol=1e-14, atol=0.0)
        editor.set_numbers(element, "diaginertia", before, np.where(same, before, after))


def _diagonal_in_frame(quaternion: np.ndarray, inertia: np.ndarray) -> np.ndarray | None:
    """Principal moments of an inertia in body axes, if it is diagonal in the frame of this quaternion."""
    R = matrix_of_quaternion(quaternion)
    turned = R.T @ full_inertia(inertia) @ R
    off = np.abs(turned - np.diag(np.diag(turned)))
    return np.diag(turned) if np.max(off) <= 1e-14 * np.max(np.abs(turned)) else None


def _places(edit: MjcfEdit) -> None:
    """Poses of bodies and sites."""
    for group in ("bodies", "sites"):
        old, new = getattr(edit.old, group), getattr(edit.new, group)
        for i, element in enumerate(getattr(edit.elements, group)):
            _pose(edit.editor, element, (old.position[i], old.orientation[i]), (new.position[i], new.orientation[i]))


def _pose(editor: Editor, element: Element | None, old: tuple, new: tuple) -> None:
    """Position and orientation of an element."""
    if element is None:
        return
    editor.set_numbers(element, "pos", old[0], new[0])
    if not np.array_equal(old[1], new[1]):
        editor.remove(element, *ORIENTATIONS)
        editor.set_numbers(element, "quat", old[1], new[1])


def _joints(edit: MjcfEdit) -> None:
    old, new = edit.old.joints, edit.new.joints
    degrees = bool(edit.spec.compiler.degree)
    for i, element in enumerate(edit.elements.joints):
        if element is None or element.tag == "freejoint":
            continue
        turns = degrees and old.kinds[i] in (HINGE, BALL)
        for field, attribute in JOINT_ATTRIBUTES.items():
            if field in LIMITED and not getattr(old, LIMITED[field])[i]:
                continue
            before, after = np.asarray(getattr(old, field)[i]), np.asarray(getattr(new, field)[i])
            if turns and field in ANGLES:
                after = np.where(before == after, np.degrees(before), np.degrees(after))
                before = np.degrees(before)
            edit.editor.set_numbers(element, attribute, before, after)


def _geoms(edit: MjcfEdit) -> None:
    old, new = edit.old.geoms, edit.new.geoms
    for i, element in enumerate(edit.elements.geoms):
        if element is None:
            continue
        for field in GEOM_ATTRIBUTES:
            edit.editor.set_numbers(element, field, getattr(old, field)[i], getattr(new, field)[i])
        if old.shapes[i] not in SIZES or "fromto" in element.attributes:
            continue
        count = SIZES[old.shapes[i]]
        edit.editor.set_numbers(element, "size", old.size[i][:count], new.size[i][:count])
        _pose(edit.editor, element, (old.position[i], old.orientation[i]), (new.position[i], new.orientation[i]))


def _actuators(edit: MjcfEdit) -> None:
    old, new = edit.old.actuators, edit.new.actuators
    for i, element in enumerate(edit.elements.actuators):
        if element is None:
            continue
        edit.editor.set_numbers(element, "gear", old.gear[i], new.gear[i])
        _delay(edit, i, element)
        if old.control_limited[i]:
            edit.editor.set_numbers(element, "ctrlrange", old.control_range[i], new.control_range[i])
        if old.force_limited[i]:
            edit.editor.set_numbers(element, "forcerange", old.force_range[i], new.force_range[i])
        before, after = (np.array([m.gain[i], *m.gain_slope[i], *m.bias[i]]) for m in (old, new))
        if not np.array_equal(before, after):
            _gain_and_bias(edit.editor, element, before, after)


def _delay(edit: MjcfEdit, i: int, element: Element) -> None:
    """Delay of a command, with the samples that MuJoCo keeps for it.

    MuJoCo reads no newer command than that of the step before: delays below a time step become zero or one step.
    """
    old, new, timestep = edit.old.actuators.delay[i], edit.new.actuators.delay[i], edit.compiled.opt.timestep
    steps = float(new) / timestep
    held = new if steps >= 1 or new <= 0 else round(steps) * timestep
    if held == old:
        return
    edit.editor.set_numbers(element, "delay", old, np.asarray(held))
    samples = math.ceil(float(held) / timestep - SAMPLE_ROUNDING) + 1
    if held > 0 and edit.compiled.actuator_history[simulated_actuators(edit.compiled)[i], 0] < samples:
        edit.editor.set(element, "nsample", str(samples))
    if held > 0 and old <= 0:
        edit.editor.set(element, "interp", "linear")


def _gain_and_bias(editor: Editor, element: Element, old: np.ndarray, new: np.ndarray) -> None:
    """Gain (1), its derivatives (2) and bias (3), as attributes of the actuator's element or else as `<general>`."""
    gain, derivatives, bias = new[0], new[1:3], new[3:]
    plain = not np.any(derivatives) and bias[0] == 0
    if element.tag == "position" and plain and bias[1] == -gain and "dampratio" not in element.attributes:
        editor.set_numbers(element, "kp", old[0], gain)
        editor.set_numbers(element, "kv", -old[5], -bias[2])
    elif element.tag == "velocity" and plain and bias[1] == 0 and bias[2] == -gain:
        editor.set_numbers(element, "kv", old[0], gain)
    elif element.tag == "general":
        count = 3 if np.any(derivatives) or np.any(old[1:3]) else 1
        editor.set_numbers(element, "gainprm", old[:count], new[:count])
        editor.set_numbers(element, "biasprm", old[3:], bias)
        if np.any(bias != old[3:]) and element.get("biastype") in ("", "none"):
            editor.set(element, "biastype", "affine")
    elif element.tag in ("motor", "position", "velocity") and not np.any(derivatives):
        if {"timeconst", "inheritrange"} & set(element.attributes):
            return
        editor.rename(element, "general")
        editor.remove(element, "kp", "kv", "dampratio")
        editor.set(element, "gainprm", numbers(gain))
        editor.set(element, "biastype", "affine")
        editor.set(element, "biasprm", numbers(bias))


def _gravity(edit: MjcfEdit) -> None:
    old, new = np.asarray(edit.old.gravity), np.asarray(edit.new.gravity)
    if np.array_equal(old, new):
        return
    options = edit.root.all("option")
    if options:
        holder = next((option for option in reversed(options) if "gravity" in option.attributes), options[-1])
        edit.editor.set_numbers(holder, "gravity", old, new)
    else:
        edit.editor.insert(edit.root, f'<option gravity="{numbers(new)}"/>')
