"""Robots that verbs work on: a robot file, or a fit with its options and networks."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from truesim.core.errors import FileError
from truesim.files.logs import Log
from truesim.files.robots import load
from truesim.identification.fit import Fit
from truesim.identification.problem.options import ProblemOptions
from truesim.identification.problem.per_log import read_per_log
from truesim.physics.model.model import Model


@dataclasses.dataclass(frozen=True)
class Subject:
    """A robot, and the fit that it comes from, if any."""

    model: Model
    fit: Fit | None = None

    @property
    def mapping(self) -> str | None:
        """Mapping file of the fit's logs."""
        return None if self.fit is None else self.fit.request.options.mapping

    @property
    def free(self) -> tuple[str, ...]:
        """Free parameters of the fit."""
        return () if self.fit is None else self.fit.request.free

    def options_for(
        self,
        logs: Sequence[Log],
        per_log: Path | None = None,
        channels: Sequence[str] | None = None,
        contact: str | None = None,
        smoothing: float | None = None,
    ) -> ProblemOptions:
        """Options of a problem with other logs: those that are given, else those of the fit.

        Args:
            logs: The logs.
            per_log: File of values that differ between logs.
            channels: Patterns of channels to compare.
            contact: Name of the contact model.
            smoothing: Smoothing of rigid contact.
        """
        options = ProblemOptions() if self.fit is None else self.fit.options_for(logs)
        changes: dict[str, Any] = {}
        if per_log is not None:
            changes["per_log"] = read_per_log(per_log)
        if channels:
            changes["channels"] = tuple(channels)
        if contact is not None or smoothing is not None:
            changes |= {"contact": contact or options.contact, "smoothing": smoothing}
        return dataclasses.replace(options, **changes)


def read_subject(path: Path, floating_base: bool = False) -> Subject:
    """The robot in a file or in the folder of a fit."""
    if not path.is_dir():
        return Subject(load(path, floating_base=floating_base))
    fit = Fit.load(path)
    return Subject(fit.model, fit)


def read_fitted_robot(robot: Path, fit: Path | None, floating_base: bool = False) -> Subject:
    """A robot file, or its identified version if the folder of a fit is given."""
    if fit is None:
        return read_subject(robot, floating_base)
    found = read_subject(fit)
    assert found.fit is not None, "a folder is that of a fit"
    if Path(found.fit.request.robot).name != robot.name:
        raise FileError(f"The fit in {fit} is of {Path(found.fit.request.robot).name}, not of {robot.name}.")
    return found
