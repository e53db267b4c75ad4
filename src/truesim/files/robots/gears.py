"""Gears that give: a rotor of its own behind a spring with play, for flexible joints and backlash.

MJCF has no gears, but fixed tendons: the length of the tendon is the difference between joint and rotor, its spring is
the stiffness of the gear, and its slack (`springlength`) the backlash. MuJoCo simulates the written file as it is.
"""

import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.files.robots.changes import differing, with_actuator_models, with_couplings, with_values
from truesim.files.robots.documents import parse_documents
from truesim.files.robots.load import loads
from truesim.files.robots.mjcf import compile_mjcf
from truesim.files.robots.mjcf_elements import MjcfElements, locate
from truesim.files.robots.xml_edit import Editor, number, numbers
from truesim.files.robots.xml_parse import Element
from truesim.physics.model import paths
from truesim.physics.model.kinds import HINGE, SLIDE
from truesim.physics.model.model import Model
from truesim.physics.model.tendons import GEAR_SUFFIX, ROTOR_SUFFIX

ROTOR_MASS, ROTOR_INERTIA = 1e-6, 1e-9
"""Mass [kg] and inertia [kg m^2] of a rotor's body beside its armature; MuJoCo needs some."""
ROTOR_FIELDS = ("armature", "damping", "frictionloss", "stiction")
"""Values that the rotor takes over from its joint."""


def with_gear(
    model: Model,
    joint: str,
    *,
    stiffness: float = 0.0,
    damping: float = 0.0,
    backlash: float = 0.0,
    armature: float = 0,
) -> Model:
    """The robot with a rotor `<joint>_rotor` that drives a joint through the spring `<joint>_gear`.

    Rotor and joint turn equally; the gear's torque is `stiffness` times their difference beyond half of the backlash.
    The rotor takes over the joint's actuators, armature, damping and dry friction. `qpos/<joint>` is measured behind
    the gear, `qpos/<joint>_rotor` at the motor; a log needs one of them. The tendon's `stiffness`, `damping` and
    `spring_length` (the two ends of the play) can be identified.

    Args:
        model: A robot from MJCF; save a URDF as MJCF first.
        joint: A hinge or slide.
        stiffness: Stiffness of the gear [N m/rad or N/m].
        damping: Damping of the gear [N m s/rad or N s/m].
        backlash: Play of the gear from one end to the other [rad or m].
        armature: Inertia of the rotor, if the joint has none [kg m^2 or kg].
    """
    if joint not in model.joints.names:
        raise unknown_name("joint", joint, model.joints.names)
    j, source = model.joints.names.index(joint), model.source
    rotor, gear = joint + ROTOR_SUFFIX, joint + GEAR_SUFFIX
    if model.joints.kinds[j] not in (HINGE, SLIDE) or not stiffness > 0 or backlash < 0:
        raise TruesimError(f"The gear of {joint!r} needs a hinge or slide, a positive stiffness and no negative play.")
    own = {field: float(np.asarray(getattr(model.joints, field))[j]) for field in ROTOR_FIELDS}
    own["armature"] = own["armature"] or armature
    if not own["armature"] > 0:
        raise TruesimError(f"The rotor of {joint!r} needs inertia: give armature, in kg m^2 at the joint.")
    if source is None or source.format != "mjcf" or model.keyframes:
        raise TruesimError("A gear is written into MJCF without keyframes: save a URDF as .xml and load that.")
    values = {"stiffness": [stiffness], "damping": [damping], "springlength": [-backlash / 2, backlash / 2]}
    spring = " ".join(f'{name}="{numbers(np.array(value, float))}"' for name, value in values.items())
    base = loads(_edited(model, j, (rotor, gear), spring), path=source.path)
    base = with_couplings(with_actuator_models(base, model), model)
    base = with_values(base, model, differing(model, base))
    for field, value in own.items():
        base = paths.write(base, f"joints/{joint}.{field}", np.zeros(()))
        base = paths.write(base, f"joints/{rotor}.{field}", np.asarray(value))
    return base


def _edited(model: Model, j: int, names: tuple[str, str], spring: str) -> str:
    """The robot's text with a rotor, whose joint the actuators drive, and a tendon between it and the joint."""
    source, (rotor, gear) = model.source, names
    assert source is not None, "the caller asks"
    root = parse_documents(source.text, source.path)
    spec, compiled, _ = compile_mjcf(source.text, source.path)
    elements, editor = locate(root, model, compiled), Editor(source.text)
    moved = elements.joints[j]
    above = None if moved is None or moved.parent is None else moved.parent.parent
    if moved is None or above is None:
        raise TruesimError(f"The joint {model.joints.names[j]!r} is not written in the robot's own files.")
    editor.insert(above, _rotor(model, j, rotor, bool(spec.compiler.degree)))
    _drive(model, j, rotor, (editor, elements))
    tendon = (
        f'<fixed name="{gear}" {spring}><joint joint="{model.joints.names[j]}" coef="1"/>'
        f'<joint joint="{rotor}" coef="-1"/></fixed>'
    )
    sections = root.all("tendon")
    editor.insert(sections[0] if sections else root, tendon if sections else f"<tendon>{tendon}</tendon>")
    if not moved.get("name"):
        editor.set(moved, "name", model.joints.names[j])
    return editor.result()


def _rotor(model: Model, j: int, name: str, degrees: bool) -> str:
    """The body of a rotor, in the place of the body that its joint moves."""
    body, joints = model.joints.bodies[j], model.joints
    turn = np.degrees if degrees and joints.kinds[j] == HINGE else np.asarray
    place = f'pos="{numbers(model.bodies.position[body])}" quat="{numbers(model.bodies.orientation[body])}"'
    joint = (
        f'<joint name="{name}" type="{"hinge" if joints.kinds[j] == HINGE else "slide"}" limited="false" '
        f'pos="{numbers(joints.position[j])}" axis="{numbers(joints.axis[j])}" ref="{number(turn(joints.ref[j]))}" '
        'armature="1" damping="0" frictionloss="0" stiffness="0" actuatorfrclimited="false"/>'
    )
    inertial = f'<inertial pos="0 0 0" mass="{ROTOR_MASS}" diaginertia="{numbers(np.full(3, ROTOR_INERTIA))}"/>'
    return f'<body name="{name}" {place}>{inertial}{joint}</body>'


def _drive(model: Model, j: int, rotor: str, place: tuple[Editor, MjcfElements]) -> None:
    """Let the actuators of a joint drive the rotor."""
    editor, elements = place
    for i, driven in enumerate(model.actuators.joints):
        element: Element | None = elements.actuators[i]
        if driven != j:
            continue
        if element is None or "joint" not in element.attributes:
            raise TruesimError(f"The actuator {model.actuators.names[i]!r} does not name its joint in the robot file.")
        editor.set(element, "joint", rotor)
