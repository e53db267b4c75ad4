"""Free parameters of the pendulum."""

FREE = (
    "time_scale",
    "gravity[1]",  # the camera's roll
    "bodies/upper.com[1]",
    "bodies/upper.inertia[2]",
    "bodies/lower.com[0]",
    "bodies/lower.com[1]",
    "bodies/lower.inertia[2]",
    "bodies/lower.position[0]",  # the upper arm's length
    "sites/middle.position[0]",  # the middle marker beside the second axis
    "sites/middle.position[1]",
    "sites/tip.position[0]",
    "sensors/middle/?.bias",  # the pivot's marker beside the first axis, and parallax
    "sensors/tip/?.bias",
    "joints/*.damping",
)


def patterns() -> list[str]:
    """All free parameters."""
    return [p for name in FREE for p in ([name.replace("?", axis) for axis in "xy"] if "?" in name else [name])]
