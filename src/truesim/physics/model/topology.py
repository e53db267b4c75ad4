"""Kinematic tree, and the two recursions over it.

The tree is made of links. A link is one joint and what it moves: a body with one joint (or welded to its parent) is
one link; a body with several joints is a chain of links of which only the last has mass. Links are numbered so that
parents come first; the world is -1.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax

from truesim.physics.model.kinds import AbstractJointKind

Value = TypeVar("Value")
Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True)
class Link:
    """One joint and the rigid part that it moves."""

    parent: int
    """Index of the parent link; -1 is the world."""
    body: int
    """Index of the body that this link belongs to."""
    joint: int
    """Index of its joint; -1 for a fixed link."""
    kind: AbstractJointKind
    q_start: int
    """Index of its first position coordinate in q."""
    v_start: int
    """Index of its first velocity coordinate in v."""
    first: bool
    """True if it is the body's first link, which carries the body's offset from its parent."""
    last: bool
    """True if it is the body's last link, which carries the body's inertia."""

    @property
    def q(self) -> slice:
        """Its position coordinates within q."""
        return slice(self.q_start, self.q_start + self.kind.nq)

    @property
    def v(self) -> slice:
        """Its velocity coordinates within v."""
        return slice(self.v_start, self.v_start + self.kind.nv)


@dataclasses.dataclass(frozen=True)
class Topology:
    """Kinematic tree: parent of each link and its coordinate ranges."""

    links: tuple[Link, ...]
    nq: int
    """Number of position coordinates."""
    nv: int
    """Number of velocity coordinates (degrees of freedom)."""
    body_link: tuple[int, ...]
    """Link that carries the frame of each body."""

    def down(self, f: Callable[..., Value], root: Value, *inputs: Sequence[Any]) -> list[Value]:
        """Recursion from the world to the leaves: `value[i] = f(value[parent(i)], *inputs[i])`.

        Args:
            f: Computes a link's value from its parent's value and the link's inputs.
            root: The world's value.
            inputs: Sequences with one entry per link.
        """
        values: list[Value] = []
        for link, *own in zip(self.links, *inputs, strict=True):
            values.append(f(root if link.parent < 0 else values[link.parent], *own))
        return values

    def up(
        self, f: Callable[..., tuple[Result, Value]], start: Sequence[Value], *inputs: Sequence[Any]
    ) -> list[Result]:
        """Recursion from the leaves to the world: `result[i], handed_up = f(total[i], *inputs[i])`.

        `total[i]` is `start[i]` plus what the children of link i hand up.

        Args:
            f: Computes a link's result, and what it hands up, from its total and the link's inputs.
            start: One entry per link.
            inputs: Sequences with one entry per link.
        """
        totals, results = list(start), []
        for i, link in reversed(list(enumerate(self.links))):
            result, handed_up = f(totals[i], *(x[i] for x in inputs))
            results.append(result)
            if link.parent >= 0:
                totals[link.parent] = jax.tree.map(lambda a, b: a + b, totals[link.parent], handed_up)
        return results[::-1]

    def ancestors(self, link: int) -> list[int]:
        """Links from the world down to `link`, itself included."""
        path = []
        while link >= 0:
            path.append(link)
            link = self.links[link].parent
        return path[::-1]
