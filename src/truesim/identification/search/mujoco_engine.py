"""Open-loop errors of a problem's logs, simulated by MuJoCo as a black box.

Candidates are written into copies of the compiled model and rolled out in parallel. Actuator delays are applied to the
controls before MuJoCo; scales, biases and delays of sensors are applied to its output.
"""

import copy
import dataclasses
from collections.abc import Sequence

import mujoco
import numpy as np
from mujoco import rollout

from truesim.core import libraries
from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.files.logs import Log
from truesim.files.robots.compiled_write import check_writable, compiled_model, write_values
from truesim.files.robots.supported import simulated_actuators
from truesim.identification.problem.problem import Problem
from truesim.identification.search.open_loop import (
    SEARCH_WINDOW,
    LogWindows,
    cut_windows,
    prior_equations,
    search_space,
    true_state,
)
from truesim.optimize.objective import AbstractObjective
from truesim.physics.model import paths
from truesim.physics.model.model import Model
from truesim.physics.parameters import Target

FULL_PHYSICS = mujoco.mjtState.mjSTATE_FULLPHYSICS
APPLIED_OUTSIDE = {("actuators", "delay"), ("actuators", "offset"), ("sensors", "bias"), ("sensors", "scale")} | {
    ("sensors", "delay"),
    (None, "time_scale"),
}
"""Fields (group, name) that act before or after MuJoCo and are not written into its model."""
NUMBERS_IN_MEMORY = 2**24
"""Numbers of trajectories held in memory at once, about: more need fewer rollouts and more memory."""


@dataclasses.dataclass
class MujocoEngine(AbstractObjective):
    """Open-loop errors of a problem's windows, simulated by MuJoCo."""

    problem: Problem
    window: float = SEARCH_WINDOW
    """Length of windows [s]; a shorter log is one window."""
    threads: int = 1
    logs: Sequence[Log] = ()
    """Logs of the problem: source of the columns `ctrl/<name>` of actuators that only MuJoCo simulates."""

    def __post_init__(self) -> None:
        problem = self.problem
        if problem.inputs:
            raise TruesimError(
                f"{problem.inputs[0]} follows a column of the log; MuJoCo cannot change it within a rollout."
            )
        if problem.simulator.learned is not None:
            raise TruesimError("MuJoCo cannot simulate networks; search on the engine truesim.")
        self._inside = [t for t in self._targets() if (t.path.group, t.path.field) not in APPLIED_OUTSIDE]
        for target in self._inside:
            check_writable(target.path)
        self.space = search_space(problem)
        self.windows = cut_windows(problem, self.window)
        self._compiled = compiled_model(problem.simulator.model)
        self._late = np.asarray(compiled_delays(self._compiled), float)
        self._step = float(self._compiled.opt.timestep)
        self._count = 1 + max(int(np.ceil(self._spans(w).max() / self._step)) for w in self.windows)
        self.steps = self._count * sum(len(w.at) for w in self.windows)

    def costs(self, theta: Float[np.ndarray, "batch size"]) -> Float[np.ndarray, " batch"]:
        """Cost of every candidate."""
        total = prior_equations(self.problem, theta).cost
        for windows, residuals in self.residuals(theta):
            scaled = residuals * windows.factor
            total = total + (scaled**2).sum(axis=(1, 2, 3)) / 2
        return np.where(np.isnan(total), np.inf, total)

    def residuals(
        self, theta: Float[np.ndarray, "batch size"]
    ) -> list[tuple[LogWindows, Float[np.ndarray, "batch windows intervals rows"]]]:
        """Prediction minus measurement in all windows of every log; NaN where a rollout stopped early."""
        out = []
        for windows in self.windows:
            size = len(windows.at) * self._count * (self._compiled.nq + self._compiled.nv + 8)
            parts = np.array_split(theta, max(1, len(theta) * size // NUMBERS_IN_MEMORY))
            out.append((windows, np.concatenate([self._simulate(part, windows) for part in parts])))
        return out

    def _targets(self) -> list[Target]:
        return [*(t for p in self.problem.slots for t in p.targets), *self.problem.known]

    def _spans(self, windows: LogWindows) -> np.ndarray:
        """Times from each window's start to its samples [s]."""
        time = self.problem.recordings[windows.log].time
        return time[windows.at] - time[windows.at[:, :1]]

    def _simulate(self, theta: np.ndarray, windows: LogWindows) -> np.ndarray:
        """Residuals of one log's windows."""
        candidates = [self._numbers(row, windows.log) for row in theta]
        compiled = [write_values(copy.copy(self._compiled), m, [t.path for t in self._inside]) for m in candidates]
        states = np.concatenate(
            [self._initial_states(m, c, windows) for m, c in zip(candidates, compiled, strict=True)]
        )
        controls = np.concatenate([self._controls(m, windows) for m in candidates])
        each = [c for c in compiled for _ in range(len(windows.at))]
        data = [mujoco.MjData(self._compiled) for _ in range(self.threads)]
        after, sensed = rollout.rollout(each, data, states, controls, nstep=self._count)
        shape = (len(theta), len(windows.at), self._count)
        before = np.concatenate([states[:, None], after[:, :-1]], axis=1).reshape(*shape, -1)
        sensed = sensed.reshape(*shape, -1)
        found = [self._compare(m, x, s, windows) for m, x, s in zip(candidates, before, sensed, strict=True)]
        return np.stack(found)

    def _numbers(self, theta: np.ndarray, log: int) -> Model:
        """Model of a candidate with the values of one log."""
        problem = self.problem
        model, name = problem.simulator.model, problem.recordings[log].name
        values, _ = problem.values(theta)
        for parameter, at in zip(problem.parameters, problem.parameters.number_slices(), strict=True):
            if parameter.log in (None, name):
                for target in parameter.targets:
                    model = _write(model, target, values[at].reshape(np.shape(parameter.start)))
        for k, target in enumerate(problem.known):
            assert problem.known_values is not None, "known parameters have values"
            model = _write(model, target, problem.known_values[log, k])
        return model

    def _initial_states(self, model: Model, compiled: mujoco.MjModel, windows: LogWindows) -> np.ndarray:
        """Initial states of the windows in MuJoCo's full-physics layout."""
        recording, data = self.problem.recordings[windows.log], mujoco.MjData(compiled)
        states = np.empty((len(windows.at), mujoco.mj_stateSize(compiled, FULL_PHYSICS)))
        for state, first in zip(states, windows.at[:, 0], strict=True):
            mujoco.mj_resetData(compiled, data)
            data.qpos[:], data.qvel[:] = true_state(model, recording.q[first], recording.v[first])
            mujoco.mj_getState(compiled, data, state, FULL_PHYSICS)
        return states

    def _controls(self, model: Model, windows: LogWindows) -> np.ndarray:
        """Controls of every step: the mean over the step of the held, delayed commands."""
        recording, scale = self.problem.recordings[windows.log], float(model.time_scale)
        begins = recording.time[windows.at[:, :1]] + self._step * np.arange(self._count) / scale
        out = np.zeros((*begins.shape, self._compiled.nu))
        for name, column in self._others(windows.log).items():
            k = self._compiled.actuator(name).id
            out[..., k] = _held_mean(recording.time, column, begins, self._step / scale)
        for i, k in enumerate(simulated_actuators(self._compiled)):
            late = (float(model.actuators.delay[i]) - self._late[k]) / scale
            command = _held_mean(recording.time, recording.command[:, i], begins - late, self._step / scale)
            out[..., k] = command + float(model.actuators.offset[i])
        return out

    def _others(self, log: int) -> dict[str, np.ndarray]:
        """Columns of actuators that only MuJoCo simulates, at the samples of the recording."""
        if not self.logs:
            return {}
        source, time = self.logs[log], self.problem.recordings[log].time
        known = {self._compiled.actuator(int(k)).name for k in simulated_actuators(self._compiled)}
        names = [self._compiled.actuator(k).name for k in range(self._compiled.nactuator)]
        columns = {n: source.columns[f"ctrl/{n}"] for n in names if n not in known and f"ctrl/{n}" in source.columns}
        at = np.clip(np.searchsorted(source.time, time + 1e-9, side="right") - 1, 0, None)
        return {name: np.nan_to_num(column[at]) for name, column in columns.items()}

    def _compare(self, model: Model, states: np.ndarray, sensed: np.ndarray, windows: LogWindows) -> np.ndarray:
        """Residuals of one candidate in all windows."""
        nq, nv = self._compiled.nq, self._compiled.nv
        sensors, offset = model.sensors, self._compiled.sensor_adr
        truth = {"qpos": states[..., 1 : 1 + nq], "qvel": states[..., 1 + nq : 1 + nq + nv]}
        links = {model.joints.names[link.joint]: link for link in model.topology.links if link.joint >= 0}
        spans, measured = self._spans(windows) * float(model.time_scale), self.problem.recordings[windows.log].measured
        parts, at = [], 0
        for channel in self.problem.channels:
            if channel.kind == "sensor":
                first = int(offset[self._compiled.sensor(channel.object).id])
                values = sensed[..., [first + k for k in channel.components]]
            else:
                link = links[channel.object]
                values = truth[channel.kind][..., link.q if channel.kind == "qpos" else link.v][..., channel.components]
            named = [sensors.names.index(c.removeprefix("sensor/")) for c in channel.columns]
            delay = float(np.max(np.asarray(sensors.delay)[named], initial=0.0))
            seen = _interpolate(values, np.clip(spans - delay, 0, None) / self._step)
            seen = np.asarray(sensors.scale)[named] * seen + np.asarray(sensors.bias)[named]
            own = measured[windows.at][..., at : at + len(channel.columns)]
            parts.append(_difference(seen, own, channel.has_quaternion))
            at += len(channel.columns)
        residual = np.concatenate(parts, axis=-1)
        stopped = states[:, -1, 0] < (self._count - 1.5) * self._step
        return np.where(stopped[:, None, None], np.nan, residual)


def compiled_delays(compiled: mujoco.MjModel) -> np.ndarray:
    """Delay that MuJoCo itself applies to each actuator [s]."""
    return np.asarray(compiled.actuator_delay)


def _write(model: Model, target: Target, value: np.ndarray) -> Model:
    """Write a value into a model, in NumPy."""
    new = np.array(paths.read(model, target.path), float)
    new[() if target.element is None else target.element] = target.sign * value
    return paths.write(model, target.path, new)


def _held_mean(time: np.ndarray, values: np.ndarray, begins: np.ndarray, duration: float) -> np.ndarray:
    """Mean over `duration` of a zero-order hold signal; before its first sample it has its first value."""
    edges = np.concatenate([time[:1] - 1e3, time, time[-1:] + 1e3])
    held = np.concatenate([values[:1], values])
    integral = np.concatenate([[0.0], np.cumsum(np.diff(edges) * np.append(held[:1], held[1:]))])
    return (np.interp(begins + duration, edges, integral) - np.interp(begins, edges, integral)) / duration


def _interpolate(values: Float[np.ndarray, "windows steps columns"], place: np.ndarray) -> np.ndarray:
    """Linear interpolation of values at fractional steps."""
    first = np.clip(np.floor(place).astype(int), 0, values.shape[1] - 2)
    part = (place - first)[..., None]
    rows = np.arange(len(values))[:, None]
    return (1 - part) * values[rows, first] + part * values[rows, first + 1]


def _difference(seen: np.ndarray, measured: np.ndarray, turns: bool) -> np.ndarray:
    """Prediction minus measurement; a quaternion's is a rotation vector [rad]."""
    if not turns:
        return seen - measured
    shape = seen.shape[:-1]
    from_quat = libraries.scipy.spatial.transform.Rotation.from_quat
    turn = from_quat(measured[..., -4:].reshape(-1, 4), scalar_first=True).inv()
    turn = turn * from_quat(seen[..., -4:].reshape(-1, 4), scalar_first=True)
    return np.concatenate([(seen - measured)[..., :-4], turn.as_rotvec().reshape(*shape, 3)], axis=-1)
