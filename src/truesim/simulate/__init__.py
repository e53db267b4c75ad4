"""Motion in time: state, simulator, integrators, sensors, rollouts."""

from truesim.simulate.augment.blueprint import Blueprint, Rule
from truesim.simulate.augment.file import read_blueprint
from truesim.simulate.augment.networks import GRU, MLP, Constant, Lagged
from truesim.simulate.augment.trained import Trained, read_networks, write_networks
from truesim.simulate.compiled import compile_jacobian, compile_rollout, compile_value_and_gradient
from truesim.simulate.history import History
from truesim.simulate.integrators import Implicit, ImplicitFast, ImplicitStiff, RungeKutta4, SemiImplicitEuler
from truesim.simulate.joint_laws import MujocoJointLaw, SmoothJointLaw
from truesim.simulate.readings import readings
from truesim.simulate.rollout import Trajectory, record, rollout
from truesim.simulate.simulator import Simulator
from truesim.simulate.state import State, StepInfo

__all__ = [
    "GRU",
    "MLP",
    "Blueprint",
    "Constant",
    "History",
    "Implicit",
    "ImplicitFast",
    "ImplicitStiff",
    "Lagged",
    "MujocoJointLaw",
    "Rule",
    "RungeKutta4",
    "SemiImplicitEuler",
    "Simulator",
    "SmoothJointLaw",
    "State",
    "StepInfo",
    "Trained",
    "Trajectory",
    "compile_jacobian",
    "compile_rollout",
    "compile_value_and_gradient",
    "read_blueprint",
    "read_networks",
    "readings",
    "record",
    "rollout",
    "write_networks",
]
