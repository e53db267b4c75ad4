"""Writers of the five forms, and the commands that a user types for each."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from mcap.writer import Writer

from experiments.five_forms.recording import FILE, FREE, JOINTS, Recording, mjcf, urdf

EPOCH = 1_700_000_000
"""Start of the clocks that count from 1970 [s]."""
FRAMES = 50
"""Frames a second of the LeRobot data set."""


def write_csv(path: Path, run: Recording) -> None:
    """Milliseconds and degrees, with names of their own."""
    columns = {"t_ms": 1e3 * run.time}
    for k, name in enumerate(JOINTS):
        columns |= {f"{name}_deg": np.degrees(run.position[:, k]), f"{name}_cmd_deg": np.degrees(run.command[:, k])}
    pl.DataFrame(columns).write_csv(path)


def write_lerobot(path: Path, run: Recording) -> None:
    """A data set of format 3 with one episode, in degrees; stamps are frame numbers over the frame rate."""
    names = [f"{name}.pos" for name in JOINTS]
    feature = {"dtype": "float32", "shape": [len(JOINTS)], "names": names}
    info = {"codebase_version": "v3.0", "fps": FRAMES, "features": {"observation.state": feature, "action": feature}}
    (path / "meta").mkdir(parents=True)
    (path / "meta" / "info.json").write_text(json.dumps(info))
    count = np.arange(len(run.time))
    frames = pl.DataFrame(
        {
            "observation.state": np.degrees(run.position).astype(np.float32).tolist(),
            "action": np.degrees(run.command).astype(np.float32).tolist(),
            "timestamp": (count / FRAMES).astype(np.float32),
            "frame_index": count,
            "episode_index": np.zeros(len(count), int),
            "task_index": np.zeros(len(count), int),
        }
    )
    (path / "data" / "chunk-000").mkdir(parents=True)
    frames.write_parquet(path / "data" / "chunk-000" / "file-000.parquet")


def write_mcap(path: Path, run: Recording) -> None:
    """Joint states and commands as two topics, with stamps of their own that count from 1970."""
    with path.open("wb") as file:
        out = Writer(file)
        out.start()
        schema = out.register_schema("sensor_msgs/JointState", "jsonschema", b"{}")
        channels = {topic: out.register_channel(topic, "json", schema) for topic in ("/joint_states", "/commands")}
        for k, stamp in enumerate(run.time):
            for topic, values, late in (("/joint_states", run.position[k], 0.0), ("/commands", run.command[k], 2e-4)):
                at = round((EPOCH + stamp + late) * 1e9)
                content = {
                    "header": {"stamp": {"sec": at // 10**9, "nanosec": at % 10**9}},
                    "name": list(JOINTS),
                    "position": values.tolist(),
                }
                out.add_message(channels[topic], at, json.dumps(content).encode(), at)
        out.finish()


def write_npz(path: Path, run: Recording) -> None:
    """Radians, with matrices of all joints by the names of the convention."""
    columns = {f"qpos/{name}": run.position[:, k] for k, name in enumerate(JOINTS)}
    columns |= {f"ctrl/{name}": run.command[:, k] for k, name in enumerate(JOINTS)}
    np.savez(path, time=EPOCH + run.time, **columns)


def write_plain(path: Path, run: Recording) -> None:
    """Radians and seconds, with the names of the convention."""
    columns = {f"qpos/{name}": run.position[:, k] for k, name in enumerate(JOINTS)}
    columns |= {f"ctrl/{name}": run.command[:, k] for k, name in enumerate(JOINTS)}
    pl.DataFrame({"time": run.time, **columns}).write_csv(path)


INSPECT = ("inspect", "{robot}", "{train}", "--write-mapping", "mine.toml")
IDENTIFY = ("identify", "{robot}", "{train}", "--holdout", "{test}", "--free", *FREE, "--out", "fit")
MAPPED = ("--mapping", "mine.toml")
SERVO = ("--servo", f"joints/*:kp={FILE['kp']:g},kv={FILE['kv']:g}")

RATES = {"LeRobot v3 folder": FRAMES}
"""Samples a second, of measurements and of commands, where they are not 100."""
Form = tuple[Callable[[Path, Recording], None], str, str, tuple[tuple[str, ...], ...]]
"""Writer, ending of the file, robot file, and the commands."""
FORMS: dict[str, Form] = {
    "CSV in ms and degrees": (write_csv, ".csv", "arm.xml", (INSPECT, (*IDENTIFY, *MAPPED))),
    "LeRobot v3 folder": (write_lerobot, "", "arm.xml", (INSPECT, (*IDENTIFY, *MAPPED))),
    "MCAP with two topics": (write_mcap, ".mcap", "arm.xml", (INSPECT, (*IDENTIFY, *MAPPED))),
    "NPZ": (write_npz, ".npz", "arm.xml", (IDENTIFY,)),
    "URDF with positions": (write_plain, ".csv", "arm.urdf", ((*IDENTIFY, *SERVO),)),
}
ROBOTS = {"arm.xml": mjcf(FILE), "arm.urdf": urdf()}
