"""Options of the solver of estimation problems."""

import dataclasses

import numpy as np

from truesim.core.errors import TruesimError, unknown_name

OPTIMIZERS = ("auto", "lm", "adam")
"""Names of the optimizers."""


@dataclasses.dataclass(frozen=True)
class SolveOptions:
    """Options of the stages that solve an estimation problem.

    The factors decide which of several estimates is returned; `docs/identify.md` shows how results move with them.
    """

    window: float | None = None
    """Length of windows within which the motion must be continuous [s]; found from the logs if not given."""
    horizons: tuple[float, ...] = ()
    """Lengths of windows [s], one stage after the other, instead of `window`: a curriculum for networks."""
    robust: float = 8.0
    """Huber threshold: residuals beyond this many standard deviations count linearly; infinite for least squares."""
    optimizer: str = "auto"
    """`lm` (Levenberg-Marquardt) or `adam`; `auto` is `adam` for networks with many weights."""
    iterations: int = 60
    """Maximum number of iterations of each stage."""
    gain: float = 1e-5
    """Converged when the cost, half a chi-square, is predicted to fall by less than this."""
    patience: int = 8
    """With validation logs, a stage ends after this many iterations without an improvement there."""
    seed: int = 0
    """Seed of the order in which Adam takes its batches."""
    fallback_window: float = 0.5
    """Length of windows where the model cannot follow whole logs [s]."""
    misfit_factor: float = 1.25
    """Whole logs are fitted in one piece if their residuals exceed those of short segments by less than this factor.
    Larger prefers whole logs."""
    segment_factor: float = 1.06
    """The estimate from short segments is kept if it predicts windows with residuals that are larger by less than this
    factor. Larger prefers short segments, whose residuals are closer to white noise."""
    continuity: tuple[float, ...] = (1.0, 3e-2, 1e-3)
    """Standard deviation of defects between joined segments, stage by stage, relative to the roughness of the measured
    states. Smaller is closer to a continuous motion."""
    noise_floor: float = 0.3
    """Lower bound of the noise of residuals relative to the sensors' own noise. Larger trusts exact fits less."""

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise unknown_name("optimizer", self.optimizer, OPTIMIZERS)
        if self.window is not None and self.window <= 0:
            raise TruesimError(f"The window is {self.window:g} s; it must be positive.")
        if any(h <= 0 for h in self.horizons):
            raise TruesimError(f"The horizons are {list(self.horizons)} s; they must be positive.")
        for name in ("robust", "iterations", "patience", "fallback_window", "noise_floor"):
            if not getattr(self, name) > 0:
                raise TruesimError(f"{name} is {getattr(self, name):g}; it must be positive.")
        for name in ("misfit_factor", "segment_factor"):
            if not getattr(self, name) >= 1:
                raise TruesimError(f"{name} is {getattr(self, name):g}; it must be at least 1.")
        if not self.continuity or not np.all(np.diff(self.continuity) <= 0) or min(self.continuity) <= 0:
            raise TruesimError(f"continuity is {self.continuity}; give positive numbers that do not increase.")
