"""Write changed numbers into the user's URDF text, one function per kind of element.

Numbers that URDF cannot hold are left unchanged: `save` detects them by reading the result, and keeps them in the
sidecar.
"""

import dataclasses
from pathlib import Path

import numpy as np

from truesim.files.robots.findings import Collector
from truesim.files.robots.frames import full_inertia, matrix_of_quaternion, rpy_of_rotation
from truesim.files.robots.urdf_tree import UrdfTree, inertial, read_tree
from truesim.files.robots.xml_edit import Editor, number, numbers
from truesim.files.robots.xml_parse import Element
from truesim.math.spatial.inertia import INERTIA_ENTRIES
from truesim.physics.model.model import Model

INERTIA_ATTRIBUTES = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


@dataclasses.dataclass(frozen=True)
class UrdfEdit:
    """One pass of edits over a text."""

    editor: Editor
    tree: UrdfTree
    old: Model
    """Model of the text."""
    new: Model
    """Model that the text should represent."""


def edit_urdf(text: str, path: Path, old: Model, new: Model) -> str:
    """Text in which the numbers of `old` that differ in `new` are replaced.

    Args:
        text: The user's URDF.
        path: Its file.
        old: Model of the text.
        new: Model that the text should represent.
    """
    edit = UrdfEdit(Editor(text), read_tree(text, path.name, Collector()), old, new)
    for b, name in enumerate(old.bodies.names):
        if name in edit.tree.links:
            _inertial(edit, b, edit.tree.links[name])
            _place(edit, b, name)
    for j, name in enumerate(old.joints.names):
        if name in edit.tree.joints:
            _joint(edit, j, edit.tree.joints[name])
    return edit.editor.result()


def _inertial(edit: UrdfEdit, b: int, link: Element) -> None:
    """Mass, center of mass, and the inertia in the axes of the file's own inertial frame."""
    old, new, editor = edit.old.bodies, edit.new.bodies, edit.editor
    same_inertia = np.array_equal(old.inertia[b], new.inertia[b])
    if old.mass[b] == new.mass[b] and np.array_equal(old.com[b], new.com[b]) and same_inertia:
        return
    element = link.first("inertial")
    if element is None:
        entries = " ".join(
            f'{name}="{number(value)}"' for name, value in zip(INERTIA_ATTRIBUTES, new.inertia[b], strict=True)
        )
        place = f'<origin xyz="{numbers(new.com[b])}" rpy="0 0 0"/>'
        mass = f'<mass value="{number(new.mass[b])}"/>'
        editor.insert(link, f"<inertial>{place}{mass}<inertia {entries}/></inertial>")
        return
    _set(editor, element, "mass", {"value": (old.mass[b], new.mass[b])})
    _set(editor, element, "origin", {"xyz": (old.com[b], new.com[b])})
    if not same_inertia:
        before = inertial(edit.tree.file, link)
        after = before.rotation.T @ full_inertia(new.inertia[b]) @ before.rotation
        same = np.isclose(after, before.matrix, rtol=1e-14, atol=1e-15 * np.max(np.abs(after)))
        after = np.where(same, before.matrix, after)
        pairs = {
            name: (before.matrix[ij], after[ij]) for name, ij in zip(INERTIA_ATTRIBUTES, INERTIA_ENTRIES, strict=True)
        }
        _set(editor, element, "inertia", pairs)


def _place(edit: UrdfEdit, b: int, link: str) -> None:
    """Pose of a link in its parent: the origin of the joint that moves it."""
    old, new, joint = edit.old.bodies, edit.new.bodies, edit.tree.joint_of(link)
    if joint is None:
        return
    element = edit.tree.joints[joint]
    changes = {"xyz": (old.position[b], new.position[b])}
    if not np.array_equal(old.orientation[b], new.orientation[b]):
        quaternions = (old.orientation[b], new.orientation[b])
        before, after = (rpy_of_rotation(matrix_of_quaternion(quaternion)) for quaternion in quaternions)
        changes["rpy"] = (before, after)
    _set(edit.editor, element, "origin", changes)


def _joint(edit: UrdfEdit, j: int, element: Element) -> None:
    old, new, editor = edit.old.joints, edit.new.joints, edit.editor
    _set(editor, element, "axis", {"xyz": (old.axis[j], new.axis[j])})
    loss = {"damping": (old.damping[j], new.damping[j]), "friction": (old.frictionloss[j], new.frictionloss[j])}
    _set(editor, element, "dynamics", loss)
    limit = {}
    if old.limited[j]:
        limit = {"lower": (old.range[j][0], new.range[j][0]), "upper": (old.range[j][1], new.range[j][1])}
    if old.force_limited[j] and new.force_range[j][0] == -new.force_range[j][1]:
        limit["effort"] = (old.force_range[j][1], new.force_range[j][1])
    _set(editor, element, "limit", limit)


def _set(editor: Editor, parent: Element, tag: str, changes: dict[str, tuple]) -> None:
    """Set numbers of a child element, given as attribute: (old, new); add the element if it is absent."""
    changes = {name: pair for name, pair in changes.items() if not np.array_equal(*pair)}
    if not changes:
        return
    element = parent.first(tag)
    if element is None:
        attributes = " ".join(f'{name}="{numbers(after)}"' for name, (_, after) in changes.items())
        editor.insert(parent, f"<{tag} {attributes}/>")
    else:
        for name, (before, after) in changes.items():
            editor.set_numbers(element, name, before, after)
