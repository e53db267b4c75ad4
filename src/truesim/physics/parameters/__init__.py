"""Parameters: a lens on the simulator, with transforms, bounds, priors and ties."""

from truesim.physics.model.targets import Target
from truesim.physics.parameters.parameter import Parameter, Prior
from truesim.physics.parameters.parameter_set import ParameterSet, free

__all__ = ["Parameter", "ParameterSet", "Prior", "Target", "free"]
