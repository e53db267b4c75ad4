"""Searches over parameters that see nothing but returns of episodes: hill climbing and steps of evolution strategies.

Each is a record of pure functions: `init` makes a state, `ask` the next candidates from standard normal numbers,
`tell` takes their returns. The same functions run on a robot (`adapt`), one episode after the other, and inside of
`jit` in simulated populations (`adapt_in_simulation`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Float


class SearchState(NamedTuple):
    """State of a search: the incumbent and its return."""

    incumbent: Float[Array, " size"]
    value: Float[Array, ""]
    """Return that the incumbent is compared by."""


class EpisodeSearch(NamedTuple):
    """A search as three pure functions."""

    init: Callable[[Array, Array], SearchState]
    """State from an initial point and its return."""
    ask: Callable[[SearchState, Array], Array]
    """Candidates of a round, one row each, from standard normal numbers of the same shape."""
    tell: Callable[[SearchState, Array, Array], SearchState]
    """State after the returns of the candidates."""


def hill_climbing(sigma: float = 0.1, *, reevaluate: bool = False) -> EpisodeSearch:
    """Climb: candidates are perturbations of the incumbent, and the best one replaces it if it is better.

    Rounds of one candidate are plain hill climbing; rounds of several are batch hill climbing (Song et al. 2020),
    which takes fewer and surer steps when returns are noisy.

    Args:
        sigma: Standard deviation of perturbations.
        reevaluate: Play the incumbent again as the first candidate of every round, so that a lucky return does not
            stay.
    """

    def ask(state: SearchState, noise: Array) -> Array:
        return state.incumbent[None] + sigma * (jnp.asarray(noise).at[0].set(0.0) if reevaluate else noise)

    def tell(state: SearchState, candidates: Array, values: Array) -> SearchState:
        best = jnp.argmax(values)
        better = values[best] > (values[0] if reevaluate else state.value)
        value = jnp.where(better, values[best], values[0] if reevaluate else state.value)
        return SearchState(jnp.where(better, candidates[best], state.incumbent), value)

    return EpisodeSearch(SearchState, ask, tell)


def evolution_step(sigma: float = 0.1, rate: float = 0.05) -> EpisodeSearch:
    """Step along the gradient that an evolution strategy estimates from one round.

        theta <- theta + rate / sigma * mean_k(v_k g_k),   candidates theta + sigma g_k

    with returns `v` standardized over the round and the pivot.

    Args:
        sigma: Standard deviation of perturbations.
        rate: Step size.
    """

    def tell(state: SearchState, candidates: Array, values: Array) -> SearchState:
        every = jnp.append(values, state.value)
        scaled = (values - jnp.mean(every)) / (jnp.std(every) + 1e-8)
        directions = (candidates - state.incumbent[None]) / sigma
        return SearchState(state.incumbent + rate / sigma * (scaled @ directions) / len(values), state.value)

    return EpisodeSearch(SearchState, lambda state, noise: state.incumbent[None] + sigma * noise, tell)


def adapt_in_simulation(
    search: EpisodeSearch,
    evaluate: Callable[[Array, Array], Array],
    start: Float[Array, " size"],
    noise: Float[Array, "rounds candidates size"],
    episodes: Any,
) -> SearchState:
    """Run a whole search inside of compiled code.

    Args:
        search: The search.
        evaluate: Return of an episode from parameters and what differs from episode to episode.
        start: Parameters to start from, which are evaluated first.
        noise: Standard normal numbers of all candidates.
        episodes: What differs from episode to episode, with leading axes (1 + rounds, candidates); the first is for
            the start.
    """
    every = jax.vmap(evaluate)
    first = jax.tree.map(lambda x: x[0, 0], episodes)
    state = search.init(start, evaluate(start, first))

    def round_(state: SearchState, inputs: tuple[Array, Any]) -> tuple[SearchState, None]:
        candidates = search.ask(state, inputs[0])
        return search.tell(state, candidates, every(candidates, inputs[1])), None

    later = jax.tree.map(lambda x: x[1:], episodes)
    return jax.lax.scan(round_, state, (noise, later))[0]
