"""Reverse mode of rollouts: what a scan over steps stores, and how often JAX differentiates its step."""

import dataclasses
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from truesim.core.typing import Array
from truesim.physics.contact.base import CONTACT_SOLUTION
from truesim.physics.simulation.state import State

recomputed = functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.save_only_these_names(CONTACT_SOLUTION))
"""In reverse mode, a step is computed again, except for solutions of its contacts."""


def varying(state: State, influences: Any) -> State:
    """The same state; its configuration and velocity have tangents if any of the influences on the motion has.

    Otherwise, JAX differentiates the scan of a rollout again for each part of the state that turns out to vary.
    """
    q, v = _motion((state.q, state.v), influences)
    return dataclasses.replace(state, q=q, v=v)


@eqx.filter_custom_jvp
def _motion(motion: tuple[Array, Array], influences: Any) -> tuple[Array, Array]:
    return motion


@_motion.def_jvp
def _motion_jvp(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    """Add a zero that depends on a tangent, since JAX leaves out tangents that are zeros."""
    motion, _ = primals
    zero = sum(0 * dx.sum() for dx in jax.tree.leaves(tangents)[:1])
    changes = [jnp.zeros_like(x) if dx is None else dx for x, dx in zip(motion, tangents[0], strict=True)]
    return motion, tuple(dx + jnp.asarray(zero, dx.dtype) for dx in changes)
