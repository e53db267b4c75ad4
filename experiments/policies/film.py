"""Film of a walking policy in MuJoCo, with the command and the measured velocity, as an animated GIF.

`MUJOCO_GL=egl python -m experiments.policies.film POLICY [--out walk.gif] [--seconds 8] [--seed 0]`
"""

import argparse
import dataclasses
from pathlib import Path

import mujoco
import numpy as np
from PIL import Image, ImageDraw

from truesim.cli.trained_policies import use_compilation_cache
from truesim.core.errors import TruesimError
from truesim.policies import load_policy, make_task, play
from truesim.policies.episodes import Episode
from truesim.policies.play import PlayOptions

WIDTH, HEIGHT, EVERY, COLORS = 300, 190, 5, 24
"""Size of a picture [px], control steps between pictures, and colors of the film."""
SMOOTHING = 0.1
"""Part of a new velocity in the shown mean: a gait makes it swing."""


class Film:
    """Pictures of an episode; called after every control step."""

    def __init__(self, model: mujoco.MjModel):
        self._model, self._data = model, mujoco.MjData(model)
        self._renderer, self._camera = mujoco.Renderer(model, HEIGHT, WIDTH), mujoco.MjvCamera()
        self._camera.distance, self._camera.elevation, self._camera.azimuth = 1.5, -18.0, 120.0
        self._mean, self._count = np.zeros(3), 0
        self.pictures: list[Image.Image] = []

    def __call__(self, episodes: Episode) -> None:
        """Take a picture, if it is time."""
        q, v = np.asarray(episodes.state.q)[0], np.asarray(episodes.state.v)[0]
        heading = np.arctan2(2 * (q[3] * q[6] + q[4] * q[5]), 1 - 2 * (q[5] ** 2 + q[6] ** 2))
        c, s = np.cos(heading), np.sin(heading)
        now = np.array([c * v[0] + s * v[1], c * v[1] - s * v[0], v[5]])
        self._mean += SMOOTHING * (now - self._mean)
        self._count += 1
        if self._count % EVERY:
            return
        self._data.qpos[:] = q
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)
        self._camera.lookat[:] = [q[0], q[1], 0.5 * q[2]]
        self._renderer.update_scene(self._data, self._camera)
        self._renderer.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0  # software rendering is slow
        self._renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        picture = Image.fromarray(self._renderer.render())
        draw, command = ImageDraw.Draw(picture), np.asarray(episodes.command)[0]
        rows = zip(("forward", "left", "turn"), command, self._mean, strict=True)
        for k, (name, asked, measured) in enumerate(rows):
            draw.text((8, 6 + 12 * k), f"{name} {asked:+.1f}, walks {measured:+.1f}", fill=(255, 255, 255))
        self.pictures.append(picture)


def main() -> None:
    """Write the film."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy", type=Path, help="folder of the policy")
    parser.add_argument("--out", type=Path, default=Path("walk.gif"))
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    use_compilation_cache()
    policy = load_policy(options.policy)
    task = make_task(policy.description["task"], policy.description["robot"].get("robot"))
    source = task.simulator.model.source
    if source is None:
        raise TruesimError("The robot of this policy did not come from a file.")
    film = Film(source.compiled)
    shown = dataclasses.replace(task, seconds=options.seconds)
    play(policy, shown, engine="mujoco", options=PlayOptions(episodes=1, seed=options.seed), callback=film)
    first, *others = (x.quantize(COLORS, dither=Image.Dither.NONE) for x in film.pictures)
    period = round(1000 * EVERY * task.period)
    first.save(options.out, save_all=True, append_images=others, duration=period, loop=0, optimize=True)
    print(f"{len(film.pictures)} pictures, {options.out.stat().st_size / 1e3:.0f} kB: {options.out}")


if __name__ == "__main__":
    main()
