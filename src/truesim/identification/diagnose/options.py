"""Options of the diagnosis of a fit: the thresholds behind its status and flags."""

import dataclasses

from truesim.core.errors import TruesimError


@dataclasses.dataclass(frozen=True)
class DiagnoseOptions:
    """Thresholds of status and flags. They change no estimate; intervals only where the model does not fit."""

    error_window: float = 0.5
    """Length of the windows over which open-loop errors are taken [s]."""
    identifiable_std: float = 0.5
    """A coordinate with a larger standard deviation is not identifiable: a factor of 1.6 either way, or half of the
    start value. Larger flags fewer parameters."""
    correlation: float = 0.98
    """Estimates with a larger correlation are flagged."""
    bound_distance: float = 0.01
    """An estimate closer to a bound, as a fraction of the way between bounds, is flagged. Larger flags more."""
    noise_ratio: float = 3.0
    """Residuals larger than this many times the sensor's noise are reported, and lead to a score test of all parameters
    that are not free. If that holds for the bulk of the residuals of a row, the model does not fit."""
    misfit_ratio: float = 10.0
    """Root-mean-square residuals larger than this many times the sensor's noise: the model does not fit, even if few
    samples are the cause. Open-loop errors larger than that lead to the score test as well."""
    contradicted_change: float = 2.0
    """Fixed parameters that the residuals contradict, and that would move an estimate by more standard deviations than
    this if they were free: the model does not fit. Smaller changes stay within the intervals."""
    explained: float = 0.5
    """A group of fixed parameters that explains a larger fraction of the residual: the model does not fit without it,
    and intervals are widened to the values that the free parameters take with it."""
    implausible_ratio: float = 10.0
    """Estimates that differ from the start by a larger factor are reported."""
    step_change: float = 0.05
    """Estimates that half the time step would change by a larger fraction, beyond their intervals, are reported."""
    unexplained: float = 0.5
    """Residuals larger than this fraction of the motion within a window: the model does not fit."""
    held_out_ratio: float = 3.0
    """Held-out errors larger than those on the logs of the fit by this factor: the model does not fit."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if not getattr(self, field.name) > 0:
                raise TruesimError(f"{field.name} is {getattr(self, field.name):g}; it must be positive.")
