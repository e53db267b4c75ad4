"""A session of the studio: robot, logs, chosen parameters and fit, without any page.

Every step is one call of the library; the page shows its result, and the command line that does the same.
"""

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from truesim.core.errors import TruesimError
from truesim.files.logs import Log, matching
from truesim.files.logs.guessed import GuessedMapping, guess_columns
from truesim.files.logs.read_many import log_files
from truesim.files.robots import load
from truesim.identification.diagnose.evaluation import predictions
from truesim.identification.diagnose.observability import excitation, grade
from truesim.identification.diagnose.status import Status
from truesim.identification.fit import Fit
from truesim.identification.fit_folder import signals_of
from truesim.identification.options import IdentifyOptions
from truesim.identification.pipeline import identify
from truesim.identification.problem.fitted import coordinates_of
from truesim.identification.reading import Observer, Silent, read_logs
from truesim.physics.contact.choose import NONE
from truesim.physics.model import paths
from truesim.physics.model.model import Model
from truesim.physics.parameters import free as free_parameters
from truesim.report.sections.provenance import wrapped_command
from truesim.scenes.motions import BodyPoses, poses_of, recorded_motion, simulated_motion
from truesim.studio.words import plain

PANEL_COMMAND_WIDTH = 48
"""Characters of a line of a command."""
MAPPING_FILE = "mapping.toml"
"""File that a guessed mapping is written to, beside the folder of the fit."""
OFFERED = (
    ("joints/*.damping", "viscous friction"),
    ("joints/*.frictionloss", "Coulomb friction"),
    ("joints/*.armature", "inertia of the rotors"),
    ("joints/*.stiffness", "springs"),
    ("actuators/*.kp", "position gains of the servos"),
    ("actuators/*.kv", "velocity gains of the servos"),
    ("actuators/*.gain", "gains of the motors"),
    ("actuators/*.delay", "delays of the commands"),
    ("bodies/*.mass", "mass of every body"),
    ("bodies/*.com", "center of mass of every body"),
)
"""Patterns of parameters that the studio offers, with their meaning."""
HINT_NAMES = {"mass": "m", "damping": "damping", "frictionloss": "frictionloss", "armature": "armature"}
"""Names of fields in the excitation of logs."""
GRADE_WORDS = {"clear": "identifiable", "faint": "weak", "in sums": "in combinations", "no": "not visible"}


@dataclasses.dataclass
class Session:
    """State of the studio, from robot to fit."""

    robot: Path | None = None
    model: Model | None = None
    floating_base: bool = False
    """True if the root of a URDF moves freely."""
    log_files: tuple[Path, ...] = ()
    """Files of the logs; one per episode of a data set."""
    logs: tuple[Log, ...] = ()
    """Prepared logs."""
    mapping: Path | None = None
    """File that renames and scales the columns of the logs."""
    free: tuple[str, ...] = ()
    ties: tuple[str, ...] = ()
    """Patterns of parameters that share one value."""
    preset: str | None = None
    """Kind of robot that decides what is free, beside the chosen parameters."""
    holdout: int = 0
    """Number of logs at the end of the list that are predicted, not fitted to."""
    contact: str = NONE
    """Contact model of the fit."""
    fit: Fit | None = None
    is_checked: bool = False
    """True if the fit can be run."""
    folder: Path | None = None
    """Folder of the last fit."""
    interrupted: dict[str, Any] | None = None
    """Request of a fit that was interrupted."""

    def load_robot(self, path: Path, floating_base: bool = False) -> Model:
        """Load a robot file; logs and fit of another robot are forgotten."""
        model = load(path, floating_base=floating_base)
        self.robot, self.model, self.floating_base = path, model, floating_base
        self.log_files, self.logs, self.mapping, self.fit, self.is_checked = (), (), None, None, False
        return model

    def load_logs(
        self, files: Sequence[Path], mapping: Path | None = None, observer: Observer | None = None
    ) -> tuple[Log, ...]:
        """Read and prepare logs of the robot.

        Args:
            files: Files, folders of files, or data sets with several episodes.
            mapping: File that renames and scales their columns.
            observer: Receives anomalies.
        """
        model = self._robot()
        if not files:
            raise TruesimError("Name a log file: CSV, Parquet, NPZ, MCAP, a ROS bag, or a LeRobot data set.")
        several = [path for file in files for path in log_files(file)]
        options = IdentifyOptions(mapping=None if mapping is None else str(mapping))
        logs = tuple(read_logs(model, several, options, observer or Silent()))
        for log in logs:
            matching(log, model).check(log.name)
        self.log_files = tuple(Path(log.source or log.name).with_name(log.name) for log in logs)
        self.logs, self.mapping, self.fit, self.is_checked = logs, mapping, None, False
        return logs

    def guess(self, files: Sequence[Path], calibration: Path | None = None) -> GuessedMapping:
        """Guess which columns of the first log are which signals of the robot.

        Args:
            files: Logs with the same columns.
            calibration: LeRobot's calibration file, if positions are in percent.
        """
        if not files:
            raise TruesimError("Name a log file first.")
        return guess_columns(self._robot(), log_files(files[0])[0], calibration)

    def offered(self) -> list[tuple[str, str]]:
        """Patterns of parameters that the robot has, with their meaning."""
        model = self._robot()
        servos = {f"actuators/*.{p.field}" for p in paths.servo_gains(model)}
        fields = {f"{p.group}/*.{p.field}" for p in paths.paths(model)} | servos
        hidden = {"actuators/*.gain"} if servos else set()
        return [(pattern, words) for pattern, words in OFFERED if pattern in fields - hidden]

    def hints(self) -> dict[str, str]:
        """Visibility of the offered parameters in the logs, in words; patterns that were not measured are left out."""
        found = excitation(list(self.logs), self._robot())
        hints = {}
        for pattern, _ in self.offered():
            group, field = pattern.split("/*.")
            own = [
                n for n in found.alone if n.endswith(f".{HINT_NAMES.get(field, '?')}") and group in ("bodies", "joints")
            ]
            grades = [grade(found.alone[name], found.together[name]) for name in own]
            counts = {word: grades.count(key) for key, word in GRADE_WORDS.items() if key in grades}
            if counts:
                hints[pattern] = ", ".join(f"{count} {word}" for word, count in counts.items())
        return hints

    def check(self) -> list[str]:
        """Sentences about what will be fitted; raises an error if nothing can be."""
        model = self._robot()
        if not self.logs:
            raise TruesimError("Load a log first.")
        if self.holdout >= len(self.logs):
            raise TruesimError(f"{self.holdout} of {len(self.logs)} logs are held out: at least one must be fitted to.")
        if not self.free and not self.ties and self.preset is None:
            raise TruesimError("Choose at least one parameter, or a preset.")
        numbers = free_parameters(model, self.free, self.ties).size if self.free or self.ties else 0
        samples = sum(len(log.time) for log in self.logs)
        fitted = len(self.logs) - self.holdout
        words = "log is" if fitted == 1 else "logs are"
        chosen = [f"`{pattern}`" for pattern in self.free]
        chosen += [f"`{pattern}` with one common value" for pattern in self.ties]
        chosen += [f"the preset *{self.preset}*"] if self.preset is not None else []
        self.is_checked = True
        return [
            f"{numbers} {'number is' if numbers == 1 else 'numbers are'} free: {', '.join(chosen)}."
            if numbers
            else f"Free: {', '.join(chosen)}.",
            f"{fitted} {words} fitted, {self.holdout} held out; {samples} samples in all.",
            *(plain(str(finding)) for log in self.logs for finding in log.findings if finding.severity == "warning"),
        ]

    def run(self, out: Path | None, observer: Observer) -> Fit:
        """Identify the chosen parameters; a fit that was interrupted continues if nothing was changed.

        Args:
            out: Folder for the fit; a temporary one by default.
            observer: Receives the progress; it may raise `KeyboardInterrupt` to end the fit with the best values.
        """
        assert self.is_checked, "the check has passed"
        request = self._request(self.fit_folder(out))
        again = request == self.interrupted
        self.interrupted = None
        with jax.enable_x64(True):
            self.fit = identify(**request, force=not again, observer=observer)
            self.fit.report()
        if self.fit.status == Status.INTERRUPTED:
            self.interrupted = request
        return self.fit

    def fit_folder(self, out: Path | None) -> Path:
        """Folder of the fit: the given one, else that of the last fit, else a temporary one."""
        self.folder = out or self.folder or Path(tempfile.mkdtemp(prefix="truesim-")) / "fit"
        return self.folder

    def _request(self, folder: Path) -> dict[str, Any]:
        """Arguments of the identification."""
        split = len(self.log_files) - self.holdout
        return {
            "robot": self.robot,
            "logs": self.log_files[:split],
            "free": self.free,
            "ties": self.ties,
            "preset": self.preset,
            "holdout": self.log_files[split:],
            "mapping": self.mapping,
            "contact": self.contact,
            "floating_base": self.floating_base,
            "out": folder,
        }

    def command(self, out: Path | None = None) -> str:
        """The command that makes the same fit, one option a line."""
        split = len(self.log_files) - self.holdout
        words = ["truesim", "identify", str(self.robot or "ROBOT"), *map(str, self.log_files[:split] or ["LOG"])]
        words += ["--holdout", *map(str, self.log_files[split:])] if self.holdout else []
        words += ["--mapping", str(self.mapping)] if self.mapping is not None else []
        words += ["--floating-base"] if self.floating_base else []
        words += ["--contact", self.contact] if self.contact != NONE else []
        words += ["--preset", self.preset] if self.preset is not None else []
        words += ["--free", *self.free] if self.free else []
        words += ["--tie", *self.ties] if self.ties else []
        return wrapped_command([*words, "--out", str(out or "fit")], PANEL_COMMAND_WIDTH)

    def _robot(self) -> Model:
        if self.model is None:
            raise TruesimError("Load a robot file first: MJCF or URDF.")
        return self.model


def resimulate(fit: Fit, key: str, values: dict[str, float]) -> tuple[BodyPoses, dict[str, np.ndarray]]:
    """Poses and signals of one log, simulated with other values.

    Args:
        fit: The fit.
        key: Log, as in the signals of the fit: `train/run0.csv`.
        values: Values by path [SI units]; the estimates for all others.
    """
    part, _, name = key.partition("/")
    problem = fit.problem if part == "train" or fit.held_out is None else fit.held_out
    logs = fit.logs if part == "train" else fit.held_out_logs
    with jax.enable_x64(True):
        theta = coordinates_of(problem, {**fit.values, **values})
        found = [p for p in predictions(problem, theta) if problem.recordings[p.log].name == name]
        signals = {**signals_of(problem, part, found, found), "rows": np.array(problem.rows)}
    log = next(log for log in logs if log.name == name)
    moved = simulated_motion(fit.model, recorded_motion(fit.model, log), signals, key, "fitted")
    return poses_of(fit.model, moved.q), signals
