"""One episode of a task as pure functions: begin, control, advance, conclude.

    episode = begin(task, key)
    episode, controls = control(task, episode, action)    # latency, pushes, controls of every time step
    state = advance(task, episode, controls)              # physics of one control period
    episode, outcome = conclude(task, episode, state)     # reward, end and automatic reset, observation

`environment` compiles them for batches; `advance` is the part that other physics may replace.
"""

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Bool, Float, Int
from truesim.physics.simulation import Simulator, State
from truesim.policies.draws import Draws
from truesim.policies.task import Instant, PolicyTask

ACTING, RESETTING, CHANGING = 0x3C6EF372, 0x78DDE6E4, 0x1F83D9AB
"""Distinct numbers that keep apart the draws of one control step: before and after physics, of a reset, of a change."""
OFFSETS, ONCE = 0x5BE0CD19, 0x6A09E667
"""The same for the offsets of an episode's observations, and for what is drawn once."""
NEVER = 2**30
"""Number of control steps until something that never happens."""


class Episode(eqx.Module):
    """State of a running episode: everything that the next control step needs."""

    state: State
    actions: Float[Array, "history na"]
    """Latest actions, the newest first."""
    delays: Int[Array, " history"]
    """Delay of each of them [time steps]."""
    command: Float[Array, " nc"]
    memory: Any
    parameters: dict[str, Array]
    """Drawn numbers of the randomization, by its paths."""
    latency: Int[Array, ""]
    """Delay of actions [time steps]."""
    key: Array
    """Key of the random numbers."""
    counter: Array
    """Control steps of this stream so far, over all episodes."""
    step: Int[Array, ""]
    """Control steps of this episode so far."""
    next_command: Int[Array, ""]
    """Control steps until a new command."""
    next_push: Int[Array, ""]
    """Control steps until a push."""
    total: Float[Array, ""]
    """Return so far."""
    held: Float[Array, " no"]
    """Last observation, which is seen again where a value is lost; empty if none can be lost."""


class StepOutcome(eqx.Module):
    """Results of a control step; where an episode has ended, observations are of the next one."""

    observation: Float[Array, " no"]
    privileged: Float[Array, " np"]
    """Observation of the critic: all terms without noise."""
    reward: Float[Array, ""]
    """Reward of the control step: rate times control period."""
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]
    """True at the time limit."""
    total: Float[Array, ""]
    """Return of the episode, this step included."""
    length: Int[Array, ""]
    """Control steps of the episode, this one included."""
    last: Float[Array, " no"] | None = None
    """Observation at the end of the control step, also where the episode has ended there; None if not asked for."""


def begin(task: PolicyTask, key: Array, counter: Array | int = 0, fixed: dict[str, Array] | None = None) -> Episode:
    """First instant of a new episode.

    Args:
        task: The task.
        key: Key of the stream of random numbers.
        counter: Position in the stream.
        fixed: Numbers instead of drawn ones, by paths of the randomization.
    """
    counter = jnp.asarray(counter, jnp.uint32)
    draw = Draws(key, counter ^ jnp.uint32(RESETTING))
    once = Draws(key, jnp.uint32(ONCE))
    parameters = task.randomization.sample(task.simulator, draw, once) | (fixed or {})
    simulator = randomized(task, parameters)
    state = jax.tree.map(jnp.asarray, task.reset(simulator, draw))
    history, latency = history_length(task), draw.integer(*task.latency_steps)
    episode = Episode(
        state=state,
        actions=jnp.zeros((history, task.action_map.size)),
        delays=jnp.zeros(history, jnp.int32) + latency,
        command=jnp.zeros(0) if task.command is None else task.command.draw(draw),
        memory=None,
        parameters=parameters,
        latency=latency,
        key=key,
        counter=counter,
        step=jnp.int32(0),
        next_command=_wait(task, draw, None if task.command is None else task.command.interval),
        next_push=_wait(task, draw, None if task.pushes is None else task.pushes.interval),
        total=jnp.zeros(()),
        held=jnp.zeros(0),
    )
    if task.memory is not None:
        episode = dataclasses.replace(episode, memory=task.memory.start(instant(task, episode, simulator), draw))
    if not task.loses_values:
        return episode
    return dataclasses.replace(episode, held=observe(task, episode)[0])  # nothing is lost at the start


def history_length(task: PolicyTask) -> int:
    """Number of actions that an episode remembers: what latency reaches back to, and at least the last two."""
    return max(2, 1 + math.ceil((task.latency_steps[1] + task.jitter_steps) / task.substeps))


def _wait(task: PolicyTask, draw: Draws, interval: tuple[float, float] | None) -> Array:
    """Control steps until the next event of an interval [s]."""
    if interval is None or math.isinf(interval[1]):
        return jnp.int32(NEVER)
    return jnp.round(draw.uniform(*interval) / task.period).astype(jnp.int32)


def instant(task: PolicyTask, episode: Episode, simulator: Simulator | None = None) -> Instant:
    """Instant of an episode, for the terms of its task."""
    return Instant(
        simulator=randomized(task, episode.parameters) if simulator is None else simulator,
        state=episode.state,
        action=episode.actions[0],
        previous=episode.actions[1],
        command=episode.command,
        memory=episode.memory,
        parameters=episode.parameters,
        latency=_seconds(episode.latency, task.simulator.timestep),
        seconds=_seconds(episode.step, task.period),
    )


def _seconds(count: Array, step: Any) -> Array:
    """Time of a number of steps [s]."""
    return count.astype(jnp.result_type(float)) * step


def randomized(task: PolicyTask, parameters: dict[str, Array]) -> Simulator:
    """The task's simulator with drawn parameters."""
    if not parameters:
        return task.simulator
    return task.simulator.replace(task.randomization.values(task.simulator, parameters))


def control(task: PolicyTask, episode: Episode, action: Array) -> tuple[Episode, Float[Array, "substeps nu"]]:
    """Take an action: the episode with pushes and the new action, and the controls of every time step."""
    draw = Draws(episode.key, episode.counter ^ jnp.uint32(ACTING))
    limit = task.action_map.limit
    actions = jnp.concatenate([jnp.clip(action, -limit, limit)[None], episode.actions[:-1]])
    simulator = randomized(task, episode.parameters)
    controls = jnp.stack([task.action_map.control(simulator, each) for each in actions])
    state, next_push = episode.state, episode.next_push
    if task.pushes is not None:
        pushed = next_push <= 0
        change = draw.uniform(-task.pushes.size, task.pushes.size, (len(task.pushes.dofs),))
        v = jnp.asarray(state.v).at[jnp.asarray(task.pushes.dofs)].add(jnp.where(pushed, change, 0.0))
        state = dataclasses.replace(state, v=v)
        next_push = jnp.where(pushed, _wait(task, draw, task.pushes.interval), next_push - 1)
    delay = episode.latency + (draw.integer(0, task.jitter_steps) if task.jitter_steps else 0)
    delays = jnp.concatenate([delay[None], episode.delays[:-1]])
    episode = dataclasses.replace(episode, state=state, actions=actions, delays=delays, next_push=next_push)
    return episode, _delayed(controls, delays, task.substeps)


def _delayed(controls: Array, delays: Array, substeps: int) -> Float[Array, "substeps nu"]:
    """Control of each time step of a period: the newest one that has arrived, `delays` time steps after it was sent."""
    rows = []
    for step in range(substeps):
        chosen = controls[-1]
        for k in reversed(range(len(controls) - 1)):
            chosen = jnp.where(step + k * substeps >= delays[k], controls[k], chosen)
        rows.append(chosen)
    return jnp.stack(rows)


def advance(task: PolicyTask, episode: Episode, controls: Float[Array, "substeps nu"]) -> State:
    """State after a control period, by the task's simulator."""
    simulator = randomized(task, episode.parameters)
    constants = simulator.constants()

    def step(state: State, command: Any) -> tuple[State, None]:
        return simulator.step(state, command, constants)[0], None

    return jax.lax.scan(step, episode.state, controls)[0]


def conclude(
    task: PolicyTask, episode: Episode, state: State, *, shows_last: bool = False
) -> tuple[Episode, StepOutcome]:
    """End a control step: reward, termination, automatic reset, new command and observation.

    Args:
        task: The task.
        episode: The episode.
        state: After the control period.
        shows_last: True for the outcome's `last`.
    """
    finite = has_converged(task, episode.state, state)
    state = jax.tree.map(lambda new, old: jnp.where(finite, new, old), state, episode.state)
    episode = dataclasses.replace(episode, state=state, step=episode.step + 1, counter=episode.counter + jnp.uint32(1))
    simulator = randomized(task, episode.parameters)
    now = instant(task, episode, simulator)
    if task.memory is not None:
        episode = dataclasses.replace(episode, memory=task.memory.update(now))
        now = dataclasses.replace(now, memory=episode.memory)
    reward = jnp.where(finite, task.period * total_reward(task, now), 0.0)
    terminated = ~finite
    for condition in task.terminations.values():
        terminated = terminated | jnp.asarray(condition(now), bool)
    truncated = (episode.step >= task.steps) & ~terminated
    total = episode.total + reward
    episode = _new_parameters(task, _new_command(task, dataclasses.replace(episode, total=total)))
    fresh = begin(task, episode.key, episode.counter)
    ended = terminated | truncated
    following = jax.tree.map(lambda a, b: jnp.where(ended, a, b), fresh, episode)
    noisy, clean = observe(task, following)
    if task.loses_values:
        following = dataclasses.replace(following, held=noisy)
    last = observe(task, episode)[0] if shows_last else None
    return following, StepOutcome(noisy, clean, reward, terminated, truncated, total, episode.step, last)


def has_converged(task: PolicyTask, before: State, after: State) -> Bool[Array, ""]:
    """True if nothing moved faster than the task allows over a control step, False for NaN."""
    return jnp.all(jnp.abs(after.q - before.q) < task.max_speed * task.period) & jnp.all(
        jnp.abs(after.v) < task.max_speed
    )


def total_reward(task: PolicyTask, now: Instant) -> Float[Array, ""]:
    """Reward per second: the weighted sum of all terms."""
    return sum((term.weight * jnp.asarray(term.function(now)) for term in task.rewards.values()), jnp.zeros(()))


def _new_command(task: PolicyTask, episode: Episode) -> Episode:
    """The episode with another command, if it is time."""
    if task.command is None or math.isinf(task.command.interval[1]):
        return episode
    draw = Draws(episode.key, episode.counter)
    left = episode.next_command - 1
    due = left <= 0
    command = jnp.where(due, task.command.draw(draw), episode.command)
    wait = jnp.where(due, _wait(task, draw, task.command.interval), left)
    return dataclasses.replace(episode, command=command, next_command=wait)


def _new_parameters(task: PolicyTask, episode: Episode) -> Episode:
    """The episode with other parameters, if they happen to change or are drawn anew at this step."""
    randomization = task.randomization
    if math.isinf(task.change_interval) and not randomization.changes_within_episodes:
        return episode
    draw = Draws(episode.key, episode.counter ^ jnp.uint32(CHANGING))
    changes = draw.uniform() < task.period / task.change_interval
    drawn = randomization.sample(task.simulator, draw)
    parameters: dict[str, Array] = {}
    for path, number in drawn.items():
        every = randomization.distributions[path].every if path in randomization.distributions else "episode"
        due = changes & (every != "once")
        if every == "step":
            due = jnp.ones((), bool)
        elif not isinstance(every, str):
            due = due | (episode.step % max(1, round(every / task.period)) == 0)
        parameters[path] = jnp.where(due, number, episode.parameters[path])
    return dataclasses.replace(episode, parameters=parameters)


def observe(task: PolicyTask, episode: Episode) -> tuple[Float[Array, " no"], Float[Array, " np"]]:
    """Observation of the policy, with noise; and of the critic, with all terms and without noise."""
    now, shown, draw = instants(task, episode)
    offsets = Draws(episode.key, (episode.counter - episode.step.astype(jnp.uint32)) ^ jnp.uint32(OFFSETS))
    noisy, clean, place = [], [], 0
    for term in task.observations.values():
        clean.append(term.scale * jnp.atleast_1d(term.function(now)))
        if term.privileged:
            continue
        value = jnp.atleast_1d(term.function(shown))
        noise = draw.uniform(-term.noise, term.noise, value.shape) if term.noise else 0.0
        bias = offsets.uniform(-term.bias, term.bias, value.shape) if term.bias else 0.0
        seen = term.scale * (value + noise + bias)
        if term.dropout and episode.held.size:
            lost = (draw.uniform(shape=value.shape) < term.dropout) & (episode.step > 0)
            seen = jnp.where(lost, episode.held[place : place + len(value)], seen)
        noisy.append(seen)
        place += len(value)
    return jnp.concatenate(noisy), jnp.concatenate(clean)


def instants(task: PolicyTask, episode: Episode) -> tuple[Instant, Instant, Draws]:
    """The true instant, what instruments show of it, and random numbers for noise."""
    now, draw = instant(task, episode), Draws(episode.key, ~episode.counter)
    return now, now if task.instruments is None else task.instruments(now, draw), draw
