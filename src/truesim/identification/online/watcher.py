"""Online identification of a running robot: parameters after every chunk of samples, and sudden changes."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import jax
import numpy as np

from truesim.core.errors import TruesimError
from truesim.files.logs import Log
from truesim.identification.diagnose.status import Diagnostic, Status
from truesim.identification.online.chunks import Rejected, Sample
from truesim.identification.online.recursion import Recursion, WatchOptions
from truesim.identification.online.update import Update
from truesim.identification.problem.build import build
from truesim.identification.problem.options import ProblemOptions
from truesim.identification.problem.problem import Problem
from truesim.physics.model.model import Model

WATCH_SCHEMA = "truesim.watch/1"


class Watcher:
    """Online identification that takes samples one by one and returns updates."""

    def __init__(
        self,
        model: Model,
        free: Sequence[str],
        *,
        options: ProblemOptions | None = None,
        watching: WatchOptions | None = None,
    ):
        """Store the request; the problem is built from the first samples.

        Args:
            model: The robot; its values are the start.
            free: Paths to identify, such as `bodies/*.mass`.
            options: Ties, bounds, priors, channels.
            watching: Initial fit, forgetting and change detection.
        """
        self.model, self.free = model, tuple(free)
        self.options, self.watching = options or ProblemOptions(), watching or WatchOptions()
        self.update: Update | None = None
        """Latest update."""
        self.samples = self.rejected = 0
        self.first: list[dict[str, float]] = []
        """Samples of the initial fit."""
        self.recursion: Recursion | None = None
        """Recursive filter after the initial fit."""

    @property
    def misfit(self) -> tuple[Diagnostic, ...]:
        """Signs of a model that does not fit the first samples; empty if there are none, or before the first fit."""
        return () if self.recursion is None else self.recursion.misfit

    @property
    def status(self) -> Status | None:
        """Status of the fit to the first samples; none before it, or for a stream that is continued."""
        return None if self.recursion is None else self.recursion.status

    @property
    def time(self) -> float:
        """Stamp of the last sample [s]; minus infinity before the first."""
        if self.recursion is not None:
            return max(self.recursion.buffer.time, self.first[-1]["time"])
        return self.first[-1]["time"] if self.first else -np.inf

    def feed(self, sample: Sample | Rejected) -> Update | Rejected | None:
        """Take one sample; returns an update if it completes a chunk, or the reason for its rejection."""
        found = sample if isinstance(sample, Rejected) else self._take(sample)
        self.samples += 1
        self.rejected += isinstance(found, Rejected)
        if isinstance(found, Update):
            self.update = found
        return found

    def begin(self) -> None:
        """Fit the first samples, and start the recursive filter."""
        problem = self._problem()
        with jax.enable_x64(True):
            self.recursion = Recursion(problem, self.watching)
            self.recursion.warm_up(self.first)

    def _problem(self) -> Problem:
        names = list(dict.fromkeys(name for sample in self.first for name in sample if name != "time"))
        time = np.array([sample["time"] for sample in self.first])
        columns = {name: np.array([sample.get(name, np.nan) for sample in self.first]) for name in names}
        problem = build(self.model, [Log(time, columns, "stream")], self.free, self.options)
        if not len(problem.parameters):
            raise TruesimError("No parameter is free: name parameters to watch, such as 'bodies/*.mass'.")
        return problem.optimized

    def _take(self, sample: Sample) -> Update | Rejected | None:
        try:
            time = float(sample.get("time", np.nan))
        except (TypeError, ValueError):
            time = np.nan
        if not np.isfinite(time):
            return Rejected("A sample has no time.")
        if time <= self.time:
            return Rejected(f"Time does not increase: {time:.9g} s comes after {self.time:.9g} s.")
        if self.recursion is not None:
            with jax.enable_x64(True):
                return self.recursion.take(sample)
        self.first.append({**sample, "time": time})
        if time - self.first[0]["time"] >= self.watching.first:
            self.begin()
        return None

    def state(self) -> dict[str, np.ndarray]:
        """State of the watcher as arrays."""
        names = list(dict.fromkeys(name for sample in self.first for name in sample))
        table = np.array([[sample.get(name, np.nan) for name in names] for sample in self.first])
        told = {"free": list(self.free), "schema": WATCH_SCHEMA, "samples": self.samples, "rejected": self.rejected}
        state = {"told": np.array(json.dumps(told)), "names": np.array(names, str), "first": table}
        return state if self.recursion is None else {**state, **self.recursion.state()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore the state of an earlier watcher with the same free parameters."""
        told = json.loads(str(state["told"]))
        if told["schema"] != WATCH_SCHEMA or tuple(told["free"]) != self.free:
            raise TruesimError(
                f"The earlier stream was watched for {', '.join(told['free'])}, not for {', '.join(self.free)}; "
                "give the same parameters, or start again with --force."
            )
        self.samples, self.rejected = told["samples"], told["rejected"]
        rows = (zip(state["names"].tolist(), row, strict=True) for row in state["first"].tolist())
        self.first = [{name: value for name, value in row if np.isfinite(value)} for row in rows]
        if "theta" in state:
            with jax.enable_x64(True):
                self.recursion = Recursion(self._problem(), self.watching, restored=state)
                self.update = self.recursion.update(float(state["now"]))


def watch(
    model: Model,
    samples: Iterable[Sample | Rejected],
    free: Sequence[str],
    *,
    options: ProblemOptions | None = None,
    watching: WatchOptions | None = None,
) -> Iterator[Update | Rejected]:
    """Identify the parameters of a robot from a stream; yields an update after every chunk, and rejected samples.

    Args:
        model: The robot; its values are the start.
        samples: Rows with `time` [s] and numbers by column.
        free: Paths to identify, such as `bodies/*.mass`.
        options: Ties, bounds, priors, channels.
        watching: Initial fit, forgetting and change detection.
    """
    watcher = Watcher(model, free, options=options, watching=watching)
    for sample in samples:
        found = watcher.feed(sample)
        if found is not None:
            yield found
