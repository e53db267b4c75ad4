"""Constraints beyond the kinematic tree: explicit contact pairs, equality constraints and fixed tendons."""

import equinox as eqx

from truesim.core.typing import Array, Float
from truesim.physics.model.quantity import quantity


class Contacts(eqx.Module):
    """Pairs of geoms with contact parameters of their own; other pairs combine those of their geoms."""

    friction: Float[Array, "contacts 5"] = quantity("1")
    """Friction along two tangents, in torsion and in rolling about two axes."""
    restitution: Float[Array, " contacts"] = quantity("1")
    """Separation speed after an impact, relative to the approach speed."""
    margin: Float[Array, " contacts"] = quantity("m")
    """Distance at which contact is detected."""
    gap: Float[Array, " contacts"] = quantity("m")
    """Distance beyond the margin at which contact is detected without force."""
    solref: Float[Array, "contacts 2"] = quantity("MuJoCo")
    """MuJoCo's time constant and damping ratio."""
    solreffriction: Float[Array, "contacts 2"] = quantity("MuJoCo")
    """MuJoCo's time constant and damping ratio of friction; zero for those of `solref`."""
    solimp: Float[Array, "contacts 5"] = quantity("MuJoCo")
    """MuJoCo's impedance."""
    names: tuple[str, ...] = eqx.field(static=True)
    geoms: tuple[tuple[int, int], ...] = eqx.field(static=True)
    dimensions: tuple[int, ...] = eqx.field(static=True)
    """MuJoCo's condim: 1 without friction, 3 with sliding, 4 with torsional, 6 with rolling friction."""
    excluded: tuple[tuple[int, int], ...] = eqx.field(static=True)
    """Pairs of bodies whose geoms never touch."""
    parents_touch: bool = eqx.field(static=True)
    """True if a body can touch its parent."""


class Equalities(eqx.Module):
    """Equality constraints that close chains or couple joints."""

    anchor: Float[Array, "equalities 2 3"] = quantity("m")
    """Shared point (connect) or origin of the coincident frames (weld), in each body."""
    orientation: Float[Array, "equalities 4"] = quantity("1")
    """Orientation of the second body in the first (weld): unit quaternion."""
    coefficients: Float[Array, "equalities 5"] = quantity("1")
    """Polynomial that gives the first joint's coordinate (or tendon's length) from the second's, both relative to
    their references."""
    torque_scale: Float[Array, " equalities"] = quantity("m")
    """Length that converts the rotation of a weld to a distance."""
    solref: Float[Array, "equalities 2"] = quantity("MuJoCo")
    """MuJoCo's time constant and damping ratio."""
    solimp: Float[Array, "equalities 5"] = quantity("MuJoCo")
    """MuJoCo's impedance."""
    names: tuple[str, ...] = eqx.field(static=True)
    kinds: tuple[str, ...] = eqx.field(static=True)
    """connect, weld, joint or tendon."""
    objects: tuple[tuple[int, int], ...] = eqx.field(static=True)
    """Bodies (-1 is the world), joints or tendons (-1 for a joint or tendon held by itself)."""


class Tendons(eqx.Module):
    """Fixed tendons: linear combinations of joint coordinates."""

    coefficients: Float[Array, "tendons joints"] = quantity("m/rad|1")
    """Length per coordinate of each joint (hinge and slide)."""
    stiffness: Float[Array, " tendons"] = quantity("N/m")
    """Spring stiffness."""
    spring_length: Float[Array, "tendons 2"] = quantity("m")
    """Range of lengths in which the spring exerts no force."""
    damping: Float[Array, " tendons"] = quantity("N s/m")
    """Viscous damping."""
    armature: Float[Array, " tendons"] = quantity("kg")
    """Inertia along the tendon."""
    frictionloss: Float[Array, " tendons"] = quantity("N")
    """Coulomb friction."""
    range: Float[Array, "tendons 2"] = quantity("m")
    """Shortest and longest length."""
    margin: Float[Array, " tendons"] = quantity("m")
    """Distance from a limit at which it becomes active."""
    force_range: Float[Array, "tendons 2"] = quantity("N")
    """Bounds of the total actuator force on the tendon."""
    solreffriction: Float[Array, "tendons 2"] = quantity("MuJoCo")
    """MuJoCo's time constant and damping ratio of friction."""
    solimpfriction: Float[Array, "tendons 5"] = quantity("MuJoCo")
    """MuJoCo's impedance of friction."""
    solreflimit: Float[Array, "tendons 2"] = quantity("MuJoCo")
    """MuJoCo's time constant and damping ratio of limits."""
    solimplimit: Float[Array, "tendons 5"] = quantity("MuJoCo")
    """MuJoCo's impedance of limits."""
    names: tuple[str, ...] = eqx.field(static=True)
    limited: tuple[bool, ...] = eqx.field(static=True)
    force_limited: tuple[bool, ...] = eqx.field(static=True)
    coupled: tuple[bool, ...] = eqx.field(static=True)
    """True for a motor that turns with several joints: its armature and friction act with any contact model."""
