"""Stand-ins of robots as environments: tasks in MuJoCo with effects that the simulator does not have."""

import dataclasses
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from truesim.bridges.environments import spaces_of
from truesim.bridges.real.stand_in_physics import RealEffects, StandInPhysics, effects_of
from truesim.core.precision import float32
from truesim.core.typing import Array
from truesim.physics.model.columns import command_columns, position_columns, velocity_columns
from truesim.physics.model.kinds import HINGE, SLIDE
from truesim.policies.draws import Draws
from truesim.policies.environment import Environment
from truesim.policies.episodes import Episode, instants, observe
from truesim.policies.randomization import Randomization
from truesim.policies.task import Instant, PolicyTask
from truesim.policies.tasks import make_task

STAND_IN_SEEDS = 2**31
"""Number of different seeds of episodes."""


def make_stand_in(
    task: PolicyTask | str, level: str = "R1", *, robot: int = 0, robot_file: str | Path | None = None
) -> "StandInEnv":
    """Stand-in of a real robot for a task.

    Args:
        task: The task, or its name.
        level: `R0`, `R1` or `R2`.
        robot: Number of the robot: another one has other parameters.
        robot_file: Robot file of a task that is given by name.
    """
    made = make_task(task, robot_file) if isinstance(task, str) else task
    return StandInEnv(made, effects_of(made, level, robot), robot=robot)


def real_task(task: PolicyTask, effects: RealEffects, robot: int = 0) -> PolicyTask:
    """The task as it is on a stand-in, for an oracle to be trained on: its physics, and instruments with noise.

    Args:
        task: The task.
        effects: Differences from its simulator.
        robot: Number of the robot, which decides the offsets of its encoders.
    """
    model = task.simulator.model
    joints = [link for link in model.topology.links if link.kind in (HINGE, SLIDE)]
    q_of, v_of = (np.array([getattr(link, x) for link in joints], int) for x in ("q_start", "v_start"))
    offset = effects.offset * np.random.default_rng([robot, 2]).uniform(-1.0, 1.0, len(q_of))

    def instruments(now: Instant, draw: Draws) -> Instant:
        q = _shifted(now.q, q_of, offset + draw.normal(0.0, effects.position_noise, (len(q_of),)))
        v = _shifted(now.v, v_of, draw.normal(0.0, effects.velocity_noise, (len(v_of),)))
        return dataclasses.replace(now, state=dataclasses.replace(now.state, q=q, v=v))

    observations = {name: dataclasses.replace(term, noise=0.0) for name, term in task.observations.items()}
    return dataclasses.replace(
        task,
        observations=observations,
        randomization=Randomization(),
        latency=(0.0, 0.0),
        pushes=None,
        instruments=instruments,
        physics=lambda own, batch: StandInPhysics(own, effects, batch, robot),
    )


def _shifted(x: Array, places: np.ndarray, change: Array) -> Array:
    return jnp.asarray(x).at[places].add(change) if len(places) else x


class StandInEnv(gymnasium.Env):
    """A task on a stand-in; `info["signals"]` has positions, velocities, torques, temperatures and commands."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, task: PolicyTask, effects: RealEffects, *, robot: int = 0):
        """Compile.

        Args:
            task: The task.
            effects: Differences from its simulator.
            robot: Number of the robot, which decides the offsets of its encoders and the jitter.
        """
        self.task = real_task(task, effects, robot)
        self.period = task.period
        model = task.simulator.model
        self._names = (*position_columns(model), *velocity_columns(model))
        self._controls, self._actuators = command_columns(model), model.actuators.names
        with float32():
            self._physics = StandInPhysics(self.task, effects, 1, robot)
            self._environment = Environment(self.task, 1, physics=self._physics)
            self._look = jax.jit(jax.vmap(self._shown))
            self._control = jax.jit(lambda action: task.action_map.control(task.simulator, action))
        self._episodes, outcome = self._environment.reset(0)
        self.observation_space, self.action_space = spaces_of(task, outcome.observation.shape[-1])

    def _shown(self, episode: Episode) -> tuple[Array, Array]:
        """Observation, and measured positions and velocities."""
        _, shown, _ = instants(self.task, episode)
        return observe(self.task, episode)[0], jnp.concatenate([shown.q, shown.v])

    def controls_of(self, action: Any) -> dict[str, float]:
        """Controls of the actuators for an action, by the columns of a log."""
        with float32():
            controls = np.asarray(self._control(np.asarray(action, np.float32)))
        return {name: float(x) for name, x in zip(self._controls, controls, strict=True)}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        number = int(self.np_random.integers(STAND_IN_SEEDS))
        self._physics.restart(number)
        self._episodes, _ = self._environment.reset(number)
        return self._seen(self._episodes)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """One control step."""
        before = self._episodes
        with float32():
            self._episodes, outcome = self._environment.step(before, np.asarray(action, np.float32)[None])
        terminated, truncated = bool(outcome.terminated[0]), bool(outcome.truncated[0])
        shown = self._episodes
        if terminated or truncated:  # the environment has begun another episode; this is the end of the last one
            assert self._physics.last is not None, "it has just moved"
            shown = dataclasses.replace(before, state=self._physics.last, counter=before.counter + np.uint32(1))
        observation, info = self._seen(shown)
        return observation, float(outcome.reward[0]), terminated, truncated, info

    def _seen(self, episodes: Episode) -> tuple[np.ndarray, dict[str, Any]]:
        with float32():
            observation, values = (np.asarray(x)[0] for x in self._look(episodes))
        signals = {name: float(x) for name, x in zip(self._names, values, strict=True)}
        motors = self._physics.report()
        for kind, numbers in (("torque", motors.torque), ("temperature", motors.temperature)):
            signals |= {f"{kind}/{name}": float(x) for name, x in zip(self._actuators, numbers, strict=True)}
        signals |= {f"command/{k}": float(x) for k, x in enumerate(np.asarray(episodes.command)[0])}
        return observation.astype(np.float32), {"signals": signals}
