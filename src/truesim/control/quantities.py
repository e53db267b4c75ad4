"""Quantities of a motion: vectors that costs weigh and limits bound, as functions of one knot.

A knot is one point in time of a motion: the state and the command that is held from there on. Every quantity is a
deviation from a target, so that a cost is the weighted sum of its squares.
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Array, Float
from truesim.math.spatial.rotation import matrix_quaternion, normalize, quaternion_log, quaternion_matrix
from truesim.math.spatial.transform import Pose
from truesim.physics.contact import AbstractImpulseContact
from truesim.physics.dynamics import body_poses, body_velocities, difference
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator, State


class Knot(eqx.Module):
    """One point in time of a motion, as quantities see it."""

    simulator: Simulator
    state: State
    command: Float[Array, " nu"]
    """Held until the next knot; zero at the last one, which has none."""


class TimeVarying(eqx.Module):
    """Numbers with one value for each knot, in place of a constant target or weight."""

    values: Float[Array, " knots *shape"]
    """One row for each knot, the last one included."""


def numbers(x: Any) -> Any:
    """Numbers as float64, constant or time-varying."""
    if isinstance(x, TimeVarying):
        return TimeVarying(np.asarray(x.values, float))
    return x if isinstance(x, jax.Array | jax.core.Tracer) or x is None else np.asarray(x, float)


class AbstractQuantity(eqx.Module):
    """A vector at a knot: a deviation from a target."""

    @abc.abstractmethod
    def __call__(self, knot: Knot) -> Float[Array, " size"]:
        """The deviation."""

    @property
    def needs_command(self) -> bool:
        """True if it depends on the command, which the last knot does not have."""
        return False

    def check(self, model: Model) -> None:
        """Raise an error if the quantity does not fit the robot."""


class Posture(AbstractQuantity):
    """Configuration relative to a target, in the tangent space [rad, m]: rotation vectors for ball and free joints."""

    target: Float[Array, " nq"] | TimeVarying = eqx.field(converter=numbers)
    joints: tuple[str, ...] = eqx.field(static=True, default=())
    """Names of the joints that count; all by default."""

    def __call__(self, knot: Knot) -> Float[Array, " size"]:
        """`q - target` on the manifold of configurations."""
        model = knot.simulator.model
        moved = difference(model, knot.state.q, jnp.asarray(self.target))
        return moved[_dofs(model, self.joints)] if self.joints else moved

    def check(self, model: Model) -> None:
        """Raise an error for a target of another size, or an unknown joint."""
        _check_size("target of a posture", self.target, model.nq, "coordinates of the robot")
        _dofs(model, self.joints)


class JointVelocity(AbstractQuantity):
    """Velocity of the joints relative to a target [rad/s, m/s]."""

    target: Float[Array, " nv"] | TimeVarying | None = eqx.field(converter=numbers, default=None)
    """At rest if None."""
    joints: tuple[str, ...] = eqx.field(static=True, default=())

    def __call__(self, knot: Knot) -> Float[Array, " size"]:
        """`v - target`."""
        v = knot.state.v if self.target is None else knot.state.v - jnp.asarray(self.target)
        return v[_dofs(knot.simulator.model, self.joints)] if self.joints else v

    def check(self, model: Model) -> None:
        """Raise an error for a target of another size, or an unknown joint."""
        _check_size("target of a joint velocity", self.target, model.nv, "degrees of freedom of the robot")
        _dofs(model, self.joints)


class Command(AbstractQuantity):
    """Command relative to a target [control]."""

    target: Float[Array, " nu"] | TimeVarying | None = eqx.field(converter=numbers, default=None)
    """Zero if None."""

    def __call__(self, knot: Knot) -> Float[Array, " nu"]:
        """`u - target`."""
        return knot.command if self.target is None else knot.command - jnp.asarray(self.target)

    @property
    def needs_command(self) -> bool:
        """True."""
        return True

    def check(self, model: Model) -> None:
        """Raise an error for a target of another size."""
        _check_size("target of a command", self.target, model.nu, "actuators of the robot")


class FramePosition(AbstractQuantity):
    """Position of a site or body in the world, relative to a target [m]."""

    frame: str = eqx.field(static=True)
    """Name of a site, or of a body."""
    target: Float[Array, "3"] | TimeVarying = eqx.field(converter=numbers)

    def __call__(self, knot: Knot) -> Float[Array, "3"]:
        """`p - target`."""
        return frame_pose(knot.simulator.model, self.frame, knot.state.q).translation - jnp.asarray(self.target)

    def check(self, model: Model) -> None:
        """Raise an error for an unknown frame."""
        _place(model, self.frame)
        _check_size(f"target of {self.frame}", self.target, 3, "coordinates of a position")


class FramePose(AbstractQuantity):
    """Pose of a site or body relative to a target: position [m], then rotation vector from the target [rad]."""

    frame: str = eqx.field(static=True)
    position: Float[Array, "3"] | TimeVarying = eqx.field(converter=numbers)
    orientation: Float[Array, "4"] | TimeVarying = eqx.field(converter=numbers)
    """Unit quaternion, scalar first."""

    def __call__(self, knot: Knot) -> Float[Array, "6"]:
        """`[p - position, log(target^-1 R)]`."""
        pose = frame_pose(knot.simulator.model, self.frame, knot.state.q)
        target = quaternion_matrix(normalize(jnp.asarray(self.orientation)))
        turned = quaternion_log(matrix_quaternion(target.T @ pose.rotation))
        return jnp.concatenate([pose.translation - jnp.asarray(self.position), turned])

    def check(self, model: Model) -> None:
        """Raise an error for an unknown frame or a target of the wrong size."""
        _place(model, self.frame)
        _check_size(f"position of {self.frame}", self.position, 3, "coordinates of a position")
        _check_size(f"orientation of {self.frame}", self.orientation, 4, "numbers of a quaternion")


class FrameVelocity(AbstractQuantity):
    """Velocity of the origin of a site or body in world axes, relative to a target [m/s]."""

    frame: str = eqx.field(static=True)
    target: Float[Array, "3"] | TimeVarying = eqx.field(converter=numbers)

    def __call__(self, knot: Knot) -> Float[Array, "3"]:
        """`v - target`."""
        model, state = knot.simulator.model, knot.state
        return frame_velocity(model, self.frame, state.q, state.v) - jnp.asarray(self.target)

    def check(self, model: Model) -> None:
        """Raise an error for an unknown frame."""
        _place(model, self.frame)
        _check_size(f"target velocity of {self.frame}", self.target, 3, "coordinates of a velocity")


class ContactDistance(AbstractQuantity):
    """Distance of every possible contact point, negative where bodies overlap [m]; needs rigid contact."""

    def __call__(self, knot: Knot) -> Float[Array, " points"]:
        """Signed distances in the order of the contact model's points."""
        contact = knot.simulator.contact
        points = contact.detector(  # type: ignore[union-attr]
            knot.simulator.model, knot.state.q, (knot.state.v, knot.simulator.timestep)
        )
        return points.distance


class CustomQuantity(AbstractQuantity):
    """Any JAX function from a knot to a vector."""

    function: Callable[[Knot], Float[Array, " size"]] = eqx.field(static=True)
    uses_command: bool = eqx.field(static=True, default=False)
    """True if the function reads the command."""

    def __call__(self, knot: Knot) -> Float[Array, " size"]:
        """Value of the function, as a vector."""
        return jnp.ravel(self.function(knot))

    @property
    def needs_command(self) -> bool:
        """True if the function reads the command."""
        return self.uses_command


def frame_pose(model: Model, frame: str, q: Float[Array, " nq"]) -> Pose:
    """Pose of a site or body in the world."""
    body, site = _place(model, frame)
    poses = body_poses(model, q)
    own = Pose(poses.rotation[body], poses.translation[body])
    if site is None:
        return own
    R = quaternion_matrix(normalize(jnp.asarray(model.sites.orientation[site])))
    return own @ Pose(R, jnp.asarray(model.sites.position[site]))


def frame_velocity(model: Model, frame: str, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, "3"]:
    """Velocity of the origin of a site or body, in world axes [m/s]."""
    body, site = _place(model, frame)
    motion = body_velocities(model, q, v)[body]
    if site is None:
        return motion[3:]
    arm = body_poses(model, q).rotation[body] @ jnp.asarray(model.sites.position[site])
    return motion[3:] + jnp.cross(motion[:3], arm)


def check_contact(simulator: Simulator, quantity: AbstractQuantity) -> None:
    """Raise an error for distances of contact points where there are none."""
    if isinstance(quantity, ContactDistance) and not isinstance(simulator.contact, AbstractImpulseContact):
        raise TruesimError("Contact distances need rigid contact: Simulator.of(model, contact=RigidContact.of(model)).")


def _place(model: Model, frame: str) -> tuple[int, int | None]:
    """Body that carries a frame, and the site if it is one."""
    if frame in model.sites.names:
        site = model.sites.names.index(frame)
        if model.sites.bodies[site] < 0:
            raise TruesimError(f"The site {frame} is fixed to the world: no motion can move it.")
        return model.sites.bodies[site], site
    if frame not in model.bodies.names:
        raise unknown_name("site or body", frame, [*model.sites.names, *model.bodies.names])
    return model.bodies.names.index(frame), None


def _dofs(model: Model, joints: tuple[str, ...]) -> np.ndarray:
    """Indices of the degrees of freedom of joints, by name."""
    for name in joints:
        if name not in model.joints.names:
            raise unknown_name("joint", name, model.joints.names)
    chosen = {model.joints.names.index(name) for name in joints}
    own = [np.arange(model.nv)[link.v] for link in model.topology.links if link.joint in chosen]
    return np.concatenate([np.zeros(0, int), *own])


def _check_size(name: str, target: Any, size: int, meaning: str) -> None:
    if target is None:
        return
    shape = np.shape(target.values)[1:] if isinstance(target, TimeVarying) else np.shape(target)
    if shape != (size,):
        raise TruesimError(f"The {name} has shape {shape}; it needs the {size} {meaning}.")
