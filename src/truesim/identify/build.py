"""From a robot, logs and patterns to a problem."""

from collections.abc import Mapping, Sequence

import equinox as eqx
import numpy as np

from truesim.core.errors import TruesimError
from truesim.data import Log, prepared
from truesim.identify.channels import measured_channels
from truesim.identify.layout import STRETCH, sampling_step
from truesim.identify.locate import located
from truesim.identify.per_log import Known, PerLog, resolve
from truesim.identify.problem import Problem
from truesim.identify.recording import recording
from truesim.model.model import Model
from truesim.parameters import ParameterSet, Target, free
from truesim.simulate import Simulator
from truesim.simulate.joint_laws import MujocoJointLaw

Pair = tuple[float, float]


def build(
    model: Model,
    logs: Sequence[Log],
    patterns: Sequence[str],
    *,
    ties: Sequence[Sequence[str] | str] = (),
    bounds: Mapping[str, Pair] | None = None,
    priors: Mapping[str, Pair] | None = None,
    per_log: PerLog | None = None,
    channels: Sequence[str] = (),
) -> Problem:
    """The problem of finding the parameters that `patterns` name from logs.

    Args:
        model: The robot; its values are the start.
        logs: Recordings of it.
        patterns: Paths to free, such as `bodies/*.mass`.
        ties: Patterns, or lists of them, whose matches share one value.
        bounds: Lower and upper bound by pattern [SI units].
        priors: Mean and standard deviation by pattern [SI units].
        per_log: What differs from log to log, by log name and path.
        channels: Patterns of measured channels to compare; all that make sense by default.
    """
    if not logs:
        raise TruesimError("There are no logs to fit to.")
    names = [log.name for log in logs]
    if len(set(names)) < len(names):
        raise TruesimError(f"Two logs are named {max(names, key=names.count)}; names must differ.")
    known = resolve(model, names, per_log or {})
    own = {str(p.targets[0]) for p in known.free} | {str(t) for t in (*known.targets, *known.inputs)}
    chosen = [p for p in free(model, patterns, ties) if str(p.targets[0]) not in own]
    parameters = ParameterSet((*chosen, *known.free)).bounded(bounds or {}).believed(priors or {})
    clean = located([prepared(log, model) for log in logs], model)
    compared = measured_channels(model, clean, channels)
    recordings = tuple(recording(log, model, compared, known.columns) for log in clean)
    return Problem(
        simulator=_simulator(model, parameters, known, sampling_step(recordings)),
        parameters=parameters,
        channels=compared,
        recordings=recordings,
        known=known.targets,
        known_values=known.values,
        inputs=known.inputs,
        stretch=STRETCH,
    )


def _simulator(model: Model, parameters: ParameterSet, known: Known, interval: float) -> Simulator:
    """The simulator of the model's file, with room for every friction and delay that may come to differ from zero."""
    varied = [t for p in parameters for t in p.targets] + [*known.targets, *known.inputs]
    usual = Simulator.of(model)
    steps = max(1, int(np.ceil(interval / float(usual.timestep) - 0.01)))
    simulator = Simulator.of(
        model, max_delay=_longest_delay(model, parameters, known) * usual.timestep * steps / interval
    )
    law = simulator.joint_law
    if isinstance(law, MujocoJointLaw) and model.options.dry_friction:
        rough = {
            t.path.index for t in varied if t.path.group == "joints" and t.path.field in ("frictionloss", "stiction")
        }
        law = MujocoJointLaw(tuple(sorted({*law.friction, *rough})), law.limits, law.safe_reference)  # type: ignore[type-var]
        simulator = eqx.tree_at(lambda s: s.joint_law, simulator, law)
    return simulator


def _longest_delay(model: Model, parameters: ParameterSet, known: Known) -> float:
    """The longest delay of a command that the problem allows [s]."""

    def delays(targets: Sequence[Target]) -> list[int]:
        return [k for k, t in enumerate(targets) if t.path.group == "actuators" and t.path.field == "delay"]

    longest = [float(np.max(model.actuators.delay, initial=0.0))]
    longest += [float(np.max(p.high)) for p in parameters if delays(p.targets)]
    longest += [float(known.values[:, k].max()) for k in delays(known.targets)]
    return max(longest)
