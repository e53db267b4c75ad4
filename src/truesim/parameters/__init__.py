"""Unknowns of an identification: named numbers of a model with transforms, bounds, priors and ties."""

from truesim.parameters.parameter import Parameter, Prior, Target
from truesim.parameters.parameter_set import ParameterSet, free

__all__ = ["Parameter", "ParameterSet", "Prior", "Target", "free"]
