"""The MJCF files that ship inside gymnasium."""

from pathlib import Path

import gymnasium
import mujoco

FOLDER = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
NAMES = sorted(path.stem for path in FOLDER.glob("*.xml"))


def gymnasium_model(name: str) -> mujoco.MjModel:
    """One of them, as MuJoCo compiles it, in still air."""
    m = mujoco.MjModel.from_xml_path(str(FOLDER / f"{name}.xml"))
    m.opt.density = m.opt.viscosity = 0
    return m
