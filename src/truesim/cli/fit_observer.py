"""Progress of an identification on standard error."""

import contextlib
import time

from rich.console import Console

from truesim.cli import compile_time
from truesim.cli.console import warn
from truesim.cli.progress import FitProgress, Waiting
from truesim.cli.search_progress import SearchProgress
from truesim.core.timing import PartTime, Stopwatch
from truesim.identification.problem.problem import Problem
from truesim.identification.reading import Observer, Silent
from truesim.identification.solve.levenberg_marquardt import Progress
from truesim.optimize.basin_hopping import SearchResult
from truesim.physics.model.source import Finding

MIN_REPORTED_SECONDS = 0.5
"""Time below which the end of a compilation is not told where the output is not a terminal [s]."""


class FitObserver:
    """Prints stages and warnings, and shows the running stage live; a context that ends the live display.

    It measures the time of each part of the job; what has passed before counts as imports.
    """

    def __init__(self, console: Console, also: Observer | None = None):
        """Observe.

        Args:
            console: Console of messages.
            also: Observer that everything is passed on to.
        """
        self._also = also or Silent()
        self.stopwatch = Stopwatch(self._compiling)
        self.stopwatch.seconds["imports"] = time.process_time()
        self._console = console
        self._live: FitProgress | SearchProgress | None = None
        self._found: SearchResult | None = None
        self._begin = time.perf_counter()
        self._measuring = contextlib.ExitStack()
        self._waiting: Waiting | None = None
        self._compiled: Problem | None = None

    def __enter__(self) -> "FitObserver":
        self._measuring.enter_context(self.stopwatch.running())
        return self

    def __exit__(self, *_: object) -> None:
        self._close()
        self._measuring.close()

    def print_times(self) -> None:
        """Print how long each part took."""
        seconds = self.stopwatch.seconds
        each = ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items())
        self._console.print(f"Time: {each}; {sum(seconds.values()):.1f} s in all.")

    def _compiling(self, event: PartTime) -> None:
        """Show the work on a kernel."""
        if not event.subject:
            return
        if self._compiled is None:
            self._stop_waiting()
        if event.seconds is None and self._live is None and self._waiting is None:
            self._waiting = Waiting(self._console, f"{event.name.capitalize()} {event.subject} …")
        elif event.seconds is not None and event.seconds > MIN_REPORTED_SECONDS and not self._console.is_terminal:
            self._console.print(f"{event.name.capitalize()} {event.subject} took {event.seconds:.1f} s.")

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.close()
            self._waiting = None

    def _close(self) -> None:
        self._stop_waiting()
        if self._live is not None:
            self._live.__exit__(None, None, None)
            self._live = None

    def warning(self, log: str, finding: Finding) -> None:
        """Print an anomaly of a log."""
        self._also.warning(log, finding)
        warn(self._console, ("" if finding.subject == log else f"{log}, ") + str(finding))

    def stage(self, name: str, problem: Problem) -> None:
        """Print the stage that begins, and open its live display."""
        self._also.stage(name, problem)
        if isinstance(self._live, SearchProgress) and self._found is not None:
            self._console.print(self._live.line(self._found))
        self._close()
        compiled, self._compiled = self._compiled, None
        seconds, self._begin = time.perf_counter() - self._begin, time.perf_counter()
        sentences = {
            "resume": "Continuing the interrupted fit in the folder.",
            "search": "Searching for the start; Ctrl-C ends the search early.",
            "compile": f"Compiling the simulation of {problem.parameters.size} unknowns …",
            "solve": f"Compiled in {seconds:.1f} s; fitting {problem.layout.size} segments.",
            "diagnose": "Simulating all windows and computing intervals …",
        }
        self._console.print(sentences[name])
        if compiled is not None:
            compile_time.remember(compiled, seconds)
        if name == "compile":
            self._compiled = problem
            expected = compile_time.estimate_seconds(problem)
            self._waiting = Waiting(self._console, f"about {expected:.0f} s, less if it was compiled before")
        if name == "solve":
            self._live = FitProgress(self._console, problem).__enter__()
        elif name == "search":
            self._live = SearchProgress(self._console, problem).__enter__()

    def searched(self, found: SearchResult) -> None:
        """Show the basins found so far."""
        self._also.searched(found)
        self._found = found
        if isinstance(self._live, SearchProgress):
            self._live(found)

    def iterated(self, progress: Progress) -> None:
        """Show an iteration."""
        self._also.iterated(progress)
        if isinstance(self._live, FitProgress):
            self._live(progress)
