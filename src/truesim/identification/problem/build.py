"""Build estimation problems from a model, logs and patterns of parameters."""

import dataclasses
from collections.abc import Sequence

import equinox as eqx
import jax
import numpy as np

from truesim.core.errors import TruesimError
from truesim.files.logs import Log, matching, prepare
from truesim.identification.problem.channels import Channel, known_channels, measured_channels
from truesim.identification.problem.locate import locate
from truesim.identification.problem.network_weights import network_parameters
from truesim.identification.problem.options import ProblemOptions
from truesim.identification.problem.per_log import PerLogValues, resolve
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.recording import recording
from truesim.identification.problem.segments import sampling_step
from truesim.physics.contact import AbstractContact, ImplicitCompliantContact, RigidContact
from truesim.physics.contact.choose import FROM_FILE, contact_named
from truesim.physics.model.columns import command_columns
from truesim.physics.model.model import Model
from truesim.physics.model.structure import FRICTION_FIELDS
from truesim.physics.parameters import ParameterSet, Target, free
from truesim.physics.simulation import Simulator
from truesim.physics.simulation.joint_models import MujocoJointModel


def build(model: Model, logs: Sequence[Log], patterns: Sequence[str], options: ProblemOptions | None = None) -> Problem:
    """Build the problem of estimating parameters from logs.

    Args:
        model: The model of the robot; its values are the start.
        logs: Logs of the robot.
        patterns: Paths of the free parameters, such as `bodies/*.mass`.
        options: Ties, bounds, priors, per-log values, channels, contact.
    """
    return assemble(model, prepare_logs(model, logs), patterns, options or ProblemOptions())


def prepare_logs(model: Model, logs: Sequence[Log]) -> list[Log]:
    """Clean logs and add joint positions from other sensors; findings of each log list the changes.

    Args:
        model: The model of the robot.
        logs: Logs of the robot, with different names.
    """
    names = [log.name for log in logs]
    if len(set(names)) < len(names):
        raise TruesimError(f"Two logs are named {max(names, key=names.count)}; names must differ.")
    for log in logs:
        _check_columns(log, model)
    with jax.enable_x64(True):
        return locate([prepare(log, model) for log in logs], model)


def assemble(model: Model, logs: Sequence[Log], patterns: Sequence[str], options: ProblemOptions) -> Problem:
    """Build the problem from prepared logs; arguments as in `build`."""
    if not logs:
        raise TruesimError("There are no logs to fit to.")
    with jax.enable_x64(True):
        return _assemble(model, logs, patterns, options)


def _assemble(model: Model, logs: Sequence[Log], patterns: Sequence[str], options: ProblemOptions) -> Problem:
    names = [log.name for log in logs]
    known = resolve(model, names, options.per_log)
    own = {str(p.targets[0]) for p in known.free} | {str(t) for t in (*known.targets, *known.inputs)}
    shared = [p for p in free(model, patterns, options.ties) if str(p.targets[0]) not in own]
    parameters = ParameterSet((*shared, *known.free)).reaching(options.reach)
    parameters = parameters.bounded(options.bounds).with_priors(options.priors)
    compared = _comparable(model, measured_channels(model, logs, options.channels), options)
    recordings = tuple(recording(log, model, compared, known.columns) for log in logs)
    step = sampling_step(recordings)
    lookahead = int(np.ceil(_longest_delay(model, parameters, known, "sensors") / step))
    recordings = tuple(r.with_lookahead(lookahead) for r in recordings)
    simulator = _simulator(model, parameters, known, step, options)
    if options.blueprint is not None:
        simulator = simulator.augmented(options.blueprint)
        parameters = ParameterSet((*parameters, *network_parameters(simulator, options.blueprint)))
    return Problem(
        simulator=simulator,
        parameters=parameters,
        channels=compared,
        recordings=recordings,
        known=known.targets,
        known_values=known.values,
        inputs=known.inputs,
        prior_width=options.prior_width,
        blueprint=options.blueprint,
        level=options.level,
    )


def _comparable(model: Model, channels: tuple[Channel, ...], options: ProblemOptions) -> tuple[Channel, ...]:
    """Channels that the contact model predicts: the file's has no accelerometers."""
    if options.contact != FROM_FILE:
        return channels
    felt = {f"sensor/{s.name}" for s in model.sensors.declared if s.kind == "accelerometer"}
    chosen = [channel for channel in channels if channel.name in felt]
    if chosen and options.channels:
        raise TruesimError(
            f"{chosen[0].name} is an accelerometer, which a fit with the file's contact cannot compare; leave it out "
            "of the channels, or use the contact model rigid."
        )
    kept = tuple(channel for channel in channels if channel.name not in felt)
    if not kept:
        raise TruesimError("The logs hold accelerometers only, which a fit with the file's contact cannot compare.")
    return kept


def same_problem(
    problem: Problem, model: Model, logs: Sequence[Log], patterns: Sequence[str], options: ProblemOptions
) -> Problem:
    """Build the same problem for other prepared logs; kernels are shared where possible."""
    same = dataclasses.replace(options, channels=[channel.name for channel in problem.channels])
    return dataclasses.replace(assemble(model, logs, patterns, same), like=problem)


def _check_columns(log: Log, model: Model) -> None:
    """Raise an error for a log without commands or without any measured channel."""
    missing = [name for name in command_columns(model) if name not in log.columns]
    held = any(channel.restrict(log.columns) is not None for channel in known_channels(model))
    if missing or not held:
        matching(log, model).check(log.name)
    if missing:
        others = f" and {len(missing) - 1} more commands" if len(missing) > 1 else ""
        raise TruesimError(
            f"{log.name} has no column {missing[0]!r}{others}: a simulation needs what every actuator was told. If it "
            f"was constant, a mapping file says so: [columns] '{missing[0]}' = 0.0."
        )


def _simulator(
    model: Model, parameters: ParameterSet, known: PerLogValues, interval: float, options: ProblemOptions
) -> Simulator:
    """The simulator, with buffers for the longest delay and friction in every joint where it may become nonzero."""
    varied = [t for p in parameters for t in p.targets] + [*known.targets, *known.inputs]
    frictional = _frictional_joints(model, varied)
    default = Simulator.of(model, contact=None)
    steps = max(1, int(np.ceil(interval / float(default.timestep) - 0.01)))
    longest = _longest_delay(model, parameters, known, "actuators") * float(default.timestep) * steps / interval
    contact = _contact(model, options, [t.path.field for t in varied], frictional)
    simulator = Simulator.of(model, contact=contact, max_delay=longest)
    joint_model, by_contact = simulator.joint_model, simulator.impulse_contact is not None
    if isinstance(joint_model, MujocoJointModel) and not by_contact:
        joints = tuple(sorted({*joint_model.friction, *frictional}))
        loaded = joint_model.loaded or any(t.path.field == "load_friction" for t in varied)
        joint_model = dataclasses.replace(joint_model, friction=joints, loaded=loaded)
        simulator = eqx.tree_at(lambda s: s.joint_model, simulator, joint_model)
    return simulator


def _frictional_joints(model: Model, varied: Sequence[Target]) -> set[int]:
    """Joints whose friction may become nonzero."""
    paths = [t.path for t in varied if t.path.group == "joints" and t.path.field in FRICTION_FIELDS]
    return {path.index for path in paths if path.index is not None} if model.defaults.joint_friction else set()


def _contact(
    model: Model, options: ProblemOptions, varied: Sequence[str], frictional: set[int]
) -> AbstractContact | None:
    """The contact model of the options, with restitution and joint friction where they may vary."""
    bounces = True if "restitution" in varied else None
    contact = contact_named(model, options.contact, smoothing=options.smoothing, bounces=bounces)
    if isinstance(contact, RigidContact):
        friction = tuple(sorted({*contact.friction, *frictional}))
        stiction = contact.has_stiction or "stiction" in varied
        return dataclasses.replace(contact, friction=friction, has_stiction=stiction)
    if isinstance(contact, ImplicitCompliantContact):
        return dataclasses.replace(contact, friction=tuple(sorted({*contact.friction, *frictional})))
    return contact


def _longest_delay(model: Model, parameters: ParameterSet, known: PerLogValues, group: str) -> float:
    """Longest delay of commands (`actuators`) or of measurements (`sensors`) within the bounds [s]."""

    def delays(targets: Sequence[Target]) -> list[int]:
        return [k for k, t in enumerate(targets) if t.path.group == group and t.path.field == "delay"]

    longest = [float(np.max(getattr(model, group).delay, initial=0.0))]
    longest += [float(np.max(p.high)) for p in parameters if delays(p.targets)]
    longest += [float(known.values[:, k].max()) for k in delays(known.targets)]
    return max(longest)
