"""Posteriors of parameters: Laplace approximation, variational mixtures, multistart, calibration and ranges."""

from truesim.identification.posterior.basins import (
    combine_basins,
    multistart_posterior,
    scatter_starts,
    trajectory_multistart_posterior,
)
from truesim.identification.posterior.calibration import Calibration, Repeat, calibrate, repeat_fits
from truesim.identification.posterior.gaussians import Posterior
from truesim.identification.posterior.kernels import Kernels
from truesim.identification.posterior.laplace import gaussian_posterior, laplace, trajectory_laplace
from truesim.identification.posterior.mixture import Mixture, MixtureHistory, observe
from truesim.identification.posterior.objectives import EvidenceLowerBound, Real2SimLoss
from truesim.identification.posterior.parameters import ParameterPosterior, ParameterRange
from truesim.identification.posterior.ranges import Range, ranges, write_ranges, write_variants
from truesim.identification.posterior.trajectories import Trajectories
from truesim.identification.posterior.variational import MixtureOptions, mixture, mixture_around

__all__ = [
    "Calibration",
    "EvidenceLowerBound",
    "Kernels",
    "Mixture",
    "MixtureHistory",
    "MixtureOptions",
    "ParameterPosterior",
    "ParameterRange",
    "Posterior",
    "Range",
    "Real2SimLoss",
    "Repeat",
    "Trajectories",
    "calibrate",
    "combine_basins",
    "gaussian_posterior",
    "laplace",
    "mixture",
    "mixture_around",
    "multistart_posterior",
    "observe",
    "ranges",
    "repeat_fits",
    "scatter_starts",
    "trajectory_laplace",
    "trajectory_multistart_posterior",
    "write_ranges",
    "write_variants",
]
