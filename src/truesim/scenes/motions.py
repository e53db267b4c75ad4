"""Motions to show: configurations over time, of logs and of fits, and the poses of bodies in them."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import numpy as np

from truesim import native
from truesim.core.typing import Array, Float
from truesim.files.logs import Log, motion
from truesim.files.logs.cleaning import POSITION_SENSORS
from truesim.math.spatial.rotation import matrix_quaternion
from truesim.physics.dynamics import body_poses, integrate, reference_configuration
from truesim.physics.model.columns import joint_position_columns, sensor_columns
from truesim.physics.model.model import Model

FRAME_RATE = 30.0
"""Frames of a motion per second; more are smoother in larger files."""
MAX_FRAMES = 900
"""Frames of one motion; longer ones are shown at a lower rate."""


class BodyPoses(NamedTuple):
    """Poses of all bodies in the world, frame by frame."""

    rotation: Float[np.ndarray, "frames bodies 3 3"]
    translation: Float[np.ndarray, "frames bodies 3"]
    """[m]"""
    quaternion: Float[np.ndarray, "frames bodies 4"]
    """Unit quaternions, scalar first."""

    def in_parents(self, parents: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Translations [m] and quaternions of bodies relative to their parents; -1 is the world.

        Most joints turn about the origin of their body, so that most translations are constant.
        """
        child = np.flatnonzero(np.asarray(parents) >= 0)
        parent = np.asarray(parents)[child]
        translation, quaternion = self.translation.copy(), self.quaternion.copy()
        offset = self.translation[:, child] - self.translation[:, parent]
        translation[:, child] = np.einsum("fbji,fbj->fbi", self.rotation[:, parent], offset)
        w, u = np.split(self.quaternion[:, parent], [1], axis=-1)
        a, b = np.split(self.quaternion[:, child], [1], axis=-1)
        real = w * a + np.sum(u * b, axis=-1, keepdims=True)
        quaternion[:, child] = np.concatenate([real, w * b - a * u - np.cross(u, b)], axis=-1)
        return translation, quaternion


@dataclasses.dataclass(frozen=True)
class ShownMotion:
    """Configurations of a robot at the frames of a replay."""

    name: str
    """`recorded`, `fitted` or `start`."""
    time: Float[np.ndarray, " frames"]
    """[s]"""
    q: Float[np.ndarray, "frames nq"]


def poses_of(model: Model, q: Float[np.ndarray, "frames nq"]) -> BodyPoses:
    """Poses of all bodies at configurations."""
    with jax.enable_x64(True):
        return BodyPoses(*map(np.asarray, _compile_poses(kinematic_model(model))(q)))


def kinematic_model(model: Model) -> Model:
    """The model with NaN in the place of all numbers on which poses do not depend.

    Kernels of poses are found in the cache by it, whatever masses or friction have been identified.
    """
    erased = jax.tree.map(lambda x: np.full(np.shape(x), np.nan), model)
    bodies, joints = model.bodies, model.joints
    return dataclasses.replace(
        erased,
        bodies=dataclasses.replace(erased.bodies, position=bodies.position, orientation=bodies.orientation),
        joints=dataclasses.replace(erased.joints, axis=joints.axis, position=joints.position, ref=joints.ref),
    )


def _compile_poses(model: Model) -> native.Kernel:
    """Kernel from a configuration to rotations, translations and quaternions of all bodies."""

    def poses(q: Array) -> tuple[Array, Array, Array]:
        found = body_poses(model, q)
        return found.rotation, found.translation, jax.vmap(matrix_quaternion)(found.rotation)

    structure = native.KernelStructure("poses of bodies", (model,), (0.0, 0.0, 0.0))
    return native.compile(poses, np.zeros(model.nq), structure=structure)


def start_configuration(model: Model) -> Float[np.ndarray, " nq"]:
    """The first keyframe of the file, or its reference configuration."""
    return np.asarray(model.keyframes[0].q if model.keyframes else reference_configuration(model), float)


def frame_times(begin: float, end: float) -> Float[np.ndarray, " frames"]:
    """Times of the frames of a replay [s]."""
    count = int(np.clip((end - begin) * FRAME_RATE, 2, MAX_FRAMES))
    return np.linspace(begin, end, count)


def recorded_motion(model: Model, log: Log) -> ShownMotion:
    """Motion of a prepared log; coordinates that it does not measure stay at the start configuration."""
    q = motion(log, model).q
    at = frame_times(float(log.time[0]), float(log.time[-1]))
    shown = np.tile(start_configuration(model), (len(at), 1))
    for k in range(model.nq):
        if (known := np.isfinite(q[:, k])).any():
            shown[:, k] = np.interp(at, log.time[known], q[known, k])
    return ShownMotion("recorded", at, _unit_quaternions(model, shown))


def simulated_motion(
    model: Model, recorded: ShownMotion, signals: Mapping[str, np.ndarray], key: str, which: str
) -> ShownMotion:
    """Motion of the open-loop simulations of a fit, along with the recorded one.

    The simulated configuration is the recorded one plus the difference between simulated and measured positions.
    Joints whose position is not measured move as recorded.

    Args:
        model: The robot.
        recorded: Recorded motion of the same log.
        signals: Signals of the fit, from `Fit.signals`.
        key: Log within the signals, such as `train/run0.csv`.
        which: `fitted` or `start`.
    """
    rows = [str(row) for row in signals["rows"]]
    time, difference = signals[f"{key}/time"], signals[f"{key}/{which}"] - signals[f"{key}/measured"]
    moved = np.zeros((len(recorded.time), model.nv))
    for link in model.topology.links:
        if link.joint < 0 or (own := _rows_of(model, link.joint, rows)) is None:
            continue
        for k, row in enumerate(own):
            known = np.isfinite(difference[:, row])
            if known.any():
                moved[:, link.v_start + k] = np.interp(recorded.time, time[known], difference[known, row])
    return ShownMotion(which, recorded.time, _integrate(model, recorded.q, moved))


def _integrate(model: Model, q: Float[np.ndarray, "frames nq"], dq: Float[np.ndarray, "frames nv"]) -> np.ndarray:
    """Configurations moved by tangent vectors; without quaternions that is a sum, which needs no compilation."""
    if model.nq == model.nv:
        return q + dq
    with jax.enable_x64(True):
        return np.asarray(jax.jit(jax.vmap(lambda q, dq: integrate(model, q, dq)))(q, dq))


def position_rows(model: Model, rows: Sequence[str]) -> list[int]:
    """Joints whose position is among the rows of a fit."""
    return [j for j in range(len(model.joints.names)) if _rows_of(model, j, rows) is not None]


def _rows_of(model: Model, joint: int, rows: Sequence[str]) -> list[int] | None:
    """Rows of the position of a joint, one per degree of freedom; rotations as vectors."""
    names = joint_position_columns(model, joint)
    sensors = [s for s in model.sensors.declared if s.kind in POSITION_SENSORS and s.object == joint]
    for columns in (names, *map(sensor_columns, sensors)):
        linear = columns if len(columns) < 4 else columns[:-4]
        turned = [] if len(columns) < 4 else [f"{columns[-1].rpartition('/')[0]}/r{axis}" for axis in "xyz"]
        if all(name in rows for name in (*linear, *turned)):
            return [rows.index(name) for name in (*linear, *turned)]
    return None


def _unit_quaternions(model: Model, q: np.ndarray) -> np.ndarray:
    for link in model.topology.links:
        if link.joint >= 0 and link.kind.nq >= 4:
            own = slice(link.q_start + link.kind.nq - 4, link.q_start + link.kind.nq)
            q[:, own] /= np.linalg.norm(q[:, own], axis=1, keepdims=True)
    return q
