"""Motion in time: state, simulator, integrators, sensors, rollouts."""

from truesim.physics.simulation.history import History
from truesim.physics.simulation.integrators import (
    Implicit,
    ImplicitFast,
    ImplicitStiff,
    RungeKutta4,
    SemiImplicitEuler,
)
from truesim.physics.simulation.joint_models import MujocoJointModel, SmoothJointModel
from truesim.physics.simulation.kernels import (
    compile,  # noqa: A004
    compile_jacobian,
    compile_pullback,
    compile_rollout,
    compile_value_and_gradient,
)
from truesim.physics.simulation.linearize import linearize
from truesim.physics.simulation.measurements import measure
from truesim.physics.simulation.rollout import Trajectory, record, rollout
from truesim.physics.simulation.simulator import Simulator
from truesim.physics.simulation.state import State, StepInfo
from truesim.physics.simulation.step_routine import StepRoutine

__all__ = [
    "History",
    "Implicit",
    "ImplicitFast",
    "ImplicitStiff",
    "MujocoJointModel",
    "RungeKutta4",
    "SemiImplicitEuler",
    "Simulator",
    "SmoothJointModel",
    "State",
    "StepInfo",
    "StepRoutine",
    "Trajectory",
    "compile",
    "compile_jacobian",
    "compile_pullback",
    "compile_rollout",
    "compile_value_and_gradient",
    "linearize",
    "measure",
    "record",
    "rollout",
]
