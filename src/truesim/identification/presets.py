"""Presets: the parameters that are usually unknown in a kind of robot."""

from truesim.core.errors import unknown_name
from truesim.physics.model.model import Model
from truesim.physics.model.targets import expand

ARM = "arm"
PRESETS: dict[str, tuple[str, ...]] = {
    ARM: (),
    "servo": ("joints/*.armature", "joints/*.damping", "joints/*.frictionloss", "actuators/*.error_gain"),
    "quadruped": ("joints/*.armature", "joints/*.damping", "joints/*.frictionloss", "actuators/*.delay"),
    "free-body": ("bodies/*.mass", "bodies/*.com", "geoms/*.friction[0]", "geoms/*.restitution"),
}
"""Patterns of the free parameters of each preset. Those of an arm follow from the regression of its torques."""


def preset_patterns(model: Model, name: str) -> tuple[str, ...]:
    """Patterns of a preset that match something in a robot.

    Args:
        model: The robot.
        name: Key of `PRESETS`.
    """
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    return tuple(pattern for pattern in PRESETS[name] if _matches(model, pattern))


def _matches(model: Model, pattern: str) -> bool:
    try:
        return bool(expand(model, pattern))
    except KeyError:
        return False
