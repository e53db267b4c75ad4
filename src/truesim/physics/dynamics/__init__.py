"""Rigid-body dynamics of a tree, after Featherstone, Rigid Body Dynamics Algorithms (2008)."""

from truesim.physics.dynamics.forward import forward_dynamics
from truesim.physics.dynamics.inverse import (
    bias_forces,
    external_forces,
    gravity_forces,
    inertia_forces,
    inverse_dynamics,
)
from truesim.physics.dynamics.jacobian import body_jacobian, carriers, motion_columns, point_jacobian
from truesim.physics.dynamics.kinematics import (
    body_accelerations,
    body_poses,
    body_velocities,
    difference,
    integrate,
    joint_coordinates,
    own_velocities,
    reference_configuration,
)
from truesim.physics.dynamics.mass_matrix import mass_matrix
from truesim.physics.dynamics.momentum import center_of_mass, kinetic_energy, momentum, potential_energy
from truesim.physics.dynamics.regressor import base_parameters, regressor, regressors

__all__ = [
    "base_parameters",
    "bias_forces",
    "body_accelerations",
    "body_jacobian",
    "body_poses",
    "body_velocities",
    "carriers",
    "center_of_mass",
    "difference",
    "external_forces",
    "forward_dynamics",
    "gravity_forces",
    "inertia_forces",
    "integrate",
    "inverse_dynamics",
    "joint_coordinates",
    "kinetic_energy",
    "mass_matrix",
    "momentum",
    "motion_columns",
    "own_velocities",
    "point_jacobian",
    "potential_energy",
    "reference_configuration",
    "regressor",
    "regressors",
]
