"""Read URDF: links and joints become a MuJoCo specification; masses and inertias come from the file itself."""

import dataclasses
import re
from pathlib import Path

import equinox as eqx
import mujoco
import numpy as np

from truesim.files.robots.compiled import from_compiled
from truesim.files.robots.findings import Collector
from truesim.files.robots.frames import quaternion_of_rpy, six_numbers
from truesim.files.robots.messages import collect_warnings, errors_as_sentences
from truesim.files.robots.urdf_geometry import Shapes
from truesim.files.robots.urdf_tree import UrdfTree, error, inertial, read_tree, scalar, vector
from truesim.files.robots.xml_parse import Element
from truesim.math.spatial.inertia import unphysical
from truesim.physics.model.model import Model
from truesim.physics.model.source import Source

WORLD = "world"
"""Name of a root link that is the ground."""
URDF_JOINT_KINDS = {
    "revolute": mujoco.mjtJoint.mjJNT_HINGE,
    "continuous": mujoco.mjtJoint.mjJNT_HINGE,
    "prismatic": mujoco.mjtJoint.mjJNT_SLIDE,
}


@dataclasses.dataclass(frozen=True)
class UrdfBuild:
    """MuJoCo specification of a URDF, with its tree and findings."""

    tree: UrdfTree
    spec: mujoco.MjSpec
    shapes: Shapes
    found: Collector
    source: Source


def read_urdf(text: str, source: Source) -> Model:
    """Model of a URDF text; its meshes are relative to `source.path`."""
    built = build(text, source)
    with collect_warnings([]), errors_as_sentences(source.path):
        compiled = compile_readable(built.spec, built.found)
    model = from_compiled(compiled, source)
    numbers = _mass_properties(model, built)
    model = eqx.tree_at(lambda m: (m.bodies.mass, m.bodies.com, m.bodies.inertia), model, numbers)
    return dataclasses.replace(model, findings=built.found.findings() + model.findings)


def build(text: str, source: Source) -> UrdfBuild:
    """MuJoCo specification of a URDF text, in which every body has unit mass and inertia.

    MuJoCo refuses massless links and inertias that no rigid body has; the file's values are set in the `Model`.
    """
    found, path = Collector(), source.path
    tree = read_tree(text, path.name, found)
    spec = mujoco.MjSpec()
    spec.modelname = tree.name
    spec.compiler.degree = False
    built = UrdfBuild(tree, spec, Shapes(spec, tree.root, path, found), found, source)
    if tree.base is None:
        return built
    if WORLD in tree.links and tree.base != WORLD:
        raise error(path.name, tree.links[WORLD], "must be the root, because that name means the ground; rename it")
    if tree.base == WORLD:
        _add_ground(built)
    else:
        _add_link(built, spec.worldbody, tree.base, joint=None)
    return built


def _add_ground(built: UrdfBuild) -> None:
    tree, ground = built.tree, built.tree.links[WORLD]
    if built.source.floating_base:
        raise error(tree.file, ground, "is the ground and cannot float; load without a floating base")
    if ground.first("inertial"):
        built.found.add("link", WORLD, "is the ground: its mass has no effect", "note")
    built.shapes.add(built.spec.worldbody, ground)
    for joint in tree.children[WORLD]:
        _add_link(built, built.spec.worldbody, tree.child(joint), joint)


def _add_link(built: UrdfBuild, parent: mujoco.MjsBody, name: str, joint: str | None) -> None:
    """Add a link, its joint, and all links below it."""
    tree, stack = built.tree, [(parent, name, joint)]
    while stack:
        parent, name, joint = stack.pop()
        body = parent.add_body(name=name, mass=1.0, inertia=np.ones(3), explicitinertial=True)
        if joint is not None:
            element = tree.joints[joint]
            place = element.first("origin")
            body.pos = vector(tree.file, place, "xyz", (0.0, 0.0, 0.0))
            body.quat = quaternion_of_rpy(vector(tree.file, place, "rpy", (0.0, 0.0, 0.0)))
            _add_joint(built, body, joint, element)
        elif built.source.floating_base:
            free = "floating_base"
            while free in tree.joints:
                free += "_"
            body.add_freejoint(name=free)
        built.shapes.add(body, tree.links[name])
        stack += [(body, tree.child(below), below) for below in reversed(tree.children[name])]


def _add_joint(built: UrdfBuild, body: mujoco.MjsBody, name: str, element: Element) -> None:
    kind, file = element.get("type"), built.tree.file
    if kind == "fixed" or name in built.source.held:
        return
    if kind == "floating":
        if body.parent != built.spec.worldbody:
            raise error(file, element, f"floats on a link; only a joint on the root link {WORLD!r} can float")
        body.add_freejoint(name=name)
        return
    axis = vector(file, element.first("axis"), "xyz", (1.0, 0.0, 0.0))
    if not np.linalg.norm(axis) > 0:
        raise error(file, element, "has an axis of length zero")
    dynamics = element.first("dynamics")
    loss = {
        "damping": [scalar(file, dynamics, "damping"), 0, 0],
        "frictionloss": scalar(file, dynamics, "friction"),
    }
    if kind == "planar":
        _add_planar(built, body, name, axis / np.linalg.norm(axis), loss)
        return
    joint = body.add_joint(name=name, type=URDF_JOINT_KINDS[kind], axis=axis, **loss)
    _set_limits(built, joint, element)
    if element.first("mimic"):
        other = element.first("mimic").get("joint")  # type: ignore[union-attr]
        built.found.add("joint", name, f"mimic of joint '{other}': it moves on its own and has no motor")
    else:
        _add_motor(built, joint)


def _add_planar(built: UrdfBuild, body: mujoco.MjsBody, name: str, axis: np.ndarray, loss: dict) -> None:
    """Add planar motion normal to `axis`: two slides and a hinge."""
    first = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    first /= np.linalg.norm(first)
    slide, hinge = mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE
    parts = (("x", slide, first), ("y", slide, np.cross(axis, first)), ("angle", hinge, axis))
    for suffix, kind, direction in parts:
        joint = body.add_joint(name=f"{name}_{suffix}", type=kind, axis=direction, **loss)
        _add_motor(built, joint)
    built.found.add("joint", name, "planar: simulated as two slides and a hinge called <name>_x, _y, _angle", "note")


def _set_limits(built: UrdfBuild, joint: mujoco.MjsJoint, element: Element) -> None:
    limit, file, found = element.first("limit"), built.tree.file, built.found
    no, yes = mujoco.mjtLimited.mjLIMITED_FALSE, mujoco.mjtLimited.mjLIMITED_TRUE
    joint.limited = joint.actfrclimited = no
    lower, upper = scalar(file, limit, "lower"), scalar(file, limit, "upper")
    effort, velocity = scalar(file, limit, "effort"), scalar(file, limit, "velocity")
    if element.get("type") != "continuous":
        joint.range = (lower, upper)
        if lower < upper:
            joint.limited = yes
        else:
            found.add("joint", joint.name, "its lower limit is not below its upper: it moves without limits", "warning")
    if effort > 0:
        joint.actfrcrange, joint.actfrclimited = (-effort, effort), yes
    if velocity > 0:
        found.add("joint", joint.name, "velocity limit")


def _add_motor(built: UrdfBuild, joint: mujoco.MjsJoint) -> None:
    """Add a torque motor bounded by the joint's effort, since URDF has no actuators."""
    transmission = mujoco.mjtTrn.mjTRN_JOINT
    motor = built.spec.add_actuator(name=joint.name, target=joint.name, trntype=transmission)
    if joint.actfrclimited == mujoco.mjtLimited.mjLIMITED_TRUE:
        motor.ctrlrange, motor.ctrllimited = joint.actfrcrange, mujoco.mjtLimited.mjLIMITED_TRUE
    built.found.add("joint", joint.name, "URDF has no actuators: a motor of the same name drives it", "note")


def compile_readable(spec: mujoco.MjSpec, found: Collector) -> mujoco.MjModel:
    """Compile a specification, without the meshes that MuJoCo cannot read."""
    while True:
        try:
            return spec.compile()
        except ValueError as problem:
            named = re.search(r"Element name '([^']*)'", str(problem)) or re.search(r"'([^']*)'", str(problem))
            bad = next((m for m in spec.meshes if named and named[1] in (m.name, m.file)), None)
            if bad is None:
                raise
            reason = str(problem).splitlines()[0].removeprefix("Error: ")
            found.add("mesh", Path(bad.file).name, f"MuJoCo cannot read it ({reason}): it is left out")
            for geom in [geom for geom in spec.geoms if geom.meshname == bad.name]:
                spec.delete(geom)
            spec.delete(bad)


def _mass_properties(model: Model, built: UrdfBuild) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mass, center of mass and inertia of each body, exactly as in the file."""
    count = len(model.bodies.names)
    mass, com, inertia = np.zeros(count), np.zeros((count, 3)), np.zeros((count, 6))
    for b, name in enumerate(model.bodies.names):
        own = inertial(built.tree.file, built.tree.links[name])
        full = own.rotation @ own.matrix @ own.rotation.T
        mass[b], com[b], inertia[b] = own.mass, own.com, six_numbers(full)
        if reason := unphysical(mass[b], inertia[b]):
            built.found.add("link", name, f"no rigid body has this inertia: {reason}", "warning")
    return mass, com, inertia
