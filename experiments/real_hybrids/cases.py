"""Recorded robots: training and held-out runs, and free parameters of the analytic fits."""

import dataclasses
import json
from pathlib import Path

from experiments.real_robots.command import DFKI, OFFSETS, TRAINING, free_options
from experiments.recorded import folder

QUBE = (
    *("bodies/*.mass", "joints/*.damping", "joints/*.frictionloss", "joints/*.armature", "joints/*.stiffness"),
    *("joints/*.springref", "actuators/*.delay", "actuators/*.offset", "sensors/qpos/pendulum.bias"),
)
SERVO = (
    *("error_gain", "torque_constant", "resistance", "delay"),
    *("armature", "damping", "frictionloss"),
)
SERVO_START = {"kp": 400, "error_gain": 2e-3, "volts": 7.4, "resistance": 3, "torque_constant": 0.6, "max_duty": 1}
GAINS = (100, 400, 800)
"""Values of kp of the servo's firmware."""
STRIBECK = ("joints/*.stiction", "joints/*.stribeck_velocity")


@dataclasses.dataclass(frozen=True)
class Case:
    """A robot, its runs, and the options of its analytic fit."""

    name: str
    robot: Path
    logs: tuple[Path, ...]
    held_out: tuple[Path, ...]
    options: tuple[str, ...]
    """Options of `truesim identify`."""
    more: tuple[str, ...] = ()
    """Further physical parameters that could be free."""


def qube() -> Case:
    """The rotary pendulum: three chirps, tested on two others."""
    data = folder("qube")
    logs = tuple(sorted(data.glob("chirp*.csv")))
    return Case("Qube", data / "rig.xml", logs[:3], logs[3:], tuple(free_options(QUBE)), STRIBECK)


def dfki(design: str) -> Case:
    """The torque-driven arm."""
    data = folder("dfki_double_pendulum")
    logs = tuple(sorted(data.glob(f"{design}_*.csv")))
    more = ("actuators/*.delay", "joints/*.stiffness", "joints/*.springref", "joints/*.armature", "bodies/*.com[0]")
    options = (*free_options((*DFKI, OFFSETS)), "--window", "0.5")
    count = TRAINING[design]
    return Case(f"DFKI {design}", data / "rig_C.xml", logs[:count], logs[count:], options, more)


def servo(kp: int, out: Path) -> Case:
    """The hobby servo at two gains of its firmware, tested at the third; known values of runs are written to a file."""
    data = folder("xl330_servo")
    runs = json.loads((data / "runs.json").read_text(encoding="utf-8"))
    known = {name: {"actuators/servo.kp": float(run["kp"])} for name, run in runs.items()}
    columns = {
        "actuators/servo.volts": "column:supply_volts",
        "actuators/servo.gear[0]": "column:torque_enable",
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "runs.json").write_text(json.dumps({"*": columns, **known}), encoding="utf-8")
    paths = [f"{'actuators/servo' if k < 4 else 'joints/arm'}.{field}" for k, field in enumerate(SERVO)]
    options = [
        *free_options((*paths, "sensors/qpos/arm.bias")),
        "--tie",
        "sensors/qpos/arm.bias,-actuators/servo.offset",
    ]
    options += ["--law", "servo=duty_servo", "--per-log", str(out / "runs.json"), "--window", "2"]
    for name, value in SERVO_START.items():
        options += ["--set", f"actuators/servo.{name}={value:g}"]
    kept = {at: tuple(data / name for name in runs if (runs[name]["kp"] == kp) == at) for at in (False, True)}
    more = (*STRIBECK, "actuators/servo.kd", "actuators/servo.max_duty")
    return Case(f"XL330, kp {kp} held out", data / "rig.xml", kept[False], kept[True], tuple(options), more)


def chosen(words: list[str], out: Path) -> list[Case]:
    """The cases chosen by name, or all."""
    every = [("qube", qube), *((f"xl330-{kp}", lambda kp=kp: servo(kp, out / f"xl330-{kp}")) for kp in GAINS)]
    every += [("dfki-C1", lambda: dfki("C1")), ("dfki-C0", lambda: dfki("C0"))]
    return [make() for name, make in every if not words or any(name.startswith(word) for word in words)]
