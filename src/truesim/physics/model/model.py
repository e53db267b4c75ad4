"""Robot model as named arrays: quantities are leaves, names and structure are static."""

import dataclasses
from typing import Any

import equinox as eqx

from truesim.core.errors import unknown_name
from truesim.core.fields import annotation
from truesim.core.typing import Array, Float
from truesim.physics.model.actuators import Actuators
from truesim.physics.model.constraints import Contacts, Equalities, Tendons
from truesim.physics.model.kinds import AbstractJointKind
from truesim.physics.model.quantity import quantity
from truesim.physics.model.sensors import Sensors
from truesim.physics.model.source import Finding, Keyframe, SimulationDefaults, Source, Structure
from truesim.physics.model.topology import Topology


def index(names: tuple[str, ...], name: str, kind: str) -> int:
    """Index of `name` in `names`; raises an error that lists the valid names."""
    if name not in names:
        raise unknown_name(kind, name, names)
    return names.index(name)


class Bodies(eqx.Module):
    """Rigid bodies, the world excluded."""

    mass: Float[Array, " bodies"] = quantity("kg")
    """Mass."""
    com: Float[Array, "bodies 3"] = quantity("m")
    """Center of mass in the body frame."""
    inertia: Float[Array, "bodies 6"] = quantity("kg m^2")
    """Rotational inertia about the center of mass, body axes: xx, yy, zz, xy, xz, yz."""
    position: Float[Array, "bodies 3"] = quantity("m")
    """Origin of the body frame in the parent's frame, joints at zero."""
    orientation: Float[Array, "bodies 4"] = quantity("1")
    """Orientation of the body frame in the parent's frame, joints at zero: unit quaternion, scalar first."""
    gravcomp: Float[Array, " bodies"] = quantity("1")
    """Part of the weight that an upward force at the center of mass balances."""
    names: tuple[str, ...] = eqx.field(static=True)
    parents: tuple[int, ...] = eqx.field(static=True)
    """Parent body of each body; -1 is the world."""


class Joints(eqx.Module):
    """Joints, in the order of their coordinates; each moves its body."""

    axis: Float[Array, "joints 3"] = quantity("1")
    """Unit axis in the body frame (hinge and slide)."""
    position: Float[Array, "joints 3"] = quantity("m")
    """Anchor in the body frame."""
    damping: Float[Array, " joints"] = quantity("N m s/rad|N s/m")
    """Viscous damping."""
    frictionloss: Float[Array, " joints"] = quantity("N m|N")
    """Coulomb friction while sliding."""
    stiction: Float[Array, " joints"] = quantity("N m|N")
    """Friction at the onset of motion beyond `frictionloss`; decays as exp(-(v / stribeck_velocity)^2)."""
    stribeck_velocity: Float[Array, " joints"] = quantity("rad/s|m/s")
    """Speed over which stiction decays (Stribeck effect)."""
    load_friction: Float[Array, " joints"] = quantity("1")
    """Friction relative to the torque that gravity exerts on the joint, beyond `frictionloss`: gears under load."""
    armature: Float[Array, " joints"] = quantity("kg m^2|kg")
    """Inertia of the rotor, reflected to the joint."""
    stiffness: Float[Array, " joints"] = quantity("N m/rad|N/m")
    """Spring stiffness."""
    springref: Float[Array, " joints"] = quantity("rad|m")
    """Coordinate at which the spring exerts no force (hinge and slide)."""
    ref: Float[Array, " joints"] = quantity("rad|m")
    """Coordinate in the reference configuration of the file (hinge and slide)."""
    range: Float[Array, "joints 2"] = quantity("rad|m")
    """Lower and upper limit; for a ball, the upper one is the largest angle."""
    margin: Float[Array, " joints"] = quantity("rad|m")
    """Distance from a limit at which it becomes active."""
    force_range: Float[Array, "joints 2"] = quantity("N m|N")
    """Bounds of the total actuator force on the joint."""
    solreffriction: Float[Array, "joints 2"] = quantity("MuJoCo")
    """MuJoCo's time constant and damping ratio of joint friction."""
    solimpfriction: Float[Array, "joints 5"] = quantity("MuJoCo")
    """MuJoCo's impedance of joint friction."""
    solreflimit: Float[Array, "joints 2"] = quantity("MuJoCo")
    """MuJoCo's time constant and damping ratio of limits."""
    solimplimit: Float[Array, "joints 5"] = quantity("MuJoCo")
    """MuJoCo's impedance of limits."""
    names: tuple[str, ...] = eqx.field(static=True)
    kinds: tuple[AbstractJointKind, ...] = eqx.field(static=True)
    bodies: tuple[int, ...] = eqx.field(static=True)
    limited: tuple[bool, ...] = eqx.field(static=True)
    force_limited: tuple[bool, ...] = eqx.field(static=True)
    actuator_gravcomp: tuple[bool, ...] = eqx.field(static=True)
    """True if gravity compensation counts as a force of the joint's actuators, within `force_range`."""


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
    """Triangle mesh of a geom, for contact and drawing."""

    name: str
    vertices: Any
    """Vertices in the geom's frame [m], shape (n, 3)."""
    faces: Any
    """Vertex indices of each triangle, shape (m, 3)."""


COMPLIANT_DEFAULTS = {
    "contact_stiffness": 1e5,
    "contact_damping": 1e5,
    "contact_exponent": 1.5,
    "transition_speed": 0.01,
    "breakaway": 1.0,
}
"""Parameters of compliant contact with defaults; robot files cannot hold them, the sidecar can."""


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
    restitution: Float[Array, " geoms"] = quantity("1")
    """Separation speed after an impact, relative to the approach speed (rigid contact)."""
    contact_stiffness: Float[Array, " geoms"] = quantity("N/m^n")
    """Force per overlap to the power of `contact_exponent` (compliant contact)."""
    contact_damping: Float[Array, " geoms"] = quantity("N s/m^(n+1)")
    """Increase of the stiffness with the approach speed (compliant contact)."""
    contact_exponent: Float[Array, " geoms"] = quantity("1")
    """n: 3/2 for round bodies (Hertz), 1 for flat ones (compliant contact)."""
    transition_speed: Float[Array, " geoms"] = quantity("m/s")
    """Slip speed at which friction is fully developed; smaller is sharper (compliant contact)."""
    breakaway: Float[Array, " geoms"] = quantity("1")
    """Friction at the onset of slip, relative to sliding friction (compliant contact)."""
    margin: Float[Array, " geoms"] = quantity("m")
    """Distance at which contact forces set in; those of two geoms add up."""
    gap: Float[Array, " geoms"] = quantity("m")
    """Distance beyond the margin at which contact is detected without force."""
    solref: Float[Array, "geoms 2"] = quantity("MuJoCo")
    """MuJoCo's time constant and damping ratio of contact."""
    solimp: Float[Array, "geoms 5"] = quantity("MuJoCo")
    """MuJoCo's impedance of contact."""
    solmix: Float[Array, " geoms"] = quantity("1")
    """Weight of this geom's `solref` and `solimp` in a contact."""
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
    colors: tuple[tuple[float, ...], ...] = eqx.field(static=True)
    """Red, green, blue, opacity in 0 to 1."""


class Model(eqx.Module):
    """Robot model: physical facts only. Solver settings are fields of the solvers, with `defaults` from the file."""

    bodies: Bodies
    joints: Joints
    actuators: Actuators
    sites: Sites
    geoms: Geoms
    sensors: Sensors
    contacts: Contacts
    equalities: Equalities
    tendons: Tendons
    gravity: Float[Array, "3"] = quantity("m/s^2")
    """Acceleration of gravity in the world."""
    time_scale: Float[Array, ""] = quantity("1")
    """Seconds of the robot in a second of the clock that stamps its logs."""
    topology: Topology = eqx.field(static=True)
    name: str = eqx.field(static=True)
    defaults: SimulationDefaults = eqx.field(static=True)
    """Settings that the file asks of a simulator; no function of the physics reads them."""
    findings: tuple[Finding, ...] = annotation()
    """Features of the file that are not simulated, and repairs made on reading it."""
    source: Source | None = annotation()
    """File of the model, into which `save` writes changes."""
    keyframes: tuple[Keyframe, ...] = eqx.field(static=True, default=())
    """States of the file to start from."""
    structure: Structure | None = eqx.field(static=True, default=None)
    """Structure of the file, for simulators that are made while values are traced."""

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

    def driven(self, actuator: int) -> str:
        """Name of the joint or tendon that an actuator acts on."""
        joint, tendon = self.actuators.joints[actuator], self.actuators.tendons[actuator]
        return self.joints.names[joint] if joint >= 0 else self.tendons.names[tendon]

    def keyframe(self, name: str) -> Keyframe:
        """Keyframe of the file with this name."""
        names = tuple(key.name for key in self.keyframes)
        return self.keyframes[index(names, name, "keyframe")]

    def geom(self, name: str) -> int:
        """Index of the geom `name`."""
        return index(self.geoms.names, name, "geom")

    def site(self, name: str) -> int:
        """Index of the site `name`."""
        return index(self.sites.names, name, "site")
