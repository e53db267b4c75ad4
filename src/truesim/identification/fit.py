"""The result of an identification, and the door to everything that is done with it."""

import dataclasses
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from truesim.core.errors import FileError, parsing
from truesim.core.typing import Float
from truesim.files.logs import Log
from truesim.files.robots import load
from truesim.identification import fit_display, fit_folder
from truesim.identification.diagnose.covariance import Uncertainty
from truesim.identification.diagnose.diagnosis import Diagnosis, Part, diagnose
from truesim.identification.diagnose.estimates import Estimate
from truesim.identification.diagnose.evaluation import Errors, evaluate
from truesim.identification.diagnose.messages import explain
from truesim.identification.diagnose.options import DiagnoseOptions
from truesim.identification.diagnose.status import Diagnostic, Status
from truesim.identification.fit_document import document_of
from truesim.identification.fit_loading import load_diagnosis, load_options, load_request, load_solution
from truesim.identification.options import IdentifyOptions
from truesim.identification.posterior.of_solution import posterior_of
from truesim.identification.posterior.parameters import ParameterPosterior
from truesim.identification.posterior.variational import MixtureOptions
from truesim.identification.problem.build import assemble, same_problem
from truesim.identification.problem.fitted import coordinates_of, fitted_model, fitted_simulator
from truesim.identification.problem.network_weights import is_network, trained_networks
from truesim.identification.problem.options import ProblemOptions
from truesim.identification.problem.problem import Problem
from truesim.identification.regression.errors import TorqueError
from truesim.identification.request import Request
from truesim.identification.solve.solution import Solution
from truesim.physics.blueprint import Trained
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator


@dataclasses.dataclass(frozen=True, repr=False)
class Fit:
    """The result of an identification: estimates with intervals, open-loop errors, status and provenance."""

    solution: Solution
    diagnosis: Diagnosis
    request: Request
    logs: tuple[Log, ...] = ()
    """Prepared logs of the fit."""
    held_out_logs: tuple[Log, ...] = ()
    """Prepared logs that were not fitted to."""
    held_out: Problem | None = None
    """The same problem with the held-out logs."""
    folder: Path | None = None
    """Folder that the fit was saved to or loaded from."""

    @classmethod
    def of(
        cls,
        solution: Solution,
        held_out: Problem | None = None,
        *,
        logs: Sequence[Log] = (),
        options: DiagnoseOptions | None = None,
    ) -> "Fit":
        """The fit of a problem that was built and solved step by step.

        Args:
            solution: The solved problem.
            held_out: The same problem with logs that were not fitted to.
            logs: The prepared logs of the problem, without which the fit can be saved but not loaded.
            options: Thresholds of status and flags.
        """
        problem = solution.problem
        source = problem.simulator.model.source
        choices = ProblemOptions(
            prior_width=problem.prior_width,
            channels=tuple(channel.name for channel in problem.channels),
            blueprint=problem.blueprint,
        )
        request = Request(
            robot="robot.xml" if source is None or source.path is None else str(source.path),
            logs=tuple(r.name for r in problem.recordings),
            free=tuple(p.name for p in problem.parameters if not is_network(p)),
            holdout=() if held_out is None else tuple(r.name for r in held_out.recordings),
            options=IdentifyOptions(problem=choices, diagnose=options or DiagnoseOptions()),
        )
        return cls(solution, diagnose(solution, held_out, options), request, tuple(logs), held_out=held_out)

    @property
    def problem(self) -> Problem:
        """The problem that was solved."""
        return self.solution.problem

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Estimate of each parameter, with its interval and flags."""
        return self.diagnosis.estimates

    @property
    def values(self) -> dict[str, Float[np.ndarray, "..."]]:
        """Estimated values by path [SI units]."""
        return {e.path: e.value for e in self.estimates}

    @property
    def status(self) -> Status:
        """State of the fit as a whole."""
        return self.diagnosis.status

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Observations behind the status; `messages.explain` makes sentences of them."""
        return self.diagnosis.diagnostics

    @property
    def errors(self) -> Mapping[Part, Mapping[str, Errors]]:
        """Open-loop errors of each channel on the logs of the fit and on held-out logs, before and after."""
        return self.diagnosis.errors

    @property
    def torque_errors(self) -> Mapping[Part, Mapping[str, TorqueError]]:
        """Relative torque error of each joint, before and after; empty without joint torques."""
        return self.diagnosis.torque_errors

    @property
    def uncertainty(self) -> Uncertainty:
        """Covariance of the estimates."""
        return self.diagnosis.uncertainty

    @property
    def not_identifiable(self) -> tuple[tuple[str, ...], ...]:
        """Groups of parameters of which the logs determine at most a combination."""
        return self.diagnosis.not_identifiable

    @functools.cached_property
    def model(self) -> Model:
        """The robot with the estimates; values that belong to single logs stay at their start."""
        return fitted_model(self.problem, self.solution.theta)

    @functools.cached_property
    def simulator(self) -> Simulator:
        """The simulator with the estimates: contact model, delays and networks included."""
        return fitted_simulator(self.problem, self.solution.theta)

    @functools.cached_property
    def networks(self) -> Trained | None:
        """The networks with their trained weights."""
        blueprint = self.problem.blueprint
        return None if blueprint is None else trained_networks(blueprint, self.problem.parameters, self.solution.theta)

    @functools.cached_property
    def signals(self) -> dict[str, np.ndarray]:
        """Measured and simulated signals of every log, by `part/log/name`."""
        if not self.diagnosis.predictions:
            if self.folder is None:
                raise FileError("This fit has no signals: it was made without predictions and has no folder.")
            return fit_folder.read_arrays(self.folder, fit_folder.SIGNALS)
        found = self.diagnosis.predictions
        arrays: dict[str, np.ndarray] = {}
        for part, start, problem in (
            (Part.TRAIN, Part.TRAIN_START, self.problem),
            (Part.HELD_OUT, Part.HELD_OUT_START, self.held_out),
        ):
            if problem is not None:
                arrays |= fit_folder.signals_of(problem, part, found[part], found[start])
        return arrays | {"rows": np.array(self.problem.rows)}

    @functools.cached_property
    def document(self) -> dict[str, Any]:
        """The content of `fit.json`."""
        return document_of(self)

    def evaluate(
        self, logs: Sequence[Log], *, window: float = DiagnoseOptions.error_window, channels: Sequence[str] = ()
    ) -> dict[str, Errors]:
        """Open-loop error of every channel of other logs, by the fitted simulator with its contact and networks.

        Args:
            logs: Recordings of the same robot.
            window: Length of the windows [s].
            channels: Patterns of channels; by default all that the simulator can predict.
        """
        return evaluate(self.model, logs, window=window, options=self.options_for(logs, channels))

    def options_for(self, logs: Sequence[Log], channels: Sequence[str] = ()) -> ProblemOptions:
        """Options of a problem that has the fitted robot, networks and contact, but other logs.

        Values that belong to single logs are known where the fit knew them; those that it estimated are not.
        """
        problem = self.request.options.problem
        names = {"*", *(log.name for log in logs), *(Path(log.name).stem for log in logs)}
        known = {
            name: {path: value for path, value in row.items() if value != "free"}
            for name, row in problem.per_log.items()
            if name in names
        }
        return ProblemOptions(
            ties=problem.ties,
            prior_width=problem.prior_width,
            per_log=known,
            channels=tuple(channels),
            contact=problem.contact,
            smoothing=problem.smoothing,
            blueprint=self.networks,
        )

    def posterior(
        self,
        kind: str = "laplace",
        *,
        kernels: int = 3,
        starts: int = 8,
        seed: int = 0,
        callback: Callable[[int, int], None] | None = None,
    ) -> ParameterPosterior:
        """Posterior of the parameters; its samples and ranges are in SI units by path.

        Args:
            kind: `laplace` (a Gaussian at the fit), `mixture` (fitted Gaussians) or `basins` (a Gaussian per minimum).
            kernels: Number of Gaussians of a mixture.
            starts: Number of starts of `basins`; minima of the fit's own search come first.
            seed: Seed of everything random.
            callback: Called with the number of finished epochs or solves and of all.
        """
        found = posterior_of(
            self.solution,
            self.uncertainty,
            kind,
            mixture_options=MixtureOptions(kernels=kernels, seed=seed),
            starts=self._known_minima()[: starts - 1] or starts,
            solve_options=self.request.options.solve,
            callback=callback,
        )
        return dataclasses.replace(found, warnings=self.warnings)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons not to trust values and intervals, as sentences; empty for a fit that is converged."""
        if self.status in (Status.CONVERGED, Status.NOT_IDENTIFIABLE):
            return ()
        return (f"The status of the fit is: {self.status}.", *map(explain, self.diagnostics[:3]))

    def _known_minima(self) -> list[Float[np.ndarray, " size"]]:
        """Coordinates of the fit and of the minima that its search found; empty without a search."""
        known = [basin["values"] for basin in self.document.get("search", {}).get("basins", [])]
        return [self.solution.theta, *(coordinates_of(self.problem, values) for values in known)] if known else []

    def report(self) -> Path:
        """Write `report.html` into the folder of the fit, and return its path."""
        from truesim.report.fit_page import write_fit_page

        if self.folder is None:
            raise FileError("This fit has no folder: save it first.")
        return write_fit_page(self.folder)

    def save(self, folder: str | os.PathLike[str]) -> "Fit":
        """Write the fit to a folder that can be moved anywhere; `Fit.load` reads it back.

        Args:
            folder: Created if it does not exist.
        """
        folder = Path(folder)
        fit_folder.write_folder(self, folder)
        return self if self.folder == folder else dataclasses.replace(self, folder=folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Fit":
        """Read a fit from its folder. Nothing is solved or simulated.

        Args:
            folder: A folder that `Fit.save` or `truesim identify` wrote.
        """
        with parsing(str(folder), "the folder of a fit"):
            return cls._load(Path(folder))

    @classmethod
    def _load(cls, folder: Path) -> "Fit":
        document = fit_folder.read_document(folder)
        if "options" not in document:
            raise FileError(f"{folder} was written by an earlier version and cannot be loaded; run the fit again.")
        options = load_options(document, folder)
        request = load_request(document, options)
        logs = fit_folder.logs_in(folder)
        name = Path(request.robot).name
        if not (folder / fit_folder.START / name).is_file():
            raise FileError(f"{folder} has no {fit_folder.START}/{name}: it was written by an earlier version.")
        start = load(folder / fit_folder.START / name, floating_base=options.floating_base, held=options.held)
        problem = assemble(start, logs["train"], request.free, options.problem)
        other = logs["held_out"]
        held_out = same_problem(problem, start, other, request.free, options.problem) if other else None
        arrays = fit_folder.read_arrays(folder, fit_folder.SOLUTION)
        if not np.allclose(problem.parameters.start, arrays["start"], rtol=1e-9, atol=1e-12):
            raise FileError(f"{folder} cannot be rebuilt: its start values differ from those of its robot file.")
        solution = load_solution(problem, arrays, document, options)
        found = Uncertainty(arrays["covariance"], arrays["value_covariance"], arrays["correlation_time"])
        fit = cls(
            solution=solution,
            diagnosis=load_diagnosis(document, found),
            request=request,
            logs=tuple(logs["train"]),
            held_out_logs=tuple(logs["held_out"]),
            held_out=held_out,
            folder=folder,
        )
        vars(fit)["document"] = document
        return fit

    def summary(self) -> str:
        """Status, estimates with intervals and open-loop errors as text to print."""
        return fit_display.summary_text(self)

    def to_frame(self) -> Any:
        """Every number with start, standard deviation, interval, unit and flags, as a polars data frame."""
        return fit_display.frame_of(self)

    def plot(self, channel: str | None = None) -> Any:
        """Measured and simulated signal of one channel as a Plotly figure.

        Args:
            channel: Name such as `qpos/elbow`; the first one by default.
        """
        return fit_display.figure_of(self, channel)

    def _repr_html_(self) -> str:
        return fit_display.summary_html(self)

    def __repr__(self) -> str:
        count = len(self.estimates)
        robot = Path(self.request.robot).name
        return f"<Fit of {robot}: {self.status}, {count} parameters, {len(self.logs)} logs>"
