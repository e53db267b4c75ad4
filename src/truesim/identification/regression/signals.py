"""Band-limited motion and torque of logs: positions and torques in one zero-phase band, differentiated exactly.

Both signals pass the same filter, `1 / (1 + (f / band)^8)`: the squared gain of a Butterworth filter of order four, as
forward and backward filtering has it. A signal is continued by odd reflection at both ends, which is a sine series;
derivatives are products with `2 pi i f`. Some tenths of a second at both ends are left out.
"""

import dataclasses
import functools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.fft import irfft, rfft, rfftfreq

from truesim.core.typing import Float, Int
from truesim.files.logs import Log, split_at_gaps
from truesim.files.logs.sampling import sampling
from truesim.identification.regression.torques import TorqueMap
from truesim.physics.model.columns import command_columns, position_columns
from truesim.physics.model.kinds import SLIDE
from truesim.physics.model.model import Model
from truesim.physics.model.tendons import coupled_tendons

FILTER_POWER = 8
"""Exponent of the filter's decay. Larger cuts off more sharply and rings longer."""
MARGIN_PERIODS = 0.6
"""Part left out at both ends of a signal, in periods of the band. Larger loses more data and less accuracy."""
SAMPLES_PER_PERIOD = 5.0
"""Samples that are kept per period of the band. Larger keeps more samples that say nothing new."""
REST_SPEED = {True: 0.005, False: 0.02}
"""Speed below which a joint counts as at rest: of slides [m/s] and hinges [rad/s]. A joint at rest holds any torque
within its friction, so its row says nothing. Larger leaves out more rows and more of the onset of motion."""
SLIDING_SPEED = {True: 0.002, False: 0.008}
"""Speed over which dry friction builds up: of slides [m/s] and hinges [rad/s]. Larger hides friction at the onset of
motion; smaller gives more weight to the sign of noise."""
STRIBECK_SPEEDS = (0.05, 0.1, 0.3, 1.0)
"""Speeds over which friction may change between the onset of motion and full motion [rad/s or m/s]."""
MIN_KEPT = 4
"""Smallest number of samples of a part that is used."""


@dataclasses.dataclass(frozen=True)
class JointSamples:
    """Motion and torque of all joints in one band, at the kept samples of all logs."""

    q: Float[np.ndarray, "samples joints"]
    v: Float[np.ndarray, "samples joints"]
    a: Float[np.ndarray, "samples joints"]
    direction: Float[np.ndarray, "samples joints"]
    """Direction of motion, `tanh(v / sliding speed)`, in the same band: dry friction as it is seen there."""
    onsets: Float[np.ndarray, "samples joints speeds"]
    """Direction of motion times `exp(-(v / speed)^2)` for each of `STRIBECK_SPEEDS`, in the same band."""
    coupled: Float[np.ndarray, "samples couplings"]
    """Direction of motion of each motor that turns with several joints, in the same band."""
    torque: Float[np.ndarray, "samples joints"]
    """Torque of the actuators on each joint [N m or N]."""
    log: Int[np.ndarray, " samples"]
    """Index of the log of each sample."""
    part: Int[np.ndarray, " samples"]
    """Index of the contiguous part of each sample, over all logs."""
    time: Float[np.ndarray, " samples"]
    """Stamp in its own log [s]."""
    band: float
    """Cut-off frequency of positions and torques [Hz]."""

    def __len__(self) -> int:
        return len(self.time)

    def at_most(self, number: int) -> "JointSamples":
        """About this many of the samples, evenly chosen."""
        step = max(1, len(self) // number)
        fields = ("q", "v", "a", "direction", "onsets", "coupled", "torque", "log", "part", "time")
        return dataclasses.replace(self, **{name: getattr(self, name)[::step] for name in fields})

    def onset(self, j: int, speed: float) -> Float[np.ndarray, " samples"]:
        """Direction of motion of a joint times `exp(-(v / speed)^2)` [rad/s or m/s]."""
        for k, known in enumerate(STRIBECK_SPEEDS):
            if np.isclose(speed, known):
                return self.onsets[:, j, k]
        return self.direction[:, j] * np.exp(-((self.v[:, j] / speed) ** 2))


def band_limited(model: Model, logs: Sequence[Log], band: float) -> JointSamples:
    """Motion and torque of logs in one band.

    Args:
        model: A robot of hinges and slides with motors.
        logs: Logs with all joint positions and controls.
        band: Cut-off frequency [Hz]; lower where a log is sampled too slowly for it.
    """
    parts = [(k, *part) for k, log in enumerate(logs) for part in _parts(model, log, band)]
    if not parts:
        x, k = np.zeros((0, model.nv)), np.zeros(0, int)
        onsets, coupled = np.zeros((0, model.nv, len(STRIBECK_SPEEDS))), np.zeros((0, len(coupling_matrix(model))))
        return JointSamples(x, x, x, x, onsets, coupled, x, k, k, np.zeros(0), band)
    counts = [len(time) for _, time, *_ in parts]
    values = np.concatenate([x for *_, x, _ in parts], axis=1)
    q, v, a, direction, torque = values[:5]
    return JointSamples(
        q=q,
        v=v,
        a=a,
        direction=direction,
        onsets=np.moveaxis(values[5:], 0, -1),
        coupled=np.concatenate([x for *_, x in parts]),
        torque=torque,
        log=np.repeat([k for k, *_ in parts], counts),
        part=np.repeat(np.arange(len(parts)), counts),
        time=np.concatenate([time for _, time, *_ in parts]),
        band=band,
    )


def coupling_matrix(model: Model) -> Float[np.ndarray, "couplings joints"]:
    """Coefficients of the joints with which the motors of several joints turn."""
    joints = [link.joint for link in model.topology.links if link.joint >= 0]
    return np.asarray(model.tendons.coefficients)[coupled_tendons(model)][:, joints]


def _parts(
    model: Model, log: Log, band: float
) -> Iterator[tuple[np.ndarray, Float[np.ndarray, "signals kept joints"], Float[np.ndarray, "kept couplings"]]]:
    """Signals of each contiguous part of a log.

    They are the stamps; q, v, a, direction, torque and onsets of friction; and directions of coupled motors.
    """
    names, torques, C = position_columns(model), TorqueMap.of(model), coupling_matrix(model)
    slow = np.array([SLIDING_SPEED[link.kind == SLIDE] for link in model.topology.links if link.joint >= 0])
    period = sampling(log).period
    if not np.isfinite(period):
        return
    own = min(band, 0.4 / period)
    for piece in split_at_gaps(log, needed=(*command_columns(model), *names)):
        time = np.arange(piece.time[0], piece.time[-1] + period / 2, period)
        margin = int(np.ceil(MARGIN_PERIODS / own / period))
        keep = slice(margin, len(time) - margin, max(1, round(1 / (SAMPLES_PER_PERIOD * own * period))))
        kept = time[keep]
        if len(time) < 2 * margin + 1 or len(kept) < MIN_KEPT:
            continue
        low = functools.partial(_low_pass, period=period, band=own, keep=keep)
        q = np.stack([_resample_cubic(piece, name, time) for name in names])
        motion = filter_signals(q, period, own, range(3))
        v = motion[1]
        sliding = np.tanh(v / slow[:, None])
        torque = low(np.stack([torques.joint(piece, j, time) for j in range(model.nv)]))
        onsets = [low(sliding * np.exp(-((v / speed) ** 2))) for speed in STRIBECK_SPEEDS]
        signals = np.stack([*(x[:, keep].T for x in motion), low(sliding), torque, *onsets])
        yield kept, signals, low(np.tanh(C @ v / SLIDING_SPEED[False]))


def _low_pass(
    x: Float[np.ndarray, "signals n"], period: float, band: float, keep: slice
) -> Float[np.ndarray, "kept signals"]:
    return filter_signals(x, period, band, (0,))[0][:, keep].T


def rest_speeds(model: Model) -> Float[np.ndarray, " joints"]:
    """Speed below which each joint counts as at rest [rad/s or m/s]."""
    return np.array([REST_SPEED[link.kind == SLIDE] for link in model.topology.links if link.joint >= 0])


def filter_signals(
    x: Float[np.ndarray, "signals n"], period: float, band: float, derivatives: Sequence[int]
) -> list[Float[np.ndarray, "signals n"]]:
    """Low-pass evenly sampled signals without phase, and differentiate them.

    Args:
        x: The signals.
        period: Time between samples [s].
        band: Frequency of half the gain [Hz].
        derivatives: Numbers of derivatives, of 0, 1 and 2.
    """
    count = x.shape[1]
    rate = (x[:, -1:] - x[:, :1]) / (count - 1)
    line = x[:, :1] + rate * np.arange(count)
    rest = x - line
    odd = np.concatenate([rest, -rest[:, -2:0:-1]], axis=1)
    f = rfftfreq(odd.shape[1], period)
    spectrum = rfft(odd) / (1 + (f / band) ** FILTER_POWER)
    trends = (line, rate / period, 0.0)
    return [irfft((2j * np.pi * f) ** k * spectrum, odd.shape[1])[:, :count] + trends[k] for k in derivatives]


def _resample_cubic(log: Log, name: str, time: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """A column at even stamps [s] by cubic interpolation with central differences as derivatives."""
    values = log.column(name)
    known = np.isfinite(values)
    t, x = log.time[known], values[known]
    fresh = np.concatenate([[True], np.diff(t) > 0])
    t, x = t[fresh], x[fresh]
    if len(t) == len(time) and np.abs(t - time).max(initial=0.0) < 1e-3 * (time[1] - time[0]):
        return x
    d = np.gradient(x, t)
    at = np.clip(np.searchsorted(t, time, side="right") - 1, 0, len(t) - 2)
    h = t[at + 1] - t[at]
    u = np.clip((time - t[at]) / h, 0.0, 1.0)
    left, right = (1 + 2 * u) * (1 - u) ** 2, u * u * (3 - 2 * u)
    return left * x[at] + right * x[at + 1] + h * u * (1 - u) * ((1 - u) * d[at] - u * d[at + 1])
