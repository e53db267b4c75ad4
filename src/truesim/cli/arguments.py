"""Arguments and options that several verbs share."""

from pathlib import Path
from typing import Annotated

import typer

from truesim.cli import lazy
from truesim.core.errors import FileError
from truesim.core.missing import missing_file

LOG_LIST = "LOG…"
"""Placeholder of arguments that take several logs; marks list options whose values are files."""


def existing_robot(path: Path) -> Path:
    """A robot file or folder that exists; an error with the nearest match if it does not."""
    if not path.exists():
        raise missing_file("robot file", path)
    return path


def _existing_logs(paths: list[Path] | None) -> list[Path] | None:
    for path in paths or ():
        if not path.exists() and not lazy.logs.select_episodes(path)[0].exists():
            raise missing_file("log file", path)
    return paths


def _existing_fit(path: Path | None) -> Path | None:
    if path is None or path.is_dir():
        return path
    advice = "give the folder that `truesim identify` wrote with --out"
    if not path.exists():
        raise missing_file("folder", path, advice)
    meant = f"; did you mean {path.parent}?" if path.name == "fit.json" else "."
    raise FileError(f"{path} is a file: {advice}{meant}")


def existing_fits(paths: list[Path]) -> list[Path]:
    """Folders of fits that exist; the first that does not is an error."""
    for path in paths:
        _existing_fit(path)
    return paths


def _log_option(name: str, text: str) -> object:
    return typer.Option(name, help=text, metavar=LOG_LIST, show_default=False, callback=_existing_logs)


_LOGS = typer.Argument(
    help="Logs of the robot: CSV, Parquet, NPZ, MCAP, ROS bags or LeRobot data sets.",
    metavar=LOG_LIST,
    show_default=False,
    callback=_existing_logs,
)
Robot = Annotated[
    Path,
    typer.Argument(help="Robot file, MJCF or URDF.", show_default=False, metavar="ROBOT", callback=existing_robot),
]
RobotOrFit = Annotated[
    Path,
    typer.Argument(
        help="Robot file (MJCF or URDF), or folder of a fit.",
        show_default=False,
        metavar="ROBOT_OR_FIT",
        callback=existing_robot,
    ),
]
FitFolder = Annotated[
    Path,
    typer.Argument(
        help="Folder that `truesim identify` wrote.", metavar="FIT", show_default=False, callback=_existing_fit
    ),
]
EarlierFit = Annotated[
    Path | None,
    typer.Option(
        "--fit",
        help="Folder of an earlier fit, whose values, intervals and noise are used.",
        metavar="DIR",
        show_default=False,
        callback=_existing_fit,
    ),
]
Logs = Annotated[list[Path], _LOGS]
LogsIfAny = Annotated[list[Path] | None, _LOGS]
Holdout = Annotated[list[Path] | None, _log_option("--holdout", "Logs to predict, not to fit to.")]
Validate = Annotated[
    list[Path] | None,
    _log_option("--validate", "Logs for early stopping of the training of networks; not fitted to."),
]
PerLogFile = Annotated[
    Path | None,
    typer.Option(
        "--per-log",
        help='JSON file of values that differ between logs: {"run.csv": {"PATH": value, "free" or "column:NAME"}}.',
        metavar="FILE",
        show_default=False,
    ),
]
Mapping = Annotated[
    Path | None,
    typer.Option(
        "--mapping",
        help="TOML or JSON file that renames and scales the columns of the logs.",
        metavar="FILE",
        show_default=False,
    ),
]
Channel = Annotated[
    list[str] | None,
    typer.Option(
        "--channel",
        help="Measured channels to compare, such as 'qpos/*'; by default all that the logs and the robot share.",
        metavar="PATTERN…",
        show_default=False,
    ),
]
FloatingBase = Annotated[
    bool,
    typer.Option("--floating-base", help="Give the root link of a URDF a free joint (legged and flying robots)."),
]
Contact = Annotated[
    str | None,
    typer.Option(
        "--contact",
        help="Contact model: file (MuJoCo's, with the file's parameters), rigid, compliant, implicit (compliant at the "
        "end of each step) or none.",
        show_default=False,
        metavar="MODEL",
    ),
]
Keyframe = Annotated[
    str | None,
    typer.Option(
        "--keyframe",
        help="Keyframe of the file to start from, with its controls; by default the first one, 'none' for none.",
        metavar="NAME",
        show_default=False,
    ),
]
Smoothing = Annotated[
    float | None,
    typer.Option(
        "--smoothing",
        help="Smoothing of rigid contact: 1e-4 to 1e-2 gives smoother gradients at impacts; by default the least.",
        show_default=False,
    ),
]
Gear = Annotated[
    list[str] | None,
    typer.Option(
        "--gear",
        help="Joint whose gear gives or has play, for MJCF: 'elbow:stiffness=9000', and damping, backlash.",
        metavar="JOINT:stiffness=VALUE…",
        show_default=False,
    ),
]
Servo = Annotated[
    list[str] | None,
    typer.Option(
        "--servo",
        help="Motors that are position or velocity servos, with their gains: 'joints/*:kp=50,kv=2'.",
        metavar="PATTERN:kp=VALUE…",
        show_default=False,
    ),
]
FREE_OPTION = typer.Option(
    "--free",
    help="Parameters to identify, such as 'bodies/*.mass' 'joints/elbow.*'; `truesim inspect ROBOT` lists all.",
    metavar="PATTERN…",
    show_default=False,
)
Free = Annotated[list[str], FREE_OPTION]
Tie = Annotated[
    list[str] | None,
    typer.Option(
        "--tie",
        help="Parameters that share one value: a pattern such as 'joints/*.damping', or a list 'A,B,-C'.",
        metavar="PATTERN…",
        show_default=False,
    ),
]
Bounds = Annotated[
    list[str] | None,
    typer.Option("--bounds", help="Bounds in SI units.", metavar="PATTERN=LOW:HIGH…", show_default=False),
]
Prior = Annotated[
    list[str] | None,
    typer.Option("--prior", help="Gaussian priors in SI units.", metavar="PATTERN=MEAN:STD…", show_default=False),
]
Seed = Annotated[
    int,
    typer.Option("--seed", help="Seed of all random numbers: the same command with the same seed repeats its result."),
]
Threads = Annotated[
    int,
    typer.Option(
        "--threads",
        min=1,
        metavar="N",
        help="Threads over which native kernels split a batch.",
    ),
]
OutputFolder = Annotated[Path, typer.Option("--out", help="Folder for the result.", metavar="DIR", show_default=False)]
ReplaceFolder = Annotated[bool, typer.Option("--force", help="Write into a folder that is not empty.")]
ReplaceFile = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
