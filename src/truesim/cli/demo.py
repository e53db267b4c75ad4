"""`truesim demo`: a robot file, recordings of a robot that differs from it, a fit, and a report."""

import shlex
import shutil
import sys
import webbrowser
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from truesim.cli import lazy
from truesim.cli.console import results

DEMO_FREE = ["bodies/forearm.mass", "bodies/hand.mass", "joints/*.damping", "joints/*.frictionloss"]
DEMO_TIE = "actuators/*.delay"


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for all files.", metavar="DIR")] = Path("out/demo"),
    show: Annotated[bool, typer.Option("--open/--no-open", help="Open the report if there is a terminal.")] = True,
) -> None:
    """Identify a built-in arm from recordings of a different one, and write a report."""
    console = results()
    out.mkdir(parents=True, exist_ok=True)
    robot = out / "arm.xml"
    with resources.as_file(resources.files("truesim") / "files" / "robots" / "arm.xml") as path:
        shutil.copyfile(path, robot)
    logs = [out / f"run{k}.csv" for k in range(3)]
    for seed, log in enumerate(logs):
        lazy.demo_robot.record(robot, log, seed)
    console.print(
        "The built-in arm was recorded in MuJoCo as the real robot: its hand carries a tool, its joints have friction, "
        f"and commands are delayed by {1000 * lazy.demo_robot.TRUE_DELAY:g} ms. The robot file has none of these."
    )
    files = [str(robot), *map(str, logs[:2]), "--holdout", str(logs[2]), "--out", str(out / "fit"), "--force"]
    words = [*files, "--free", *DEMO_FREE, "--tie", DEMO_TIE]
    console.print(f"$ truesim identify {shlex.join(words)}", style="dim", markup=False)
    lazy.verbs.load_verb("identify").main(words, prog_name="truesim identify", standalone_mode=False)
    console.print(_summary(out / "fit"))
    picture = out / "before-after.png"
    lazy.before_after.write_before_after(out / "fit", picture)
    console.print(
        f"Picture: {picture} (gray: the real robot; orange: simulated before the fit; blue: after it).", markup=False
    )
    if show and sys.stdout.isatty():
        webbrowser.open((out / "fit" / "report.html").resolve().as_uri())


def _summary(folder: Path) -> str:
    """Identified and true values in a sentence."""
    document, truth = lazy.fit_folder.read_document(folder), lazy.demo_robot
    values = {p["path"]: p["value"] for p in document["parameters"]}
    errors = document["errors"]
    before, after = (errors[part]["sensor/elbow"]["median"] for part in ("held_out_start", "held_out"))
    delay = 1000 * next(value for path, value in values.items() if path.endswith(".delay"))
    return (
        f"Found: the hand weighs {values['bodies/hand.mass']:.2f} kg (true value {truth.TRUE_MASSES['hand']:.2f}, "
        f"robot file 0.70), and commands are delayed by {delay:.1f} ms (true value {1000 * truth.TRUE_DELAY:.1f}). "
        f"On the held-out run, the median error of the elbow is now {1000 * after:.1f} mrad "
        f"instead of {1000 * before:.1f}."
    )
