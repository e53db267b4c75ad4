"""Control: trajectory optimization, model predictive control and design with the differentiable simulator."""

from truesim.control.closed_loop import ClosedLoop, SimulatedPlant, run_closed_loop
from truesim.control.compiled import TaskKernels
from truesim.control.mpc import PredictiveController
from truesim.control.options import PlanOptions, PlanStatus
from truesim.control.planned_motion import Plan
from truesim.control.planning import plan
from truesim.control.quantities import (
    AbstractQuantity,
    Command,
    ContactDistance,
    CustomQuantity,
    FramePose,
    FramePosition,
    FrameVelocity,
    JointVelocity,
    Knot,
    Posture,
    TimeVarying,
)
from truesim.control.sampling import SampledPlan, SamplingOptions, SamplingPlanner
from truesim.control.task import Cost, Limit, Task
from truesim.control.task_file import read_task

__all__ = [
    "AbstractQuantity",
    "ClosedLoop",
    "Command",
    "ContactDistance",
    "Cost",
    "CustomQuantity",
    "FramePose",
    "FramePosition",
    "FrameVelocity",
    "JointVelocity",
    "Knot",
    "Limit",
    "Plan",
    "PlanOptions",
    "PlanStatus",
    "Posture",
    "PredictiveController",
    "SampledPlan",
    "SamplingOptions",
    "SamplingPlanner",
    "SimulatedPlant",
    "Task",
    "TaskKernels",
    "TimeVarying",
    "plan",
    "read_task",
    "run_closed_loop",
]
