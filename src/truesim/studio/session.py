"""A session of the studio: robot, logs, chosen parameters and fit, without any page.

Every step is one call of the library; the page shows its result, and the command line that does the same.
"""

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from truesim.core.errors import TruesimError
from truesim.files.logs import Log, matching
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

PANEL_COMMAND_WIDTH = 48
"""Characters of a line of a command."""
OFFERED = (
    ("bodies/*.mass", "mass of every body"),
    ("bodies/*.com", "center of mass of every body"),
    ("joints/*.damping", "viscous friction"),
    ("joints/*.frictionloss", "Coulomb friction"),
    ("joints/*.armature", "inertia of the rotors"),
    ("joints/*.stiffness", "springs"),
    ("actuators/*.gain", "gains of the actuators"),
    ("actuators/*.delay", "delays of the commands"),
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
    log_files: tuple[Path, ...] = ()
    logs: tuple[Log, ...] = ()
    """Prepared logs."""
    free: tuple[str, ...] = ()
    holdout: int = 0
    """Number of logs at the end of the list that are predicted, not fitted to."""
    contact: str = NONE
    """Contact model of the fit."""
    fit: Fit | None = None
    is_checked: bool = False
    """True if the fit can be run."""
    folder: Path | None = None
    """Folder of the last fit."""
    interrupted: tuple | None = None
    """Folder, files and choices of a fit that was interrupted."""

    def load_robot(self, path: Path) -> Model:
        """Load a robot file; logs and fit of another robot are forgotten."""
        model = load(path)
        self.robot, self.model = path, model
        self.log_files, self.logs, self.fit, self.is_checked = (), (), None, False
        return model

    def load_logs(self, files: Sequence[Path], observer: Observer | None = None) -> tuple[Log, ...]:
        """Read and prepare logs of the robot."""
        model = self._robot()
        if not files:
            raise TruesimError("Name a log file: CSV, Parquet, NPZ, MCAP or ROS bag.")
        logs = tuple(read_logs(model, list(files), IdentifyOptions(), observer or Silent()))
        for log in logs:
            matching(log, model).check(log.name)
        self.log_files, self.logs, self.fit, self.is_checked = tuple(files), logs, None, False
        return logs

    def offered(self) -> list[tuple[str, str]]:
        """Patterns of parameters that the robot has, with their meaning."""
        fields = {f"{p.group}/*.{p.field}" for p in paths.paths(self._robot())}
        return [(pattern, words) for pattern, words in OFFERED if pattern in fields]

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
        if not self.free:
            raise TruesimError("Choose at least one parameter.")
        numbers = free_parameters(model, self.free).size
        samples = sum(len(log.time) for log in self.logs)
        self.is_checked = True
        fitted = len(self.logs) - self.holdout
        words = "log is" if fitted == 1 else "logs are"
        return [
            f"{numbers} numbers are free: {', '.join(f'`{pattern}`' for pattern in self.free)}.",
            f"{fitted} {words} fitted, {self.holdout} held out; {samples} samples in all.",
            *(str(finding) for log in self.logs for finding in log.findings if finding.severity == "warning"),
        ]

    def run(self, out: Path | None, observer: Observer) -> Fit:
        """Identify the chosen parameters; a fit that was interrupted continues if nothing was changed.

        Args:
            out: Folder for the fit; a temporary one by default.
            observer: Receives the progress; it may raise `KeyboardInterrupt` to end the fit with the best values.
        """
        assert self.robot is not None, "a robot was loaded"
        assert self.is_checked, "the check has passed"
        split = len(self.log_files) - self.holdout
        folder = out or self.folder or Path(tempfile.mkdtemp(prefix="truesim-")) / "fit"
        request = (folder, self.robot, self.log_files, self.free, self.holdout, self.contact)
        again = request == self.interrupted
        self.folder, self.interrupted = folder, None
        with jax.enable_x64(True):
            self.fit = identify(
                self.robot,
                self.log_files[:split],
                self.free,
                holdout=self.log_files[split:],
                contact=self.contact,
                out=folder,
                force=not again,
                observer=observer,
            )
            self.fit.report()
        if self.fit.status == Status.INTERRUPTED:
            self.interrupted = request
        return self.fit

    def command(self, out: Path | None = None) -> str:
        """The command that makes the same fit, one option a line."""
        split = len(self.log_files) - self.holdout
        words = ["truesim", "identify", str(self.robot or "ROBOT"), *map(str, self.log_files[:split] or ["LOG"])]
        words += ["--holdout", *map(str, self.log_files[split:])] if self.holdout else []
        words += ["--contact", self.contact] if self.contact != NONE else []
        words += ["--free", *(self.free or ("PATTERN",)), "--out", str(out or "fit")]
        return wrapped_command(words, PANEL_COMMAND_WIDTH)

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
