"""Chirps with amplitudes at the robot's limits, as a baseline for designs."""

import numpy as np

from truesim.core.typing import Float
from truesim.identification.excitation import Designer

ROUNDS = 12
"""Number of adaptations of the amplitudes to the limits."""
RAMP = 0.3
"""Time over which a chirp rises from rest and falls back to it [s]."""
LOW, HIGH = (0.05, 0.4), (0.4, 3.0)
"""Ranges of the frequencies at which sweeps begin and end [Hz]."""


def chirp(designer: Designer, seed: int, *, common: bool) -> Float[np.ndarray, "samples nu"]:
    """Set points that sweep through frequencies, each joint with its own phase, as large as its limits allow.

    Args:
        designer: Robot, limits and duration.
        seed: Seed of frequencies and phases.
        common: True for one sweep of all joints; false for one sweep per joint, which separates joints better.
    """
    rng = np.random.default_rng(seed)
    time, nu = designer.time, designer.model.nu
    low, high = rng.uniform(*LOW, 1 if common else nu), rng.uniform(*HIGH, 1 if common else nu)
    phase = 2 * np.pi * (low * time[:, None] + (high - low) * time[:, None] ** 2 / (2 * time[-1]))
    rise = np.clip(np.minimum(time, time[-1] - time) / RAMP, 0.0, 1.0)
    window = rise**3 * (10 - 15 * rise + 6 * rise**2)
    wave = window[:, None] * np.sin(phase + rng.uniform(0, 2 * np.pi, nu))
    return designer.scale_into_limits(designer.rest + wave * _amplitudes(designer, wave))


def _amplitudes(designer: Designer, wave: np.ndarray) -> Float[np.ndarray, " nu"]:
    """Amplitude at which each joint reaches one of its own limits."""
    nu = designer.model.nu
    amplitudes = np.full(nu, 0.1)
    for _ in range(ROUNDS):
        motion = designer.sensitivities.motions((designer.rest + amplitudes * wave)[None])[0]
        usage = np.abs(designer.limits.usage(motion)).max(axis=0).reshape(4, nu).max(axis=0)
        amplitudes = amplitudes * np.clip(0.995 / np.maximum(usage, 1e-6), 0.5, 2.0)
    return amplitudes
