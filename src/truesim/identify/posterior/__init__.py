"""Posteriors: what logs leave possible, behind one interface (`sample`, `log_density`, `intervals`)."""

from truesim.identify.posterior.basins import basins, basins_posterior, weighed
from truesim.identify.posterior.calibration import Calibration, Repeat, repeats
from truesim.identify.posterior.gaussians import Posterior
from truesim.identify.posterior.kernels import Kernels
from truesim.identify.posterior.laplace import laplace, laplace_of
from truesim.identify.posterior.mixture import Evolution, Mixture, observe
from truesim.identify.posterior.objectives import Evidence, Published
from truesim.identify.posterior.ranges import Range, ranges, write_ranges, write_variants
from truesim.identify.posterior.trajectories import Trajectories
from truesim.identify.posterior.variational import MixtureSettings, mixture, mixture_around

__all__ = [
    "Calibration",
    "Evidence",
    "Evolution",
    "Kernels",
    "Mixture",
    "MixtureSettings",
    "Posterior",
    "Published",
    "Range",
    "Repeat",
    "Trajectories",
    "basins",
    "basins_posterior",
    "laplace",
    "laplace_of",
    "mixture",
    "mixture_around",
    "observe",
    "ranges",
    "repeats",
    "weighed",
    "write_ranges",
    "write_variants",
]
