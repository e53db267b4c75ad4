"""The request of an identification: files, free parameters and options, enough to repeat it."""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

from truesim.files.logs.lerobot import select_episodes
from truesim.identification.options import IdentifyOptions
from truesim.physics.blueprint import Trained
from truesim.physics.blueprint.file import description_of
from truesim.physics.contact.choose import NONE

LIMITS_OF_SEARCH = ("workers", "seconds", "solves", "cost")
"""Options that decide how many solves of a search are done, but not which."""


RECORDED = (".parquet", ".json", ".mcap", ".db3", ".yaml")
"""Endings of the files of a data set or bag that hold what is fitted; videos do not."""


@dataclasses.dataclass(frozen=True)
class Request:
    """Files, free parameters and options of an identification."""

    robot: str
    """Robot file."""
    logs: tuple[str, ...]
    """Log files."""
    free: tuple[str, ...]
    holdout: tuple[str, ...] = ()
    validate: tuple[str, ...] = ()
    options: IdentifyOptions = dataclasses.field(default_factory=IdentifyOptions)

    def flags(self) -> dict[str, Any]:
        """The options by their names on the command line; None where a flag would not be given."""
        problem, solve, search = self.options.problem, self.options.solve, self.options.search
        blueprint = problem.blueprint.blueprint if isinstance(problem.blueprint, Trained) else problem.blueprint
        return {
            "window": solve.window,
            "tie": [t if isinstance(t, str) else ",".join(t) for t in problem.ties] or None,
            "bounds": [f"{path}={low}:{high}" for path, (low, high) in problem.bounds.items()] or None,
            "prior": [f"{path}={mean}:{std}" for path, (mean, std) in problem.priors.items()] or None,
            "channel": list(problem.channels) or None,
            "law": [f"{name}={model}" for name, model in self.options.actuator_models.items()] or None,
            "servo": [f"{at}:{k}={v}" for at, gains in self.options.servos.items() for k, v in gains.items()] or None,
            "gear": [f"{at}:{k}={v}" for at, values in self.options.gears.items() for k, v in values.items()] or None,
            "blueprint": None if blueprint is None else description_of(blueprint),
            "validate": list(self.validate) or None,
            "horizon": list(solve.horizons) or None,
            "contact": None if problem.contact == NONE else problem.contact,
            "barrier": problem.smoothing,
            "set": [f"{path}={value}" for path, value in self.options.values.items()] or None,
            "robust": solve.robust,
            "seed": solve.seed,
            "optimizer": solve.optimizer,
            "search": None if search is None else search.method,
            "engine": None if search is None else search.engine,
            "workers": None if search is None else search.workers,
            "seconds": None if search is None else search.seconds,
            "solves": None if search is None else search.solves,
            "cost": None if search is None else search.goal,
            "per_log": dict(problem.per_log) or None,
            "preset": self.options.preset,
            "mapping": self.options.mapping,
            "floating_base": self.options.floating_base or None,
        }

    def fingerprint(self) -> str:
        """Hash that is equal for requests on equal files of which one continues the other."""
        flags = {name: value for name, value in self.flags().items() if name not in LIMITS_OF_SEARCH}
        said = json.dumps([self.free, flags | self._thresholds()], sort_keys=True, default=str)
        mapping = self.options.mapping
        files = [digest(Path(f)) for f in (self.robot, *self.logs, *self.holdout, *([mapping] if mapping else []))]
        return hashlib.sha256("\n".join([said, *files]).encode()).hexdigest()

    def _thresholds(self) -> dict[str, Any]:
        """Options that no flag in `flags` holds, where they differ from their defaults."""
        options, usual = self.options.document(), IdentifyOptions().document()
        names = {"problem": ("prior_width",), "solve": None, "diagnose": None}
        told = {"window", "horizons", "robust", "seed", "optimizer"}
        return {
            f"{group}.{name}": value
            for group, only in names.items()
            for name, value in options[group].items()
            if (only is None or name in only) and name not in told and value != usual[group][name]
        }


def digest(path: Path) -> str:
    """SHA-256 of a file, or of the recordings in a folder; empty if it does not exist."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    path, episodes = select_episodes(path)
    files = sorted(file for file in path.rglob("*") if file.suffix in RECORDED) if path.is_dir() else []
    if not files:
        return ""
    said = [f"{file.relative_to(path).as_posix()} {digest(file)}" for file in files] + [str(episodes or "")]
    return hashlib.sha256("\n".join(said).encode()).hexdigest()
