"""Machine code of all routines: one object per precision, number of lanes and CPU, for every model."""

from functools import cache
from pathlib import Path

from truesim.native.codegen.target import host
from truesim.native.loops import language
from truesim.native.loops.layout import RoutineModule
from truesim.native.loops.library import RoutineLibrary, hash_sources
from truesim.native.loops.values import Precision
from truesim.physics.routines.adjoint import write_adjoint_batch
from truesim.physics.routines.bias_derivative import write_bias_derivative
from truesim.physics.routines.collision import write_collision
from truesim.physics.routines.derivatives import write_forward_batch
from truesim.physics.routines.equalities import write_equality_rows
from truesim.physics.routines.factor import (
    write_factor,
    write_fill,
    write_general_factor,
    write_general_solve,
    write_solve,
)
from truesim.physics.routines.forces import write_damping, write_forces
from truesim.physics.routines.inertia import write_inertia
from truesim.physics.routines.integrate import write_integrate
from truesim.physics.routines.islands import write_islands
from truesim.physics.routines.kinematics import write_kinematics
from truesim.physics.routines.layout import LAYOUT
from truesim.physics.routines.limits import write_limit_rows
from truesim.physics.routines.line_search import write_evaluate
from truesim.physics.routines.newton import write_newton
from truesim.physics.routines.rollout import write_rollout, write_step
from truesim.physics.routines.rows import write_contact_rows

_WRITERS = (
    write_kinematics,
    write_inertia,
    write_forces,
    write_bias_derivative,
    write_damping,
    write_collision,
    write_contact_rows,
    write_limit_rows,
    write_equality_rows,
    write_factor,
    write_solve,
    write_general_factor,
    write_general_solve,
    write_fill,
    write_evaluate,
    write_newton,
    write_islands,
    write_integrate,
    write_step,
    write_rollout,
    write_forward_batch,
    write_adjoint_batch,
)
"""Writers of routines, each after those that its routines call."""


def write_all(precision: Precision, parameters_per_lane: bool) -> RoutineModule:
    """Module of all routines."""
    module = RoutineModule.empty(LAYOUT, precision, parameters_per_lane)
    for write in _WRITERS:
        write(module)
    return module


@cache
def step_library(precision: Precision, parameters_per_lane: bool) -> RoutineLibrary:
    """Loaded routines, shared by all models of a process."""
    sources = hash_sources(Path(language.__file__).parent, Path(__file__).parent)
    source = repr((precision, parameters_per_lane)).encode() + sources
    return RoutineLibrary(lambda: write_all(precision, parameters_per_lane), source, host())
