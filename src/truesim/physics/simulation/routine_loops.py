"""Closed loops and chosen results of rollouts by the routines: the controller runs in XLA, steps are native calls."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from truesim.physics.simulation.state import State
from truesim.physics.simulation.step_routine import StepRoutine


class _InfoNeededError(Exception):
    """Raised when diagnostics are read that the routines do not have."""


class _NoInfo:
    """Stands for the diagnostics of a step; reading any of them raises `_InfoNeededError`."""

    def __getattr__(self, name: str) -> Any:
        raise _InfoNeededError(name)


def ignores_info(keep: Callable[[State, Any], Any], state: State) -> bool:
    """True if a function of a state and the diagnostics of a step reads none of the diagnostics."""

    def kept(state: State) -> Any:
        found = keep(state, _NoInfo())
        if any(isinstance(x, _NoInfo) for x in jax.tree.leaves(found)):
            raise _InfoNeededError("all")
        return found

    try:
        jax.eval_shape(kept, state)
    except (_InfoNeededError, TypeError):  # arithmetic with all diagnostics at once is a TypeError
        return False
    return True


def closed_loop(
    steps: int,
    checkpoint: bool,
    routine: StepRoutine,
    state: State,
    memory: Any,
    command: Callable[[State, Any], tuple[Any, Any]],
    keep: Callable[[State, Any], Any],
) -> tuple[tuple[State, Any], Any]:
    """Last state and memory, and the command and what `keep` returned of each step, stacked.

    Args:
        steps: Number of time steps.
        checkpoint: Whether reverse mode stores only states.
        routine: The routines.
        state: Initial state, with all its parts.
        memory: Initial memory of the controller.
        command: From state and memory to the command of the next step and the new memory.
        keep: Selects what to keep of the state after each step; it ignores diagnostics.
    """

    def advance(loop: tuple[State, Any], _: None) -> tuple[tuple[State, Any], Any]:
        state, memory = loop
        held, memory = command(state, memory)
        state = routine.rollout(state, held[None])[0]
        return (state, memory), (held, keep(state, None))

    state = jax.tree.map(jnp.asarray, state)
    return jax.lax.scan(jax.checkpoint(advance) if checkpoint else advance, (state, memory), length=steps)
