"""Parameters that a fit kept fixed, in groups of one kind, such as `actuators/*.kp`."""

import dataclasses
from collections.abc import Iterator

import equinox as eqx
import numpy as np

from truesim.identification.problem.problem import Problem
from truesim.physics.model import paths
from truesim.physics.model.model import Model
from truesim.physics.parameters import Parameter, Target
from truesim.physics.parameters.parameter_set import parameter_at
from truesim.physics.simulation import Simulator
from truesim.physics.simulation.joint_models import MujocoJointModel

TESTED_FIELDS = {
    "actuators": ("kp", "kv", "gain", "delay", "force_range", "gear", "offset"),
    "joints": ("frictionloss", "damping", "armature", "stiffness", "springref"),
    "bodies": ("mass", "com", "inertia", "position", "orientation"),
    "sensors": ("bias", "scale"),
    None: ("gravity", "time_scale"),
}
"""Fields that are tested, by group; `None` is the model itself. Limits and numbers of solvers are not."""
MAX_TESTED_COORDINATES = 600
"""Coordinates beyond which later groups are left out. Larger tests more of robots with many bodies."""


@dataclasses.dataclass(frozen=True)
class FixedGroup:
    """Fixed parameters of one kind."""

    pattern: str
    """Pattern for `--free`."""
    parameters: tuple[Parameter, ...]

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return sum(p.size for p in self.parameters)


def fixed_groups(problem: Problem) -> list[FixedGroup]:
    """Groups of parameters that are neither free nor known for each log, in the order of `TESTED_FIELDS`."""
    model = problem.simulator.model
    given = {str(t.path) for p in problem.parameters for t in p.targets}
    given |= {str(t.path) for t in (*problem.known, *problem.inputs)}
    every = [*paths.paths(model), *paths.servo_gains(model)]
    found, size = [], 0
    for group, fields in TESTED_FIELDS.items():
        for field in fields:
            own = [p for p in every if (p.group, p.field) == (group, field) and not _is_given(model, p, given)]
            members = tuple(_parameters(model, own))
            size += sum(p.size for p in members)
            if members and size <= MAX_TESTED_COORDINATES:
                found.append(FixedGroup(field if group is None else f"{group}/*.{field}", members))
    return found


def with_room(problem: Problem, groups: list[FixedGroup]) -> Simulator:
    """The simulator of a problem with joint friction and command histories where the groups need them."""
    simulator, fields = problem.simulator, {p.targets[0].path.field for g in groups for p in g.parameters}
    joint_model, model = simulator.joint_model, simulator.model
    if "frictionloss" in fields and isinstance(joint_model, MujocoJointModel) and simulator.contact is None:
        joints = tuple(range(len(model.joints.names))) if model.defaults.joint_friction else joint_model.friction
        rough = MujocoJointModel(joints, joint_model.limits, joint_model.safe_reference, joint_model.loaded)
        simulator = eqx.tree_at(lambda s: s.joint_model, simulator, rough)
    if "delay" in fields:
        longest = max(float(np.max(p.high)) for g in groups for p in g.parameters if p.unit == "s")
        roomy = Simulator.of(model, contact=None, max_delay=longest)
        simulator = dataclasses.replace(simulator, history=max(simulator.history, roomy.history))
    return simulator


def _is_given(model: Model, path: paths.Path, given: set[str]) -> bool:
    """True if a path is free or known, or is part of a servo gain, which stands for it."""
    if str(path) in given:
        return True
    if path.group != "actuators" or path.field not in ("gain", "kp", "kv"):
        return False
    actuator = str(path).rpartition(".")[0]
    servo = {str(p) for p in paths.servo_gains(model) if p.index == path.index}
    if path.field == "gain":
        return bool(servo)
    return bool({f"{actuator}.gain", f"{actuator}.bias"} & given)


def _parameters(model: Model, found: list[paths.Path]) -> Iterator[Parameter]:
    for path in found:
        if path.group == "bodies" and not _moves(model, path.index or 0):
            continue
        if path.field == "force_range" and not model.actuators.force_limited[path.index or 0]:
            continue
        if path.field == "gear":
            yield parameter_at(model, (Target(path, 0),))
        else:
            yield parameter_at(model, (Target(path),))


def _moves(model: Model, body: int) -> bool:
    """True if a body, or a body that carries it, has a joint."""
    while body >= 0:
        if body in model.joints.bodies:
            return True
        body = model.bodies.parents[body]
    return False
