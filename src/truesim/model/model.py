"""The robot as named arrays: numbers are leaves, names and structure are static."""

import dataclasses
from typing import Any

import equinox as eqx

from truesim.core.errors import unknown_name
from truesim.core.typing import Array, Float
from truesim.model.actuators import Actuators
from truesim.model.constraints import Contacts, Equalities
from truesim.model.kinds import AbstractJointKind
from truesim.model.quantity import quantity
from truesim.model.sensors import Sensors
from truesim.model.source import Finding, Source
from truesim.model.topology import Topology


def index(names: tuple[str, ...], name: str, kind: str) -> int:
    """Position of `name` among `names`; an error that lists what exists otherwise."""
    if name not in names:
        raise unknown_name(kind, name, names)
    return names.index(name)


class Bodies(eqx.Module):
    """Rigid bodies, the world excluded."""

    mass: Float[Array, "bodies"] = quantity("kg")
    """Mass."""
    com: Float[Array, "bodies 3"] = quantity("m")
    """Centre of mass in the body frame."""
    inertia: Float[Array, "bodies 6"] = quantity("kg m^2")
    """Rotational inertia about the centre of mass, body axes: xx, yy, zz, xy, xz, yz."""
    position: Float[Array, "bodies 3"] = quantity("m")
    """Origin of the body frame in the parent's frame, joints at zero."""
    orientation: Float[Array, "bodies 4"] = quantity("1")
    """Orientation of the body frame in the parent's frame, joints at zero: unit quaternion, scalar first."""
    names: tuple[str, ...] = eqx.field(static=True)
    parents: tuple[int, ...] = eqx.field(static=True)
    """Parent body of each body; -1 is the world."""


class Joints(eqx.Module):
    """Joints, in the order of their coordinates; each moves its body."""

    axis: Float[Array, "joints 3"] = quantity("1")
    """Unit axis in the body frame (hinge and slide)."""
    position: Float[Array, "joints 3"] = quantity("m")
    """Anchor in the body frame."""
    damping: Float[Array, "joints"] = quantity("N m s/rad|N s/m")
    """Viscous damping."""
    frictionloss: Float[Array, "joints"] = quantity("N m|N")
    """Dry friction in motion."""
    stiction: Float[Array, "joints"] = quantity("N m|N")
    """Dry friction at the onset of motion, beyond `frictionloss`; it fades as exp(-(v / stribeck_velocity)^2)."""
    stribeck_velocity: Float[Array, "joints"] = quantity("rad/s|m/s")
    """Speed over which stiction fades (the Stribeck effect)."""
    armature: Float[Array, "joints"] = quantity("kg m^2|kg")
    """Inertia of the rotor, reflected to the joint."""
    stiffness: Float[Array, "joints"] = quantity("N m/rad|N/m")
    """Spring stiffness."""
    springref: Float[Array, "joints"] = quantity("rad|m")
    """Coordinate at which the spring is at rest (hinge and slide)."""
    ref: Float[Array, "joints"] = quantity("rad|m")
    """Coordinate at which the frames stand as the file draws them (hinge and slide)."""
    range: Float[Array, "joints 2"] = quantity("rad|m")
    """Lower and upper limit (ball: the largest angle is the upper)."""
    margin: Float[Array, "joints"] = quantity("rad|m")
    """Distance at which a limit begins to act."""
    force_range: Float[Array, "joints 2"] = quantity("N m|N")
    """Bounds of the total actuator force on the joint."""
    solreffriction: Float[Array, "joints 2"] = quantity("MuJoCo")
    """MuJoCo's time constant and damping ratio of dry friction."""
    solimpfriction: Float[Array, "joints 5"] = quantity("MuJoCo")
    """MuJoCo's impedance of dry friction."""
    solreflimit: Float[Array, "joints 2"] = quantity("MuJoCo")
    """MuJoCo's time constant and damping ratio of limits."""
    solimplimit: Float[Array, "joints 5"] = quantity("MuJoCo")
    """MuJoCo's impedance of limits."""
    names: tuple[str, ...] = eqx.field(static=True)
    kinds: tuple[AbstractJointKind, ...] = eqx.field(static=True)
    bodies: tuple[int, ...] = eqx.field(static=True)
    limited: tuple[bool, ...] = eqx.field(static=True)
    force_limited: tuple[bool, ...] = eqx.field(static=True)


class Sites(eqx.Module):
    """Named frames fixed to bodies."""

    position: Float[Array, "sites 3"] = quantity("m")
    """Origin in the body frame."""
    orientation: Float[Array, "sites 4"] = quantity("1")
    """Unit quaternion in the body frame."""
    names: tuple[str, ...] = eqx.field(static=True)
    bodies: tuple[int, ...] = eqx.field(static=True)
    """Body of each site; -1 is the world."""


@dataclasses.dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles of a geom, kept for contact and drawing."""

    name: str
    vertices: Any
    """Vertices in the geom's frame [m], shape (n, 3)."""
    faces: Any
    """Vertex indices of each triangle, shape (m, 3)."""


COMPLIANCE = {
    "contact_stiffness": 1e5,
    "contact_damping": 1e5,
    "contact_exponent": 1.5,
    "transition_speed": 0.01,
    "breakaway": 1.0,
}
"""Numbers of compliant contact, which no robot file holds, and their values unless the sidecar has others."""


class Geoms(eqx.Module):
    """Shapes fixed to bodies, for contact and drawing."""

    position: Float[Array, "geoms 3"] = quantity("m")
    """Origin in the body frame."""
    orientation: Float[Array, "geoms 4"] = quantity("1")
    """Unit quaternion in the body frame."""
    size: Float[Array, "geoms 3"] = quantity("m")
    """MuJoCo's size parameters of the shape."""
    friction: Float[Array, "geoms 3"] = quantity("1")
    """Sliding, torsional and rolling friction."""
    restitution: Float[Array, "geoms"] = quantity("1")
    """Speed of separation after an impact, in parts of the speed of approach (rigid contact)."""
    contact_stiffness: Float[Array, "geoms"] = quantity("N/m^n")
    """Force per depth of overlap to the power of `contact_exponent` (compliant contact)."""
    contact_damping: Float[Array, "geoms"] = quantity("N s/m^(n+1)")
    """Growth of the stiffness with the speed of approach (compliant contact)."""
    contact_exponent: Float[Array, "geoms"] = quantity("1")
    """n: 3/2 for round bodies (Hertz), 1 for flat ones (compliant contact)."""
    transition_speed: Float[Array, "geoms"] = quantity("m/s")
    """Speed of slip at which friction is developed; smaller is sharper (compliant contact)."""
    breakaway: Float[Array, "geoms"] = quantity("1")
    """Friction at the onset of slip, in parts of the friction in motion (compliant contact)."""
    margin: Float[Array, "geoms"] = quantity("m")
    """Distance at which contact is detected."""
    gap: Float[Array, "geoms"] = quantity("m")
    """Part of the margin in which no force acts."""
    solref: Float[Array, "geoms 2"] = quantity("MuJoCo")
    """MuJoCo's time constant and damping ratio of contact."""
    solimp: Float[Array, "geoms 5"] = quantity("MuJoCo")
    """MuJoCo's impedance of contact."""
    names: tuple[str, ...] = eqx.field(static=True)
    bodies: tuple[int, ...] = eqx.field(static=True)
    """Body of each geom; -1 is the world."""
    shapes: tuple[str, ...] = eqx.field(static=True)
    """plane, sphere, capsule, ellipsoid, cylinder, box, mesh, hfield or sdf."""
    meshes: tuple[Mesh | None, ...] = eqx.field(static=True)
    contype: tuple[int, ...] = eqx.field(static=True)
    conaffinity: tuple[int, ...] = eqx.field(static=True)
    condim: tuple[int, ...] = eqx.field(static=True)
    priority: tuple[int, ...] = eqx.field(static=True)
    colours: tuple[tuple[float, ...], ...] = eqx.field(static=True)
    """Red, green, blue, opacity in 0 to 1."""


@dataclasses.dataclass(frozen=True)
class Options:
    """What the file asks of a simulator; the defaults of `Simulator.from_model`."""

    timestep: float = 0.002
    """[s]"""
    integrator: str = "Euler"
    """MJCF's name: Euler, RK4, implicit or implicitfast."""
    implicit_damping: bool = True
    """Whether Euler treats joint damping implicitly."""
    dry_friction: bool = True
    limits: bool = True
    contact: bool = True
    actuation: bool = True
    clamp_controls: bool = True
    safe_reference: bool = True
    """Whether time constants of soft constraints are kept above twice the time step."""


class Model(eqx.Module):
    """A robot: physical facts only. Solver settings live in the solvers."""

    bodies: Bodies
    joints: Joints
    actuators: Actuators
    sites: Sites
    geoms: Geoms
    sensors: Sensors
    contacts: Contacts
    equalities: Equalities
    gravity: Float[Array, "3"] = quantity("m/s^2")
    """Acceleration of gravity in the world."""
    time_scale: Float[Array, ""] = quantity("1")
    """Seconds of the robot in a second of the clock that stamps its logs."""
    topology: Topology = eqx.field(static=True)
    options: Options = eqx.field(static=True)
    name: str = eqx.field(static=True)
    findings: tuple[Finding, ...] = eqx.field(static=True)
    """What the file holds that is not simulated, and what was mended while reading it."""
    source: Source | None = eqx.field(static=True)
    """The file that this model came from, for writing changes back."""

    @property
    def nq(self) -> int:
        """Number of position coordinates."""
        return self.topology.nq

    @property
    def nv(self) -> int:
        """Number of degrees of freedom."""
        return self.topology.nv

    @property
    def nu(self) -> int:
        """Number of actuators."""
        return len(self.actuators.names)

    def body(self, name: str) -> int:
        """Index of the body `name`."""
        return index(self.bodies.names, name, "body")

    def joint(self, name: str) -> int:
        """Index of the joint `name`."""
        return index(self.joints.names, name, "joint")

    def actuator(self, name: str) -> int:
        """Index of the actuator `name`."""
        return index(self.actuators.names, name, "actuator")

    def geom(self, name: str) -> int:
        """Index of the geom `name`."""
        return index(self.geoms.names, name, "geom")

    def site(self, name: str) -> int:
        """Index of the site `name`."""
        return index(self.sites.names, name, "site")
