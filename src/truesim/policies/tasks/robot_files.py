"""Robots of tasks: the task's own, or another file or fit with the same joints and actuators."""

from pathlib import Path

from truesim.core.errors import TruesimError
from truesim.core.missing import missing_file
from truesim.files.robots.load import load, loads
from truesim.identification.fit_folder import robot_file
from truesim.physics.contact.models.mujoco import MujocoContact
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator


def robot_path(robot: str | Path) -> Path:
    """File of a robot, or of the robot in the folder of a fit."""
    path = Path(robot)
    if not path.exists():
        raise missing_file("robot file", path)
    return robot_file(path) if path.is_dir() else path


def robot_record(robot: str | Path | None) -> dict[str, str]:
    """Record of a robot in the description of a policy; empty for the task's own."""
    return {} if robot is None else {"robot": str(Path(robot).absolute())}


def read_simulator(robot: str | Path | None, own: str, name: str, *, contact: bool = False) -> Simulator:
    """Simulator of a robot.

    Args:
        robot: File or fit; the task's own robot by default. Its joints and actuators must have the same names.
        own: MJCF text of the task's own robot.
        name: File name of the task's own robot, for messages.
        contact: True for the contact of the file, as MuJoCo has it; False for none.
    """
    model = loads(own, path=name)
    if robot is None:
        return _simulator(model, contact)
    other = load(robot_path(robot))
    for kind, ours, theirs in (
        ("joints", model.joints.names, other.joints.names),
        ("actuators", model.actuators.names, other.actuators.names),
    ):
        if ours != theirs:
            raise TruesimError(
                f"{robot} has the {kind} {_listed(theirs)}; the task needs {_listed(ours)}, in this order."
            )
    return _simulator(_at_least_limited(other, model), contact)


def _simulator(model: Model, contact: bool) -> Simulator:
    return Simulator.of(model, contact=MujocoContact.of(model) if contact else None)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"


def _at_least_limited(other: Model, own: Model) -> Model:
    """The other robot; it needs ranges of its controls as the task's own robot has."""
    if any(limit and not theirs for limit, theirs in zip(_limited(own), _limited(other), strict=True)):
        raise TruesimError("Actuators of the robot need a control range (ctrlrange) for this task.")
    return other


def _limited(model: Model) -> list[bool]:
    return [bool(abs(float(high)) < float("inf")) for _, high in model.actuators.control_range]
