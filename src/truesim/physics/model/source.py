"""Origin of a model: its file, the simulator settings in it, and findings on reading it."""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple


class SimulatedRows(NamedTuple):
    """Rows of MuJoCo's arrays that are simulated, in increasing order; all others are left out."""

    actuators: tuple[int, ...] = ()
    tendons: tuple[int, ...] = ()
    equalities: tuple[int, ...] = ()


NO_ROWS = SimulatedRows()


@dataclasses.dataclass(frozen=True)
class Source:
    """Robot file, as read."""

    path: Path
    text: str
    """The document; for MJCF, followed by those that it includes."""
    format: str
    """`mjcf` or `urdf`."""
    floating_base: bool = False
    """True if a free joint was added to the root link of a URDF."""
    held: tuple[str, ...] = ()
    """Joints of a URDF that were read as fixed at zero."""
    compiled: Any = dataclasses.field(default=None, compare=False, repr=False)
    """MuJoCo's compiled model of the file, whose collision functions detect contacts."""
    rows: SimulatedRows = NO_ROWS
    """Its actuators, tendons and equalities that are simulated."""


@dataclasses.dataclass(frozen=True, eq=False)
class Keyframe:
    """State of a robot that its file names."""

    name: str
    q: Any
    """Configuration [rad, m, unit quaternions], shape (nq,)."""
    v: Any
    """Velocity [rad/s, m/s], shape (nv,)."""
    command: Any
    """Control of each simulated actuator, shape (nu,)."""
    time: float = 0.0
    """[s]"""


@dataclasses.dataclass(frozen=True)
class SimulationDefaults:
    """Settings that a robot file asks of a simulator; the defaults of `Simulator.of` and of its parts."""

    timestep: float = 0.002
    """[s]"""
    integrator: str = "Euler"
    """MJCF's name: Euler, RK4, implicit or implicitfast."""
    implicit_damping: bool = True
    """True if Euler treats joint damping implicitly."""
    joint_friction: bool = True
    """True if friction acts in the joints."""
    limits: bool = True
    """True if joint limits act."""
    contact: bool = True
    """True if bodies may touch."""
    safe_reference: bool = True
    """True if time constants of soft constraints are kept above twice the time step."""
    equality: bool = True
    """True if equality constraints act."""
    warm_start: bool = True
    """True if the solver of constraints starts from the acceleration of the step before."""
    elliptic: bool = False
    """True if friction cones are elliptic, False if pyramidal."""
    impratio: float = 1.0
    """Ratio of the impedance of friction to that of the normal force, for elliptic cones."""
    iterations: int = 100
    """Most Newton iterations of the solver of constraints."""
    tolerance: float = 1e-8
    """Improvement or gradient, scaled by the inertia, below which the solver stops."""
    line_search_iterations: int = 50
    """Most points of a line search."""
    line_search_tolerance: float = 0.01
    """Derivative along a line, relative to `tolerance`, below which a line search stops."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """Feature of a file that is not, or not exactly, simulated."""

    subject: str
    """The element concerned, such as `tendon 'T1'`."""
    message: str
    """Description of what is not simulated or was repaired."""
    severity: str = "not simulated"
    """`not simulated`, `warning` or `note`."""

    def __str__(self) -> str:
        return f"{self.subject}: {self.message}"


@dataclasses.dataclass(frozen=True)
class Structure:
    """Facts that decide the shapes of a simulation."""

    frictionloss: tuple[int, ...]
    """Joints whose `frictionloss` is, or may be, positive."""
    stiction: tuple[int, ...]
    """Joints whose `stiction` is, or may be, positive."""
    delay: float | None
    """Longest delay of an actuator [s]; None if a traced one was written where there was none."""
    restitution: bool
    """True if any geom or contact pair has restitution."""
    gravcomp: tuple[int, ...] = ()
    """Bodies whose `gravcomp` is, or may be, positive."""
    load_friction: tuple[int, ...] = ()
    """Joints whose `load_friction` is, or may be, positive."""
