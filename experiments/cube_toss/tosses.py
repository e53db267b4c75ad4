"""Recorded tosses: frames, initial states, and errors of simulations."""

import dataclasses
from pathlib import Path

import numpy as np

from truesim.core.typing import Bool, Float
from truesim.files.logs import read_log

RATE = 148
"""Frames per second."""
GRAVITY = 9.61
"""Gravity in the recording's unit of length, which is 2 % too long, estimated from the flights [m/s^2]."""
FIRST = 6
"""Frames from which a toss's initial state is taken; all are in flight."""
COLUMNS = tuple(f"qpos/cube/{c}" for c in ("x", "y", "z", "qw", "qx", "qy", "qz"))
PLACE = 0.05
"""Position error that has the weight of a rotation error of one radian [m]."""


@dataclasses.dataclass(frozen=True)
class Tosses:
    """Tosses padded to the same number of frames; padded frames do not count."""

    q: Float[np.ndarray, "tosses 7"]
    """Configuration at the first frame."""
    v: Float[np.ndarray, "tosses 6"]
    """Velocity at the first frame."""
    frames: Float[np.ndarray, "tosses frames 7"]
    counts: Bool[np.ndarray, "tosses frames"]

    def __len__(self) -> int:
        return len(self.q)

    def __getitem__(self, which: slice) -> "Tosses":
        return Tosses(self.q[which], self.v[which], self.frames[which], self.counts[which])

    @property
    def lengths(self) -> np.ndarray:
        """Number of frames of each."""
        return self.counts.sum(axis=1)

    def errors(self, simulated: Float[np.ndarray, "tosses frames 7"]) -> tuple[np.ndarray, np.ndarray]:
        """Mean error of position [m] and rotation [rad] of every toss; 1 and pi for a failed simulation."""
        apart = np.linalg.norm(simulated[..., :3] - self.frames[..., :3], axis=-1)
        a, b = (x[..., 3:] / np.linalg.norm(x[..., 3:], axis=-1, keepdims=True) for x in (simulated, self.frames))
        turned = 2 * np.arccos(np.clip(np.abs(np.sum(a * b, axis=-1)), 0.0, 1.0))
        means = [np.where(self.counts, x, 0.0).sum(axis=1) / self.lengths for x in (apart, turned)]
        return np.nan_to_num(means[0], nan=1.0), np.nan_to_num(means[1], nan=np.pi)

    def loss(self, simulated: Float[np.ndarray, "tosses frames 7"]) -> float:
        """Weighted sum of the mean errors of position and rotation."""
        apart, turned = self.errors(simulated)
        return float(apart.mean() / PLACE + turned.mean())


def read_tosses(folder: Path) -> Tosses:
    """All tosses of a folder, in the order of their names."""
    frames = [
        np.stack([log.columns[c] for c in COLUMNS], axis=1) for log in map(read_log, sorted(folder.glob("*.csv")))
    ]
    longest = max(map(len, frames))
    padded = [np.concatenate([f, np.repeat(f[-1:], longest - len(f), axis=0)]) for f in frames]
    counts = [np.arange(longest) < len(f) for f in frames]
    firsts = [initial_state(f[:FIRST]) for f in frames]
    q, v = (np.stack(x) for x in zip(*firsts, strict=True))
    return Tosses(q, v, np.stack(padded), np.stack(counts))


def initial_state(frames: Float[np.ndarray, "frames 7"]) -> tuple[np.ndarray, np.ndarray]:
    """State at the first of some frames in flight, from a parabola and a constant angular velocity (equal inertias)."""
    t = np.arange(len(frames)) / RATE
    lines = np.stack([np.ones_like(t), t], axis=1)
    fallen = np.outer(t**2 / 2, [0, 0, GRAVITY])
    place, velocity = np.linalg.lstsq(lines, frames[:, :3] + fallen, rcond=None)[0]
    turns = np.array([_log(_product(_conjugate(frames[0, 3:]), f)) for f in frames[:, 3:]])
    offset, spin = np.linalg.lstsq(lines, turns, rcond=None)[0]
    first = _product(frames[0, 3:], exponential(offset))
    return np.concatenate([place, first / np.linalg.norm(first)]), np.concatenate([velocity, spin])


def _conjugate(q: np.ndarray) -> np.ndarray:
    return q * [1, -1, -1, -1]


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.concatenate([[a[0] * b[0] - a[1:] @ b[1:]], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])])


def _log(q: np.ndarray) -> np.ndarray:
    q = q if q[0] >= 0 else -q
    size = np.linalg.norm(q[1:])
    return 2 * q[1:] if size < 1e-12 else 2 * np.arctan2(size, q[0]) * q[1:] / size


def exponential(turn: Float[np.ndarray, "3"]) -> Float[np.ndarray, "4"]:
    """The quaternion of a rotation vector [rad]."""
    angle = np.linalg.norm(turn)
    return np.concatenate([[np.cos(angle / 2)], 0.5 * np.sinc(angle / 2 / np.pi) * turn])
