"""Motion of a trained policy: one episode in simulation, as a replay."""

from pathlib import Path

import numpy as np

from truesim.policies.episodes import Episode
from truesim.policies.play import PlayOptions, play
from truesim.policies.policy import POLICY_FILE, check_policy, load_policy
from truesim.policies.tasks import make_task
from truesim.scenes.motions import ShownMotion
from truesim.scenes.replay import Replay


def is_policy(path: Path) -> bool:
    """True for the folder of a policy."""
    return (path / POLICY_FILE).is_file()


def policy_replay(folder: Path, engine: str = "truesim", seed: int = 0) -> Replay:
    """One episode with the mean action.

    Args:
        folder: Folder of the policy.
        engine: `truesim` or `mujoco`.
        seed: Seed of the episode.
    """
    policy = load_policy(folder)
    said = policy.description
    task = make_task(said["task"], said["robot"].get("robot"))
    check_policy(policy, task)
    frames: list[np.ndarray] = []

    def keep(episodes: Episode) -> None:
        frames.append(np.asarray(episodes.state.q, float)[0])

    played = play(policy, task, engine=engine, options=PlayOptions(episodes=1, seed=seed), callback=keep)
    count = max(2, min(len(frames), round(played.seconds[0] / task.period)))
    motion = ShownMotion("recorded", np.arange(1, count + 1) * task.period, np.stack(frames[:count]))
    return Replay.of(f"{said['task']}, return {played.returns[0]:.3g}", task.simulator.model, [motion])
