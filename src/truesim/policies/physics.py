"""Physics of a batch outside of JAX: MuJoCo's constraint model by table-driven routines, and MuJoCo itself."""

import dataclasses
from typing import NamedTuple

import mujoco
import numpy as np

from truesim.core.errors import TruesimError
from truesim.physics.model import targets
from truesim.physics.routines.engine import Engine
from truesim.physics.simulation import State, named_values
from truesim.physics.simulation.table_step import engine_of
from truesim.policies.environment import BatchPhysics
from truesim.policies.episodes import Episode
from truesim.policies.randomization import HOW, expand
from truesim.policies.task import PolicyTask


def physics_of(task: PolicyTask, batch: int, threads: int = 1) -> BatchPhysics | None:
    """Physics for training a task: its own, routines for the contact of an MJCF file, or None, the simulator in JAX."""
    if task.physics is not None:
        return task.physics(task, batch)
    if task.simulator.constraint_contact is None:
        return None
    found = engine_of(task.simulator)
    if isinstance(found, str):
        raise TruesimError(f"The contact of the robot file cannot be simulated for {task.name}: {found}.")
    return TablePhysics(task, found, batch, threads)


class TablePhysics:
    """MuJoCo's constraint model for a batch, with randomized parameters of each episode."""

    def __init__(self, task: PolicyTask, engine: Engine, batch: int, threads: int = 1):
        """Prepare the parameters.

        Args:
            task: The task.
            engine: Routines with the task's nominal numbers.
            batch: Number of episodes.
            threads: Threads over which the batch is split.
        """
        self._engine, self._batch, self._threads = engine, batch, threads
        simulator, randomization = task.simulator, task.randomization
        self._written = [
            WrittenParameter(
                path,
                randomization.distributions[path].how if path in randomization.distributions else "set",
                np.asarray(named_values.read(simulator, target)),
                places(task, engine, target),
            )
            for path in randomization.paths
            for target in expand(simulator, path)
        ]
        self._parameters = {
            name: np.repeat(np.asarray(engine.model.parameters[name], engine.dtype)[None], batch, axis=0)
            for name in {each.places.name for each in self._written}
        }
        self._begun, self._changing = (
            np.full(batch, -1, np.int64),
            np.isfinite(task.change_interval) or randomization.changes_within_episodes,
        )

    def advance(self, episodes: Episode, controls: np.ndarray) -> State:
        """States after a control period."""
        state = episodes.state
        if self._parameters:
            self._write_parameters(episodes)
        assert state.acceleration is not None, "states of constraint-level contact have one"
        q, v, warm = (np.asarray(x) for x in (state.q, state.v, state.acceleration))
        rolled = self._engine.rollout(q, v, warm, controls, self._threads, self._parameters)
        time = state.time + np.float32(controls.shape[1] * float(self._engine.model.parameters["timestep"][0]))
        return dataclasses.replace(
            state,
            q=rolled.qpos[:, -1],
            v=rolled.qvel[:, -1],
            acceleration=rolled.warmstart[:, -1],
            time=time.astype(np.asarray(state.time).dtype),
        )

    def _write_parameters(self, episodes: Episode) -> None:
        """Write the parameters of episodes that have begun since the last step, or whose parameters may change."""
        begun = np.asarray(episodes.counter, np.int64) - np.asarray(episodes.step)
        changed = np.flatnonzero((begun != self._begun) | self._changing)
        self._begun = begun
        if not len(changed):
            return
        for each in self._written:
            drawn = np.asarray(episodes.parameters[each.path])[changed]
            each.places.write(self._parameters, changed, np.asarray(HOW[each.how](each.nominal, drawn)))


@dataclasses.dataclass(frozen=True)
class ParameterPlaces:
    """Places of a parameter in an array of the routines."""

    name: str
    """Name of the array, as in `mjModel`."""
    rows: np.ndarray
    """Positions in the array of one instance, flattened; shape (copies, elements)."""
    elements: tuple[int, ...] | None = None
    """Elements of the value at each position; all of them in order by default."""
    least: np.ndarray | None = None
    """Lower bounds of what is written, shape (copies, elements)."""

    def write(self, arrays: dict[str, np.ndarray], instances: np.ndarray, values: np.ndarray) -> None:
        """Write values of some instances, shape (instances, elements)."""
        values = values.reshape(len(instances), -1)
        if self.elements is not None:
            values = values[:, list(self.elements)]
        each = np.broadcast_to(values[:, None], (len(instances), *self.rows.shape))
        each = each if self.least is None else np.maximum(each, self.least)
        flat = arrays[self.name].reshape(len(arrays[self.name]), -1)
        flat[instances[:, None], self.rows.ravel()[None]] = each.reshape(len(instances), -1)


class WrittenParameter(NamedTuple):
    """A randomized parameter, and where its values go."""

    path: str
    """Path of the randomization."""
    how: str
    nominal: np.ndarray
    places: ParameterPlaces


_BODY = {"mass": "body_mass", "com": "body_ipos", "position": "body_pos"}
_DOF = {"damping": "dof_damping", "armature": "dof_armature", "frictionloss": "dof_frictionloss"}
_ACTUATOR = {"gain": "actuator_gainprm", "bias": "actuator_biasprm"}
RANDOMIZED_FIELDS = (*_BODY, *_DOF, *_ACTUATOR, "friction", "gravity")
"""Fields that can differ between episodes of MuJoCo's constraint model."""


def places(task: PolicyTask, engine: Engine, target: targets.Target) -> ParameterPlaces:
    """Place of a target in the arrays of the routines."""
    model, path, index = task.simulator.model, target.path, target.path.index or 0
    if path.group == "bodies" and path.field in _BODY:
        width = 1 if path.field == "mass" else 3
        name, rows = _BODY[path.field], (index + 1) * width + np.arange(width)
    elif path.group == "joints" and path.field in _DOF:
        link = next(link for link in model.topology.links if link.joint == index)
        return ParameterPlaces(_DOF[path.field], np.arange(link.v.start, link.v.stop)[:, None], elements=(0,))
    elif path.group == "actuators" and path.field in _ACTUATOR:
        name, rows = _ACTUATOR[path.field], 3 * index + np.arange(1 if path.field == "gain" else 3)
    elif path.group == "geoms" and path.field == "friction" and target.element in (None, 0):
        return _friction_places(task, engine, index, target.element)
    elif path.field == "gravity":
        name, rows = "gravity", np.arange(3)
    else:
        raise TruesimError(
            f"{target} cannot differ between episodes with the contact of the robot file. "
            f"Valid fields: {', '.join(RANDOMIZED_FIELDS)}."
        )
    return ParameterPlaces(name, rows[None] if target.element is None else rows[None, [target.element]])


def _friction_places(task: PolicyTask, engine: Engine, geom: int, element: int | None) -> ParameterPlaces:
    """Friction coefficients of all pairs of a geom, mixed as MuJoCo does.

    The geom of higher priority decides; of equal ones the larger friction, where the other geom's counts as nominal.
    """
    source = task.simulator.model.source
    assert source is not None, "routines need a file"
    priority, friction = source.compiled.geom_priority, source.compiled.geom_friction
    first, second = (engine.model.structure[name] for name in ("pair_geom1", "pair_geom2"))
    pairs = np.flatnonzero((first == geom) | (second == geom))
    others = np.where(first[pairs] == geom, second[pairs], first[pairs])
    decides = priority[others] <= priority[geom]
    pairs, others = pairs[decides], others[decides]
    elements = (0, 0) if element == 0 else (0, 0, 1, 2, 2)
    rows = 5 * pairs[:, None] + np.arange(len(elements))
    equal = (priority[others] == priority[geom])[:, None]
    return ParameterPlaces(
        "pair_friction", rows, elements, np.where(equal, friction[others][:, list(elements)], -np.inf)
    )


class MujocoPhysics:
    """MuJoCo itself, one episode after the other, at the time step of its own model."""

    def __init__(self, model: mujoco.MjModel, period: float):
        """Prepare.

        Args:
            model: The robot, with the actuators that the policy controls.
            period: Control period [s].
        """
        ratio = period / model.opt.timestep
        if abs(ratio - round(ratio)) > 1e-6 * ratio:
            raise TruesimError(
                f"The control period of {period:g} s is no whole number of MuJoCo's time steps "
                f"of {model.opt.timestep:g} s."
            )
        self._model, self._steps, self._data = model, round(ratio), mujoco.MjData(model)

    def advance(self, episodes: Episode, controls: np.ndarray) -> State:
        """States after a control period; controls of the task's time steps are held between them."""
        state, model, data = episodes.state, self._model, self._data
        q, v = np.array(state.q), np.array(state.v)
        warm = None if state.acceleration is None else np.array(state.acceleration)
        when = np.arange(self._steps) * controls.shape[1] // self._steps
        for k in range(len(q)):
            data.qpos[:], data.qvel[:], data.qacc_warmstart[:] = q[k], v[k], 0.0 if warm is None else warm[k]
            for step in range(self._steps):
                data.ctrl[:] = controls[k, when[step]]
                mujoco.mj_step(model, data)
            q[k], v[k] = data.qpos, data.qvel
            if warm is not None:
                warm[k] = data.qacc_warmstart
        time = (np.asarray(state.time) + self._steps * model.opt.timestep).astype(np.asarray(state.time).dtype)
        return dataclasses.replace(state, q=q, v=v, time=time, acceleration=warm)
