"""From a robot, logs and patterns to a problem."""

import dataclasses
from collections.abc import Mapping, Sequence

import equinox as eqx
import jax
import numpy as np

from truesim.contact import AbstractContact, ContactComplementarity
from truesim.contact.choose import NONE, contact_named
from truesim.core.errors import TruesimError
from truesim.data import Log, command_columns, matching, prepared
from truesim.identify.channels import known_channels, measured_channels
from truesim.identify.layout import STRETCH, sampling_step
from truesim.identify.locate import located
from truesim.identify.per_log import Known, PerLog, resolve
from truesim.identify.problem import Problem
from truesim.identify.recording import recording
from truesim.identify.weights import network_parameters
from truesim.model.model import Model
from truesim.parameters import ParameterSet, Target, free
from truesim.simulate import Blueprint, Simulator, Trained
from truesim.simulate.joint_laws import MujocoJointLaw

Pair = tuple[float, float]
ROUGH = ("frictionloss", "stiction")
"""Fields of a joint that give it dry friction."""


@dataclasses.dataclass(frozen=True)
class Options:
    """What may be said beyond which parameters are free."""

    ties: Sequence[Sequence[str] | str] = ()
    """Patterns, or lists of them, whose matches share one value."""
    bounds: Mapping[str, Pair] = dataclasses.field(default_factory=dict)
    """Lower and upper bound by pattern [SI units]."""
    priors: Mapping[str, Pair] = dataclasses.field(default_factory=dict)
    """Mean and standard deviation by pattern [SI units]."""
    per_log: PerLog = dataclasses.field(default_factory=dict)
    """What differs from log to log, by log name and path."""
    channels: Sequence[str] = ()
    """Patterns of measured channels to compare; all that make sense by default."""
    contact: str = NONE
    """Law of contact: `none`, `rigid` or `compliant`."""
    barrier: float | None = None
    """Of rigid contact: larger gives smoother gradients through contact events, the hardest unless given."""
    blueprint: Blueprint | Trained | None = None
    """Networks within the physics, whose weights are found together with the parameters."""
    validation: Sequence[Log] = ()
    """Logs that decide when networks are trained enough (early stopping); not fitted to."""


def build(model: Model, logs: Sequence[Log], patterns: Sequence[str], options: Options | None = None) -> Problem:
    """The problem of finding the parameters that `patterns` name from logs.

    Args:
        model: The robot; its values are the start.
        logs: Recordings of it.
        patterns: Paths to free, such as `bodies/*.mass`.
        options: Ties, bounds, priors, what differs from log to log, channels, contact.
    """
    with jax.enable_x64(True):
        return _built(model, logs, patterns, options or Options())


def _built(model: Model, logs: Sequence[Log], patterns: Sequence[str], options: Options) -> Problem:
    if not logs:
        raise TruesimError("There are no logs to fit to.")
    names = [log.name for log in logs]
    if len(set(names)) < len(names):
        raise TruesimError(f"Two logs are named {max(names, key=names.count)}; names must differ.")
    known = resolve(model, names, options.per_log)
    own = {str(p.targets[0]) for p in known.free} | {str(t) for t in (*known.targets, *known.inputs)}
    chosen = [p for p in free(model, patterns, options.ties) if str(p.targets[0]) not in own]
    parameters = ParameterSet((*chosen, *known.free)).bounded(options.bounds).believed(options.priors)
    for log in logs:
        _check_columns(log, model)
    clean = located([prepared(log, model) for log in logs], model)
    compared = measured_channels(model, clean, options.channels)
    recordings = tuple(recording(log, model, compared, known.columns) for log in clean)
    step = sampling_step(recordings)
    ahead = int(np.ceil(_longest_delay(model, parameters, known, "sensors") / step))
    recordings = tuple(dataclasses.replace(r, ahead=ahead) for r in recordings)
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
        stretch=STRETCH,
        blueprint=options.blueprint,
    )


def _check_columns(log: Log, model: Model) -> None:
    """Refuses a log without controls, or without anything that the robot could be compared with, and says why."""
    missing = [name for name in command_columns(model) if name not in log.columns]
    held = any(channel.within(log.columns) is not None for channel in known_channels(model))
    if missing or not held:
        matching(log, model).check(log.name)
    if missing:
        log.column(missing[0])


def _simulator(model: Model, parameters: ParameterSet, known: Known, interval: float, options: Options) -> Simulator:
    """The simulator of the model's file, with room for every friction and delay that may come to differ from zero."""
    varied = [t for p in parameters for t in p.targets] + [*known.targets, *known.inputs]
    rough = _rough_joints(model, varied)
    usual = Simulator.of(model)
    steps = max(1, int(np.ceil(interval / float(usual.timestep) - 0.01)))
    longest = _longest_delay(model, parameters, known, "actuators") * usual.timestep * steps / interval
    contact = _contact(model, options, [t.path.field for t in varied], rough)
    simulator = Simulator.of(model, contact=contact, max_delay=longest)
    law, elsewhere = simulator.joint_law, contact is not None and contact.treats_joints
    if isinstance(law, MujocoJointLaw) and not elsewhere:
        law = MujocoJointLaw(tuple(sorted({*law.friction, *rough})), law.limits, law.safe_reference)
        simulator = eqx.tree_at(lambda s: s.joint_law, simulator, law)
    return simulator


def _rough_joints(model: Model, varied: Sequence[Target]) -> set[int]:
    """Joints whose dry friction may come to differ from zero."""
    places = [t.path for t in varied if t.path.group == "joints" and t.path.field in ROUGH]
    return {path.index for path in places if path.index is not None} if model.options.dry_friction else set()


def _contact(model: Model, options: Options, varied: Sequence[str], rough: set[int]) -> AbstractContact | None:
    """The law of contact that was asked for, with room for restitution and dry friction if they may vary."""
    bounces = True if "restitution" in varied else None
    law = contact_named(model, options.contact, barrier=options.barrier, bounces=bounces)
    if isinstance(law, ContactComplementarity):
        return dataclasses.replace(law, friction=tuple(sorted({*law.friction, *rough})))
    return law


def _longest_delay(model: Model, parameters: ParameterSet, known: Known, group: str) -> float:
    """The longest delay of commands (`actuators`) or of readings (`sensors`) that the problem allows [s]."""

    def delays(targets: Sequence[Target]) -> list[int]:
        return [k for k, t in enumerate(targets) if t.path.group == group and t.path.field == "delay"]

    longest = [float(np.max(getattr(model, group).delay, initial=0.0))]
    longest += [float(np.max(p.high)) for p in parameters if delays(p.targets)]
    longest += [float(known.values[:, k].max()) for k in delays(known.targets)]
    return max(longest)
