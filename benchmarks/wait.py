"""Waiting times of a user: CPU time of whole processes, the median of five, on one core.

Commands with `cold` start with an empty kernel cache, all others with one that an earlier process has filled. The
case is `arm7_servo` of `experiments/sysid_cases`, with its peer, MuJoCo's identification toolbox.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.timing import Measured
from truesim.cli.exit_codes import EXIT_CODES
from truesim.core.errors import TruesimError
from truesim.files.logs import read_log, write_log

REPEATS = 5
"""Processes of each command, of which the median counts."""
PANDA = Path(sysconfig.get_paths()["purelib"], "cmeel.prefix/share/example-robot-data/robots/panda_description/urdf")
PEER = Path(__file__).parents[1] / "experiments" / "sysid_cases" / "peer.py"
ALL_INERTIAS = ("bodies/*.mass", "bodies/*.com", "bodies/*.inertia")
"""Ten inertial parameters of each of seven links."""
TRUESIM = ("-m", "truesim")


def data_folder() -> Path:
    """`$TRUESIM_DATA/sysid_cases`, or the data beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("TRUESIM_DATA", beside)) / "sysid_cases"
    if not folder.is_dir():
        raise TruesimError(f"The recorded cases are not at {folder}; set TRUESIM_DATA to the data folder")
    return folder


def identify(case: str, *more: str, free: Sequence[str] = (), log: str | None = None) -> list[str]:
    """Arguments of `truesim identify` for a recorded case, which writes the folder `fit`."""
    folder = data_folder()
    known = json.loads((folder / f"{case}.json").read_text(encoding="utf-8"))
    arguments = ["identify", str(folder / f"{case}.xml"), log or str(folder / f"{case}.csv"), "--out", "fit", "--force"]
    if free:
        return [*TRUESIM, *arguments, "--free", *free, *more]
    bounds = zip(known["parameters"], known["lower"], known["upper"], strict=True)
    free = known["parameters"]
    return [*TRUESIM, *arguments, "--free", *free, "--bounds", *(f"{p}={a}:{b}" for p, a, b in bounds), *more]


def boxpush() -> list[str]:
    """Arguments of a fit with rigid contact: mass and friction of a pushed box."""
    friction = "contacts/cp.friction[0]"
    tie = f"{friction},contacts/cp.friction[1]"
    return identify("boxpush", "--tie", tie, "--contact", "rigid", free=("bodies/box.mass",))


def half_log(folder: Path) -> list[str]:
    """Arguments of a fit to the first half of the log."""
    log = read_log(data_folder() / "arm7_servo.csv")
    half, path = log.rows(slice(None, len(log.time) // 2)), folder / "half.csv"
    write_log(path, {"time": half.time, **half.columns})
    return identify("arm7_servo", log=str(path))


def other_start(folder: Path) -> list[str]:
    """Arguments of a fit from other start values."""
    known = json.loads((data_folder() / "arm7_servo.json").read_text(encoding="utf-8"))
    start = zip(known["parameters"], known["start"], known["upper"], strict=True)
    values = (f"{path}={0.9 * value + 0.1 * high}" for path, value, high in start)
    return identify("arm7_servo", "--set", *values)


def all_inertias(folder: Path) -> list[str]:
    """Arguments of a fit of all inertial parameters, with damping and friction as they are known to be."""
    known = json.loads((data_folder() / "arm7_servo.json").read_text(encoding="utf-8"))
    others = [(p, x) for p, x in zip(known["parameters"], known["truth"], strict=True) if not p.startswith("bodies/")]
    return identify("arm7_servo", "--set", *(f"{path}={value}" for path, value in others), free=ALL_INERTIAS)


Arguments = Callable[[Path], Sequence[str]]
"""Makes the arguments of the interpreter; it may write files into the folder."""


def command(
    arguments: Arguments, before: Arguments | None = None, *, cold: bool = False, patience: float = 3.0
) -> Measured:
    """CPU time of a command in processes of their own.

    Args:
        arguments: Of the Python interpreter.
        before: Of a process that fills the cache and writes the files that the command needs; by default the same.
        cold: Whether the kernel cache is empty each time.
        patience: Below a second, a single process instead of five [s].
    """
    with tempfile.TemporaryDirectory(prefix="truesim-wait-") as name:
        folder = Path(name)
        for prepare in (before, None if cold else arguments):
            if prepare is not None:
                _cpu_seconds(prepare(folder), folder, "cache")
        words, repeats = arguments(folder), REPEATS if patience >= 1 else 1
        return Measured(
            statistics.median(_cpu_seconds(words, folder, f"cache{k}" if cold else "cache") for k in range(repeats))
        )


def _cpu_seconds(arguments: Sequence[str], folder: Path, cache: str) -> float:
    """User and system time of one process [s]."""
    environment = {**os.environ, "TRUESIM_CACHE": str(folder / cache)}
    for name in ("JAX_ENABLE_X64", "PYTHONDONTWRITEBYTECODE"):  # without byte code, every start compiles all modules
        environment.pop(name, None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in EXIT_CODES.values():  # a fit that is not identifiable has been waited for as well
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise TruesimError(f"exit code {done.returncode}: {lines[-1]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _fixed(*arguments: str) -> Arguments:
    return lambda folder: arguments


def _fit(folder: Path) -> Sequence[str]:
    return identify("arm7_servo")


def _measurement(arguments: Arguments, before: Arguments | None = None, cold: bool = False) -> Callable:
    return lambda patience: command(arguments, before, cold=cold, patience=patience)


_demo = _fixed(*TRUESIM, "demo", "--out", "demo")
MEASUREMENTS = {
    "help": _measurement(_fixed(*TRUESIM, "--help")),
    "import": _measurement(_fixed("-c", "import truesim")),
    "inspect": _measurement(_fixed(*TRUESIM, "inspect", str(PANDA / "panda.urdf"))),
    "identify cold": _measurement(_fit, cold=True),
    "identify": _measurement(_fit),
    "identify half log": _measurement(half_log, _fit),
    "identify other start": _measurement(other_start, _fit),
    "demo cold": _measurement(_demo, cold=True),
    "demo": _measurement(_demo),
    "inertias cold": _measurement(all_inertias, cold=True),
    "boxpush cold": _measurement(lambda folder: boxpush(), cold=True),
    "boxpush": _measurement(lambda folder: boxpush()),
    "posterior": _measurement(_fixed(*TRUESIM, "posterior", "fit", "--out", "posterior", "--force"), _fit),
    "report": _measurement(_fixed(*TRUESIM, "report", "fit"), _fit),
    "evaluate": _measurement(lambda folder: [*TRUESIM, "evaluate", "fit", str(data_folder() / "arm7_servo.csv")], _fit),
    "peer": _measurement(lambda folder: [str(PEER), str(data_folder()), "arm7_servo"]),
}
"""Commands by name."""
