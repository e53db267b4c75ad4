"""A robot while it runs: its parameters after every chunk of samples, and whether something has changed."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import jax
import numpy as np

from truesim.core.errors import TruesimError
from truesim.data import Log
from truesim.identify.build import Options, build
from truesim.identify.online.chunks import Rejected, Sample
from truesim.identify.online.recursion import Recursion, Watching
from truesim.identify.online.update import Update
from truesim.identify.problem import Problem
from truesim.model.model import Model

SCHEMA = "truesim.watch/1"


class Watcher:
    """Takes samples one by one; after every chunk it tells the parameters, and changes of them."""

    def __init__(
        self, model: Model, free: Sequence[str], *, options: Options | None = None, watching: Watching | None = None
    ):
        """Nothing is computed yet: what a stream holds shows in its first samples.

        Args:
            model: The robot; its values are the start.
            free: Paths to identify, such as `bodies/*.mass`.
            options: Ties, bounds, priors, channels.
            watching: How the stream is watched.
        """
        self.model, self.free = model, tuple(free)
        self.options, self.watching = options or Options(), watching or Watching()
        self.update: Update | None = None
        """What is known now."""
        self.samples = self.rejected = 0
        self.first: list[dict[str, float]] = []
        """Samples that are fitted as a whole."""
        self.recursion: Recursion | None = None
        """What goes on after them."""

    @property
    def time(self) -> float:
        """Stamp of the last sample [s]; minus infinity before the first."""
        if self.recursion is not None:
            return max(self.recursion.buffer.time, self.first[-1]["time"])
        return self.first[-1]["time"] if self.first else -np.inf

    def feed(self, sample: Sample | Rejected) -> Update | Rejected | None:
        """Takes one sample: an update if it completes a chunk, and why if it cannot be used."""
        found = sample if isinstance(sample, Rejected) else self._take(sample)
        self.samples += 1
        self.rejected += isinstance(found, Rejected)
        if isinstance(found, Update):
            self.update = found
        return found

    def begin(self) -> None:
        """Fits the first samples as a whole, and goes on from there."""
        problem = self._problem()
        with jax.enable_x64(True):
            self.recursion = Recursion(problem, self.watching)
            self.recursion.rehearse(self.first)

    def _problem(self) -> Problem:
        names = list(dict.fromkeys(name for sample in self.first for name in sample if name != "time"))
        time = np.array([sample["time"] for sample in self.first])
        columns = {name: np.array([sample.get(name, np.nan) for sample in self.first]) for name in names}
        problem = build(self.model, [Log(time, columns, "stream")], self.free, self.options)
        if not len(problem.parameters):
            raise TruesimError("Nothing is free: name parameters to watch, such as 'bodies/*.mass'.")
        return problem

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
        """Everything that is needed to go on later, as arrays."""
        names = list(dict.fromkeys(name for sample in self.first for name in sample))
        table = np.array([[sample.get(name, np.nan) for name in names] for sample in self.first])
        told = {"free": list(self.free), "schema": SCHEMA, "samples": self.samples, "rejected": self.rejected}
        state = {"told": np.array(json.dumps(told)), "names": np.array(names, str), "first": table}
        return state if self.recursion is None else {**state, **self.recursion.state()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on where an earlier one was; the same parameters must be free."""
        told = json.loads(str(state["told"]))
        if told["schema"] != SCHEMA or tuple(told["free"]) != self.free:
            raise TruesimError(
                f"The earlier stream was watched for {', '.join(told['free'])}, not for {', '.join(self.free)}; "
                "ask for the same, or begin anew with --force."
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
    options: Options | None = None,
    watching: Watching | None = None,
) -> Iterator[Update | Rejected]:
    """What is known of a robot after every chunk of a stream, and why samples were left out.

    Args:
        model: The robot; its values are the start.
        samples: Rows with `time` [s] and numbers by column.
        free: Paths to identify, such as `bodies/*.mass`.
        options: Ties, bounds, priors, channels.
        watching: How the stream is watched.
    """
    watcher = Watcher(model, free, options=options, watching=watching)
    for sample in samples:
        found = watcher.feed(sample)
        if found is not None:
            yield found
