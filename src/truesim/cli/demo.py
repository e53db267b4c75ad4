"""`truesim demo`: a robot file, recordings of a robot that does not move like it, a fit, and a report."""

import shutil
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from truesim.cli import demo_robot
from truesim.cli.identify import identify
from truesim.identify.folder import read_fit

FREE = ["bodies/forearm.mass", "bodies/hand.mass", "joints/*.damping", "joints/*.frictionloss"]
DELAYS = "actuators/*.delay"


def demo(out: Annotated[Path, typer.Option(help="Folder for everything.")] = Path("out/demo")) -> None:
    """Identify a built-in arm from recordings of a different one, and write a report."""
    console = Console(highlight=False, soft_wrap=True)
    out.mkdir(parents=True, exist_ok=True)
    robot = out / "arm.xml"
    with resources.as_file(resources.files("truesim") / "robots" / "arm.xml") as path:
        shutil.copyfile(path, robot)
    logs = [out / f"run{k}.csv" for k in range(3)]
    for seed, log in enumerate(logs):
        demo_robot.record(robot, log, seed)
    console.print(
        "The built-in arm was recorded in MuJoCo as the real robot: its hand carries a tool, its joints have friction, "
        f"and commands arrive {1000 * demo_robot.DELAY:g} ms late. The robot file knows none of it."
    )
    free = " ".join(f"'{pattern}'" for pattern in FREE)
    console.print(
        f"[dim]$ truesim identify {robot} {logs[0]} {logs[1]} --holdout {logs[2]} --free {free} --tie '{DELAYS}' "
        f"--out {out / 'fit'} --force[/]"
    )
    identify(robot, logs[:2], out / "fit", FREE, holdout=logs[2:], tie=[DELAYS], force=True)
    console.print(_found(out / "fit"))


def _found(folder: Path) -> str:
    """What was found, in a sentence."""
    document = read_fit(folder)
    values = {p["path"]: p["value"] for p in document["parameters"]}
    errors = document["errors"]
    before, after = (errors[part]["sensor/elbow"]["median"] for part in ("held_out_start", "held_out"))
    delay = 1000 * next(value for path, value in values.items() if path.endswith(".delay"))
    return (
        f"Found: the hand weighs {values['bodies/hand.mass']:.2f} kg (really {demo_robot.MASS['hand']:.2f}; "
        f"the file says 0.70), and commands take {delay:.1f} ms (really {1000 * demo_robot.DELAY:.1f}). "
        f"On a run that was not fitted to, the elbow is now predicted to {1000 * after:.1f} mrad "
        f"instead of {1000 * before:.1f}."
    )
