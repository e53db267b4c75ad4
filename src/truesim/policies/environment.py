"""Many episodes of a task at once: a control step of a batch as native code, and physics other than the simulator's.

Physics is one of

- the task's simulator: the whole control step (latency, time steps, reward, reset, observation) is one kernel, which
  a learner calls inside `jax.jit` (`Environment.is_traceable`);
- MuJoCo's constraint model by the table-driven routines, if the simulator has the contact of an MJCF file;
- anything else with the method of `BatchPhysics`, such as MuJoCo itself.
"""

import dataclasses
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.errors import TruesimError, unknown_name
from truesim.core.precision import float32
from truesim.core.typing import Array
from truesim.physics.simulation import State
from truesim.policies.draws import make_keys
from truesim.policies.episodes import Episode, StepOutcome, advance, begin, conclude, control, instant, observe
from truesim.policies.task import PolicyTask

ENVIRONMENT_BACKENDS = ("native", "xla")


class BatchPhysics(Protocol):
    """Physics of a batch outside of JAX."""

    def advance(self, episodes: Episode, controls: np.ndarray) -> State:
        """States after a control period under controls of shape (batch, substeps, nu)."""


class Environment:
    """A batch of episodes in single precision, which begin again by themselves when they end.

    episodes, outcome = environment.reset(seed)
    episodes, outcome = environment.step(episodes, actions)
    """

    def __init__(
        self,
        task: PolicyTask,
        batch: int,
        *,
        backend: str = "native",
        physics: BatchPhysics | None = None,
        threads: int = 1,
        shows_last: bool = False,
    ):
        """Compile the control step.

        Args:
            task: The task.
            batch: Number of episodes.
            backend: `native` kernels, or `xla`.
            physics: Physics instead of the task's simulator.
            threads: Threads over which native kernels split the batch.
            shows_last: True if outcomes also have the last observation of an episode that ends.
        """
        if backend not in ENVIRONMENT_BACKENDS:
            raise unknown_name("backend", backend, ENVIRONMENT_BACKENDS)
        if batch < 1:
            raise TruesimError(f"An environment of {batch} episodes is empty.")
        self.task, self.batch, self.physics = task, batch, physics
        with float32():
            key = jnp.zeros(2, jnp.uint32)
            episode = jax.eval_shape(lambda key: begin(task, key), key)
            action = jax.ShapeDtypeStruct((task.action_map.size,), jnp.float32)
            self._begin = _compiled(lambda key: _first(task, key), (key,), backend, threads)
            self._begin_fixed = jax.jit(jax.vmap(lambda key, fixed: _first(task, key, fixed), in_axes=(0, None)))
            if physics is None:
                step = partial(_whole_step, task, shows_last=shows_last)
                self._step = _compiled(step, (episode, action), backend, threads)
                return
            controls, state = jax.eval_shape(lambda e, a: _controls_and_state(task, e, a), episode, action)
            self._control = _compiled(lambda e, a: control(task, e, a), (episode, action), backend, threads)
            end = partial(conclude, task, shows_last=shows_last)
            self._conclude = _compiled(end, (episode, state), backend, threads)
            assert controls.shape[0] == task.substeps

    @property
    def is_traceable(self) -> bool:
        """True if `step` can be called inside `jax.jit`."""
        return self.physics is None

    def reset(
        self, seed: int = 0, *, stagger: bool = False, fixed: dict[str, Any] | None = None
    ) -> tuple[Episode, StepOutcome]:
        """Begin all episodes.

        Args:
            seed: Of all random numbers of the episodes.
            stagger: Whether episodes begin at random ages, so that they do not all end at once.
            fixed: Numbers of all episodes instead of drawn ones, by paths of the randomization.
        """
        with float32():
            keys = make_keys(seed, self.batch)
            begun = self._begin(keys) if not fixed else self._begin_fixed(keys, fixed)
            episodes, outcome = jax.tree.map(np.asarray, begun)
            if stagger:
                ages = np.random.default_rng(seed).integers(0, self.task.steps, self.batch).astype(np.int32)
                episodes = dataclasses.replace(episodes, step=ages)
            return episodes, outcome

    def step(self, episodes: Episode, actions: Array) -> tuple[Episode, StepOutcome]:
        """One control step of all episodes."""
        if self.physics is None:
            return self._step(episodes, actions)
        episodes, controls = self._control(episodes, np.asarray(actions, np.float32))
        return self._conclude(episodes, self.physics.advance(episodes, np.asarray(controls)))

    def scan(self, one: Any, carry: Any, inputs: Any = None, length: int | None = None) -> tuple[Any, Any]:
        """`jax.lax.scan` over control steps, or the same loop in Python if physics is outside of JAX.

        Args:
            one: From a carry and an input to a carry and an output; it calls `step`.
            carry: At the start.
            inputs: Inputs with a leading axis of control steps.
            length: Number of control steps, if there are no inputs.
        """
        if self.is_traceable:
            return jax.lax.scan(one, carry, inputs, length)
        outputs = []
        for k in range(len(jax.tree.leaves(inputs)[0]) if length is None else length):
            carry, output = one(carry, jax.tree.map(lambda x, k=k: x[k], inputs))
            outputs.append(output)
        return carry, jax.tree.map(lambda *x: jnp.stack(x), *outputs)

    def compiled_play(self, play: Any, **options: Any) -> Any:
        """A function that calls `scan`: compiled, or as it is if physics is outside of JAX."""
        return jax.jit(play, **options) if self.is_traceable else play

    def bad_terms(self, episodes: Episode) -> list[str]:
        """Names of terms that are not finite in some episode: observations and rewards."""

        def values(episode: Episode) -> dict[str, Array]:
            now = instant(self.task, episode)
            terms = {f"observation {name}": term.function for name, term in self.task.observations.items()}
            terms |= {f"reward {name}": term.function for name, term in self.task.rewards.items()}
            return {name: jnp.all(jnp.isfinite(jnp.asarray(f(now)))) for name, f in terms.items()}

        with float32():
            finite = jax.vmap(values)(jax.tree.map(jnp.asarray, episodes))
        return [name for name, each in finite.items() if not np.all(each)]


def _compiled(f: Any, examples: tuple[Any, ...], backend: str, threads: int) -> Any:
    """A function of one episode for batches."""
    if backend == "native":
        return native.compile(f, *examples, threads=threads)
    return jax.jit(jax.vmap(f))


def _first(task: PolicyTask, key: Array, fixed: dict[str, Array] | None = None) -> tuple[Episode, StepOutcome]:
    episode = begin(task, key, 0, fixed)
    noisy, clean = observe(task, episode)
    never, zero = jnp.zeros((), bool), jnp.zeros(())
    return episode, StepOutcome(noisy, clean, zero, never, never, zero, episode.step)


def _whole_step(task: PolicyTask, episode: Episode, action: Array, *, shows_last: bool) -> tuple[Episode, StepOutcome]:
    episode, controls = control(task, episode, action)
    return conclude(task, episode, advance(task, episode, controls), shows_last=shows_last)


def _controls_and_state(task: PolicyTask, episode: Episode, action: Array) -> tuple[Array, State]:
    episode, controls = control(task, episode, action)
    return controls, episode.state
