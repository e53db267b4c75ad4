"""Machines that the tutorials record: MuJoCo with values that the robot files do not have.

python -m docs.tutorials.real_machines out/so101     # a robot file and a data set for the first tutorial
"""

import json
import shutil
import sys
from pathlib import Path

import mujoco
import numpy as np
import polars as pl

DELAY = 0.024
"""Of the servos of the desk arm [s]."""
TRUE = {"joints/*.damping": 0.42, "joints/*.frictionloss": 0.11, "actuators/*.kp": 13.5, "bodies/jaw.mass": 0.09}
"""Values of the recorded desk arm; the jaw holds something."""


def real_desk_arm(robot: str | Path) -> mujoco.MjModel:
    """The desk arm as it really is."""
    model = mujoco.MjModel.from_xml_path(str(robot))
    model.dof_damping[:] = TRUE["joints/*.damping"]
    model.dof_frictionloss[:] = TRUE["joints/*.frictionloss"]
    model.actuator_gainprm[:, 0] = TRUE["actuators/*.kp"]
    model.actuator_biasprm[:, 1] = -TRUE["actuators/*.kp"]
    model.body_mass[model.body("jaw").id] = TRUE["bodies/jaw.mass"]  # a small part at the jaw's center of mass
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def write_desk_arm(folder: str | Path) -> tuple[Path, Path]:
    """Write the robot file of the desk arm and a data set of the real one into a folder; returns both paths."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    robot = Path(shutil.copy(Path(__file__).with_name("desk_arm.xml"), folder))
    return robot, record_lerobot(robot, Path(folder) / "desk_arm_dataset")


def record_lerobot(
    robot: str | Path, folder: str | Path, episodes: int = 3, seconds: float = 8.0, rate: float = 50.0
) -> Path:
    """Record teleoperated-looking motions as a LeRobot data set (format v3), in the units of `as_recorded`.

    Args:
        robot: Robot file.
        folder: Folder of the data set.
        episodes: Number of episodes.
        seconds: Length of each [s].
        rate: Frames per second [Hz].
    """
    model, folder = real_desk_arm(robot), Path(folder)
    names = [f"{model.actuator(k).name}.pos" for k in range(model.nu)]
    tables = []
    for episode in range(episodes):
        time = np.arange(0, seconds, 1 / rate)
        command = wandering(time, model, np.random.default_rng(episode))
        measured = follow(model, time, command, DELAY)
        measured += np.random.default_rng(100 + episode).normal(0, 2 * np.pi / 4096 / 3, measured.shape)
        tables.append(
            pl.DataFrame(
                {
                    "observation.state": as_recorded(model, measured).astype(np.float32).tolist(),
                    "action": as_recorded(model, command).astype(np.float32).tolist(),
                    "timestamp": time,
                    "frame_index": np.arange(len(time)),
                    "episode_index": np.full(len(time), episode),
                }
            )
        )
    (folder / "data" / "chunk-000").mkdir(parents=True, exist_ok=True)
    (folder / "meta").mkdir(exist_ok=True)
    pl.concat(tables).write_parquet(folder / "data" / "chunk-000" / "file-000.parquet")
    feature = {"dtype": "float32", "shape": [len(names)], "names": names}
    info = {"codebase_version": "v3.0", "fps": rate, "features": {"observation.state": feature, "action": feature}}
    (folder / "meta" / "info.json").write_text(json.dumps(info))
    return folder


def as_recorded(model: mujoco.MjModel, positions: np.ndarray) -> np.ndarray:
    """Positions of the joints [rad] as LeRobot records them: in degrees, the gripper in percent of its range."""
    recorded, gripper = np.degrees(positions), model.joint("gripper").id
    low, high = model.jnt_range[gripper]
    recorded[:, gripper] = 100 * (positions[:, gripper] - low) / (high - low)
    return recorded


def record_torques(robot: str | Path, log: str | Path, seed: int, seconds: float = 20.0, rate: float = 200.0) -> Path:
    """Record joint positions and motor torques of the desk arm, with noise, as CSV.

    Args:
        robot: Robot file with position servos, which move the arm; only their torques are written.
        log: File to write.
        seed: Seed of motion and noise.
        seconds: Length [s].
        rate: Samples per second [Hz].
    """
    model, rng = real_desk_arm(robot), np.random.default_rng(seed)
    model.opt.timestep = 1 / (4 * rate)
    model.actuator_gainprm[:, 0], model.actuator_biasprm[:, 1] = 60.0, -60.0
    fine = np.arange(0, seconds, model.opt.timestep)
    command = wandering(fine, model, rng)
    data, q, torque = mujoco.MjData(model), np.empty((len(fine), model.nq)), np.empty((len(fine), model.nu))
    data.qpos[:] = command[0]
    for k in range(len(fine)):
        data.ctrl[:] = command[k]
        mujoco.mj_forward(model, data)
        q[k], torque[k] = data.qpos, data.actuator_force
        mujoco.mj_step(model, data)
    time, q, torque = fine[::4], q[::4], torque[::4]
    names = [model.actuator(k).name for k in range(model.nu)]
    columns = {"time": time} | {f"qpos/{n}": q[:, k] + rng.normal(0, 2e-4, len(time)) for k, n in enumerate(names)}
    columns |= {f"ctrl/{n}": torque[:, k] + rng.normal(0, 0.01, len(time)) for k, n in enumerate(names)}
    pl.DataFrame(columns).write_csv(log)
    return Path(log)


def record_cart_pole(robot: str | Path, log: str | Path, seed: int, seconds: float = 6.0) -> Path:
    """Push a cart with a pole to and fro, and write positions and commands as CSV.

    Args:
        robot: Robot file of the machine as it really is.
        log: File to write.
        seed: Seed of motion and noise.
        seconds: Length [s].
    """
    model, rng = mujoco.MjModel.from_xml_path(str(robot)), np.random.default_rng(seed)
    time = np.arange(0, seconds, model.opt.timestep)
    waves = np.sin(2 * np.pi * np.outer(time, rng.uniform(0.4, 1.5, 5)) + rng.uniform(0, 6, 5))
    command = 0.6 * model.actuator_ctrlrange[0, 1] * waves.mean(axis=1)
    data, q = mujoco.MjData(model), np.empty((len(time), model.nq))
    data.qpos[1] = np.pi
    for k in range(len(time)):
        q[k], data.ctrl[0] = data.qpos, command[k]
        mujoco.mj_step(model, data)
    q += rng.normal(0, 5e-4, q.shape)
    joints = [model.joint(k).name for k in range(model.njnt)]
    columns = {"time": time, f"ctrl/{model.actuator(0).name}": command}
    pl.DataFrame(columns | {f"qpos/{name}": q[:, k] for k, name in enumerate(joints)}).write_csv(log)
    return Path(log)


def wandering(time: np.ndarray, model: mujoco.MjModel, rng: np.random.Generator) -> np.ndarray:
    """Targets of position servos: sums of sines within the ranges of the joints [rad]."""
    middle, half = model.jnt_range.mean(axis=1), np.diff(model.jnt_range, axis=1)[:, 0] / 2
    waves = rng.uniform(0.1, 1.0, (4, model.nu))
    phase = 2 * np.pi * time[:, None, None] * waves + rng.uniform(0, 2 * np.pi, waves.shape)
    return middle + 0.6 * half * np.sin(phase).mean(axis=1) * np.minimum(time / 0.5, 1.0)[:, None]


def follow(model: mujoco.MjModel, time: np.ndarray, command: np.ndarray, delay: float = 0.0) -> np.ndarray:
    """Positions of the joints at the times of the commands, which are held and delayed [rad]."""
    data, q = mujoco.MjData(model), np.empty((len(time), model.nq))
    data.qpos[:] = command[0]
    for k, now in enumerate(time):
        while data.time < now - 1e-9:
            held = max(np.searchsorted(time, data.time - delay + 1e-9, side="right") - 1, 0)
            data.ctrl[:] = command[held]
            mujoco.mj_step(model, data)
        q[k] = data.qpos
    return q


if __name__ == "__main__":
    print("wrote", *write_desk_arm(sys.argv[1] if len(sys.argv) > 1 else "."))
