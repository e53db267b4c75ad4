"""The real system as an environment with a budget, safety limits, a rate, and a log of every episode.

real = RealEnv(robot, period=0.02, folder="real", budget=RealBudget(episodes=50), limits=SafetyLimits({...}))
observation, info = real.reset()
observation, reward, terminated, truncated, info = real.step(action)   # info["stopped"] says why an episode was stopped
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from truesim.bridges.real.clock import ClockSource, RateKeeper
from truesim.bridges.real.episode_files import EpisodeFiles, RealEpisode
from truesim.bridges.real.limits import SafetyLimits
from truesim.core.errors import TruesimError

RANGE_TOLERANCE = 1e-6
"""Part of the range by which an action may miss it, by rounding."""


@dataclasses.dataclass(frozen=True)
class RealBudget:
    """Budget of episodes and of time on the real system, over all sessions of a folder."""

    episodes: float = math.inf
    seconds: float = math.inf
    """Time within episodes [s]."""
    stops: int = 3
    """Safety stops after which no further episode begins; someone should look at the robot first."""


class BudgetSpentError(TruesimError):
    """The budget of the real system is spent, or it was stopped too often."""


class RealSignals(NamedTuple):
    """Signals of an environment by name: what is logged and what limits belong to."""

    measured: Callable[[Any, Mapping[str, Any]], Mapping[str, float]]
    """From an observation and its info to values such as `qpos/elbow`, `qvel/elbow`, `temperature/elbow`."""
    controls: Callable[[np.ndarray], Mapping[str, float]]
    """From an action to the controls that it stands for, such as `ctrl/elbow`."""


def default_signals(env: gymnasium.Env) -> RealSignals:
    """Signals that an environment tells itself: `info["signals"]` and `env.controls_of(action)`; numbers otherwise.

    Args:
        env: The environment.
    """
    controls = getattr(env.unwrapped, "controls_of", None)
    return RealSignals(_told, controls or (lambda action: _numbered("action", action)))


def _told(observation: Any, info: Mapping[str, Any]) -> Mapping[str, float]:
    return info["signals"] if "signals" in info else _numbered("observation", observation)


def _numbered(name: str, values: Any) -> dict[str, float]:
    return {f"{name}/{k}": float(x) for k, x in enumerate(np.ravel(np.asarray(values, float)))}


class RealEnv(gymnasium.Wrapper):
    """Any environment as the real system: a robot, MuJoCo, a held-out simulator.

    - The budget counts episodes and seconds, also of earlier sessions in the same folder.
    - A signal beyond its limits ends the episode: the environment's `stop()` is called, or `stop_action` sent.
    - With a clock, actions leave every `period`; missed deadlines are counted.
    - Every episode is a log for `truesim identify`; a crash loses no row.
    """

    def __init__(
        self,
        env: gymnasium.Env,
        *,
        period: float,
        folder: str | Path | None = None,
        budget: RealBudget | None = None,
        limits: SafetyLimits | None = None,
        clock: ClockSource | None = None,
        signals: RealSignals | None = None,
    ):
        """Take up a folder.

        Args:
            env: The environment.
            period: Time between actions [s].
            folder: Folder of logs and journal; None keeps records in memory only.
            budget: Episodes and seconds; unlimited by default.
            limits: Ranges of signals.
            clock: Clock that keeps the rate, such as `WallClock()` for a robot; None for a simulator, which does not
                wait.
            signals: Names of what is observed and sent; by default what the environment tells.
        """
        super().__init__(env)
        if not period > 0:
            raise TruesimError(f"The period of the real system is {period:g} s; it must be positive.")
        self.period, self.budget, self.limits = period, budget or RealBudget(), limits or SafetyLimits()
        self.label = ""
        """Name of what is being played, for the records."""
        self.stop_action = _middle(env.action_space)
        """Action that is sent when an episode is stopped, unless the environment has a method `stop`."""
        self._files = EpisodeFiles(None if folder is None else Path(folder), period)
        self._clock, self._signals = clock, signals or default_signals(env)
        self._rate: RateKeeper | None = None
        self._running, self._observation = False, np.zeros(0)
        self._steps, self._total, self._last = 0, 0.0, dict[str, float]()

    @property
    def episodes(self) -> tuple[RealEpisode, ...]:
        """Episodes so far, those of earlier sessions included."""
        return tuple(self._files.episodes)

    @property
    def logs(self) -> list[Path]:
        """Logs of all episodes, for `truesim identify`."""
        folder = self._files.folder
        return [] if folder is None else [folder / each.log for each in self._files.episodes if each.log]

    @property
    def episodes_left(self) -> float:
        """Episodes that may still begin."""
        return self.budget.episodes - len(self._files.episodes)

    @property
    def seconds_left(self) -> float:
        """Time that is left of the budget [s]."""
        return self.budget.seconds - sum(each.seconds for each in self._files.episodes)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode; raises `BudgetSpentError` if the budget is spent. An open episode is ended first."""
        self._end("another episode began")
        self._check_budget()
        observation, info = self.env.reset(seed=seed, options=options)
        self._observation, self._last = observation, dict(self._signals.measured(observation, info))
        names = (*self._last, *self._signals.controls(self.stop_action))
        self.limits.check_names(names)
        self._files.begin((*names, "reward"))
        self._rate = None if self._clock is None else RateKeeper(self._clock, self.period)
        self._running, self._steps, self._total = True, 0, 0.0
        return observation, info

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Send an action; an episode that is stopped is truncated, and `info["stopped"]` says why."""
        if not self._running:
            raise TruesimError("The episode has ended; begin another one with reset().")
        action = self._checked(action)
        controls = dict(self._signals.controls(action))
        unsafe = self.limits.violation({**self._last, **controls})
        if unsafe is not None:
            return self._stopped(unsafe)
        when = self._steps * self.period if self._rate is None else self._rate.wait()
        sent = {**self._last, **controls}
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._files.row(when, {**sent, "reward": float(reward)})
        self._steps, self._total = self._steps + 1, self._total + float(reward)
        self._last = dict(self._signals.measured(observation, info))
        self._observation = observation
        unsafe = self.limits.violation(self._last)
        reason = self._reason_to_stop(unsafe, float(reward))
        if reason is not None and not (terminated or truncated):
            self._send_stop()
        if reason is not None or terminated or truncated:
            self._end(reason, unsafe is not None)
        if reason is None:
            return observation, float(reward), terminated, truncated, info
        return observation, float(reward), terminated, not terminated, {**info, "stopped": reason}

    def close(self) -> None:
        """End the open episode, and close files and environment."""
        self._end("the session was closed")
        self._files.close()
        super().close()

    def _checked(self, action: Any) -> np.ndarray:
        """The action; one that is out of range stops the robot and raises."""
        space = self.action_space
        assert isinstance(space, gymnasium.spaces.Box), "checked at the start"
        values = np.asarray(action, np.float64)
        reason = None
        if values.shape != space.shape:
            reason = f"The action has shape {values.shape}; the real system takes {space.shape}"
        elif not np.all(np.isfinite(values)):
            reason = f"Action {int(np.argmin(np.isfinite(values)))} is not a number"
        else:
            width = RANGE_TOLERANCE * (space.high.astype(float) - space.low)
            beyond = np.flatnonzero((values < space.low - width) | (values > space.high + width))
            if beyond.size:
                k = int(beyond[0])
                low, high = float(np.ravel(space.low)[k]), float(np.ravel(space.high)[k])
                reason = f"Action {k} is {float(np.ravel(values)[k]):.4g}, outside of [{low:g}, {high:g}]"
        if reason is None:
            return np.clip(values, space.low, space.high).astype(space.dtype)
        self._send_stop()
        self._end(reason)
        raise TruesimError(f"{reason}; the robot was stopped, and the episode is in the records.")

    def _reason_to_stop(self, unsafe: str | None, reward: float) -> str | None:
        if unsafe is not None:
            return f"Stopped after {self._seconds():.3g} s: {unsafe}."
        if not math.isfinite(reward):
            return f"Stopped after {self._seconds():.3g} s: the reward is {reward:g}, not a number."
        if self._seconds() >= self.seconds_left:
            return f"Stopped: the budget of {self.budget.seconds:g} s is spent."
        return None

    def _stopped(self, unsafe: str) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Stop before an unsafe action is sent."""
        reason = f"Stopped after {self._seconds():.3g} s, before the action was sent: {unsafe}."
        self._send_stop()
        self._end(reason, unsafe=True)
        return self._observation, 0.0, False, True, {"stopped": reason}

    def _send_stop(self) -> None:
        """Bring the robot to rest."""
        stop = getattr(self.env.unwrapped, "stop", None)
        if stop is not None:
            stop()
        else:
            self.env.step(self.stop_action)

    def _seconds(self) -> float:
        return self._steps * self.period if self._rate is None else self._rate.seconds

    def _end(self, reason: str | None, unsafe: bool = False) -> None:
        if not self._running:
            return
        self._running = False
        missed = 0 if self._rate is None else self._rate.missed
        total = self._total if math.isfinite(self._total) else math.nan
        self._files.finish(RealEpisode(total, self._steps, self._seconds(), missed, reason, unsafe, self.label))

    def _check_budget(self) -> None:
        if self.episodes_left <= 0:
            raise BudgetSpentError(f"The budget of {self.budget.episodes:g} real episodes is spent.")
        if self.seconds_left <= 0:
            raise BudgetSpentError(f"The budget of {self.budget.seconds:g} s on the real system is spent.")
        stops = [each.stopped for each in self._files.episodes if each.unsafe]
        if len(stops) >= self.budget.stops:
            raise BudgetSpentError(
                f"The robot was stopped {len(stops)} times, the last time so: {stops[-1]} "
                "Look at it, and raise `stops` of the budget to go on."
            )


def _middle(space: gymnasium.Space) -> np.ndarray:
    """Zero where the range has it, else the middle of the range."""
    if not isinstance(space, gymnasium.spaces.Box):
        raise TruesimError(f"The actions of a real system are numbers in ranges (Box); this space is {space}.")
    middle = np.where((space.low <= 0) & (space.high >= 0), 0.0, 0.5 * (space.low + space.high))
    return np.asarray(middle, space.dtype)
