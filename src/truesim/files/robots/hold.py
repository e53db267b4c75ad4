"""Joints of a URDF that are held at zero: those of which the logs know nothing, such as a gripper's."""

from collections.abc import Sequence

from truesim.files.logs import Log, matching
from truesim.files.robots.changes import differing, with_actuator_models, with_couplings, with_values
from truesim.files.robots.load import loads
from truesim.physics.model.columns import command_columns, joint_position_columns, joint_velocity_columns
from truesim.physics.model.model import Model


def unrecorded_joints(model: Model, logs: Sequence[Log]) -> tuple[str, ...]:
    """Joints of a URDF without any column of position, velocity or command, if others have some.

    A column that is probably misspelled raises an error: its joint was recorded.

    Args:
        model: The robot.
        logs: Its logs, as recorded.
    """
    if model.source is None or model.source.format != "urdf" or not logs:
        return ()
    commands: list[list[str]] = [[] for _ in model.joints.names]
    for column, joint in zip(command_columns(model), model.actuators.joints, strict=True):
        commands[joint].append(column)
    held = {name for log in logs for name in log.columns}
    unknown = []
    for j, name in enumerate(model.joints.names):
        own = [*joint_position_columns(model, j), *joint_velocity_columns(model, j), *commands[j]]
        unknown += [] if held.intersection(own) else [name]
    if not unknown or len(unknown) == len(model.joints.names):
        return ()
    for log in logs:
        matching(log, model).check(log.name)
    return tuple(unknown)


def with_held_joints(model: Model, joints: Sequence[str]) -> Model:
    """The model of a URDF with these joints fixed at zero; `save` writes into the file as it is.

    Args:
        model: A model from `load`, with any numbers changed.
        joints: Names of the joints.
    """
    source = model.source
    if source is None or not joints:
        return model
    held = (*source.held, *joints)
    base = loads(source.text, path=source.path, floating_base=source.floating_base, held=held)
    base = with_couplings(with_actuator_models(base, model), model)
    return with_values(base, model, differing(model, base))
