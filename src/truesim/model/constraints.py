"""What ties bodies together beyond the tree: pairs of geoms that may touch, and closed chains."""

import equinox as eqx

from truesim.core.typing import Array, Float
from truesim.model.quantity import quantity


class Contacts(eqx.Module):
    """Pairs of geoms with numbers of their own; all other pairs take theirs from the two geoms."""

    friction: Float[Array, "contacts 5"] = quantity("1")
    """Friction along two tangents, in torsion and in rolling about two axes."""
    restitution: Float[Array, "contacts"] = quantity("1")
    """Speed of separation after an impact, in parts of the speed of approach."""
    margin: Float[Array, "contacts"] = quantity("m")
    """Distance at which contact is detected."""
    gap: Float[Array, "contacts"] = quantity("m")
    """Part of the margin in which no force acts."""
    names: tuple[str, ...] = eqx.field(static=True)
    geoms: tuple[tuple[int, int], ...] = eqx.field(static=True)
    dimensions: tuple[int, ...] = eqx.field(static=True)
    """MuJoCo's condim: 1 without friction, 3 with sliding, 4 with torsional, 6 with rolling friction."""
    excluded: tuple[tuple[int, int], ...] = eqx.field(static=True)
    """Pairs of bodies whose geoms never touch."""
    parents_touch: bool = eqx.field(static=True)
    """Whether a body can touch its parent."""


class Equalities(eqx.Module):
    """Constraints that close chains or couple joints."""

    anchor: Float[Array, "equalities 2 3"] = quantity("m")
    """The point that both bodies share (connect), or the origins of the frames that coincide (weld), in each body."""
    orientation: Float[Array, "equalities 4"] = quantity("1")
    """Orientation of the second body in the first that a weld keeps: unit quaternion."""
    coefficients: Float[Array, "equalities 5"] = quantity("1")
    """Coupling of joints: the first follows this polynomial of the second, both from their references."""
    names: tuple[str, ...] = eqx.field(static=True)
    kinds: tuple[str, ...] = eqx.field(static=True)
    """connect, weld or joint."""
    objects: tuple[tuple[int, int], ...] = eqx.field(static=True)
    """Bodies (-1 is the world), or joints (-1 for a joint held by itself)."""
