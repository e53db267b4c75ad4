"""Live pages: the progress of a fit or a training in a browser, served on this machine only while it runs.

A page asks for a snapshot every second and draws it: sentences, charts of numbers over iterations, and a table. A
snapshot is made by a function, so that anything that has numbers can have a page; `csv_snapshot` makes one of a log
with a row for every iteration.
"""

import csv
import json
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from truesim.identification.fit_document import finite
from truesim.report.live_page import live_page
from truesim.report.numbers import number
from truesim.scenes.viewer_library import LOOPBACK
from truesim.studio.progress import PageObserver

SNAPSHOT_PATH = "/progress.json"
AXIS_COLUMNS = ("steps", "iteration", "time", "cpu_seconds")
"""Columns of a log that the others are drawn over, the first that exists."""
MAX_POINTS = 1000
"""Points of a curve; more are finer and slower."""
LOGARITHMIC_SPAN = 100.0
"""Ratio of largest to smallest value from which on a positive curve is drawn on a logarithmic scale."""

LAST_WORD = 1.5
"""Time for which the end waits where a page is open [s]; pages ask every second."""

Snapshot = Mapping[str, Any]
"""`title`, `sentence`, `seconds`, `charts` (`title`, `axis`, `curves` of `name`, `x`, `y`) and `table` (its rows); the
page adds `ended`."""


class LivePage:
    """A page that follows something that runs; a context that serves it."""

    def __init__(self, title: str, snapshot: Callable[[], Snapshot], port: int = 0):
        """Prepare the page.

        Args:
            title: Title of the page.
            snapshot: Makes what is shown now.
            port: Port to listen on; 0 takes any that is free.
        """
        self._snapshot, self._ended, self._asked = snapshot, False, -math.inf
        handler = partial(_Handler, live_page(title).encode(), self._answer)
        self._server = ThreadingHTTPServer((LOOPBACK, port), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="truesim live page", daemon=True)

    @property
    def address(self) -> str:
        """Address of the page."""
        return f"http://{LOOPBACK}:{self._server.server_port}/"

    def __enter__(self) -> "LivePage":
        self._thread.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended = True
        if time.monotonic() - self._asked < LAST_WORD:
            time.sleep(LAST_WORD)  # open pages ask for the last state
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self) -> Snapshot:
        self._asked = time.monotonic()
        return {**self._snapshot(), "ended": self._ended}


class LiveFit:
    """Progress of a fit as snapshots; its observer is given to `identify`."""

    def __init__(self, title: str):
        """Begin with nothing.

        Args:
            title: Shown above, such as the name of the robot file.
        """
        self._title, self._begin = title, time.monotonic()
        self._sentence, self._history = "Reading files.", dict[str, list[float]]()
        self._lock = threading.Lock()
        self.observer = PageObserver(self._tell, self._iterated)

    def finish(self) -> None:
        """Say that the fit has ended."""
        self._tell("The fit has ended; its folder holds the report.")

    def snapshot(self) -> Snapshot:
        """State that is shown now."""
        with self._lock:
            costs, values = list(self.observer.costs), dict(self.observer.values)
            curves = [(path, list(history)) for path, history in self._history.items()]
        iterations = list(range(1, len(costs) + 1))
        relative = [(path, [y / abs(now) for y in own]) for path, own in curves if (now := values[path][1])]
        charts = [
            chart("Residual, relative to the first iteration", "iteration", iterations, [("rms", _roots(costs))]),
            chart("Parameters, relative to their present value", "iteration", iterations, relative),
        ]
        rows = [("parameter", "start", "now"), *((n, number(a, 5), number(b, 5)) for n, (a, b) in values.items())]
        return {
            "title": self._title,
            "sentence": self._sentence,
            "seconds": time.monotonic() - self._begin,
            "charts": charts if iterations else [],
            "table": rows if values else [],
        }

    def _tell(self, sentence: str) -> None:
        self._sentence = sentence

    def _iterated(self, observer: PageObserver) -> None:
        with self._lock:
            for path, (_, now) in observer.values.items():
                self._history.setdefault(path, [math.nan] * (len(observer.costs) - 1)).append(now)


def csv_snapshot(path: Path, title: str, sentence: str = "") -> Snapshot:
    """Snapshot of a log file with a heading and a row for every iteration, complete or still being written.

    Args:
        path: The CSV file; it need not exist yet.
        title: Shown above.
        sentence: Shown below the title; by default the number of rows.
    """
    names, rows = _read_rows(path)
    axis = next((name for name in AXIS_COLUMNS if name in names), names[0] if names else "row")
    columns = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    x = columns.get(axis, [])
    drawn = sorted((name for name, y in columns.items() if name not in AXIS_COLUMNS and _varies(y)), key=_interest)
    charts = [chart(name, axis, x, [(name, columns[name])]) for name in drawn if name != axis]
    last = [("number", "last", "smallest", "largest"), *((name, *_summary(y)) for name, y in columns.items() if rows)]
    return {
        "title": title,
        "sentence": sentence or f"{len(rows)} iteration{'' if len(rows) == 1 else 's'}.",
        "seconds": None,
        "charts": charts,
        "table": last if rows else [],
    }


def chart(title: str, axis: str, x: Sequence[float], curves: Sequence[tuple[str, Sequence[float]]]) -> dict[str, Any]:
    """A chart of curves over a common axis, thinned to what a screen shows."""
    step = max(1, len(x) // MAX_POINTS)
    known = [y for _, own in curves for y in own if math.isfinite(y)]
    positive = bool(known) and min(known) > 0 and max(known) > LOGARITHMIC_SPAN * min(known)
    shown = [{"name": name, "x": list(x[::step]), "y": list(y[::step])} for name, y in curves]
    return {"title": title, "axis": axis, "logarithmic": positive, "curves": shown}


def _varies(values: Sequence[float]) -> bool:
    """True if a curve shows more than the table: it has two different values, or only one yet."""
    known = {y for y in values if math.isfinite(y)}
    return len(known) > 1 or len(values) == 1


def _interest(name: str) -> bool:
    """Sort key: returns first."""
    return "return" not in name


def _summary(values: Sequence[float]) -> tuple[str, str, str]:
    """Last, smallest and largest value as text."""
    known = [y for y in values if math.isfinite(y)]
    return _text(values[-1]), _text(min(known, default=math.nan)), _text(max(known, default=math.nan))


def _text(value: float) -> str:
    """A number with five digits; counts in full."""
    return str(int(value)) if math.isfinite(value) and value == int(value) else number(value, 5)


def _roots(costs: Sequence[float]) -> list[float]:
    return [math.sqrt(cost) if cost >= 0 else math.nan for cost in costs]


def _read_rows(path: Path) -> tuple[list[str], list[list[float]]]:
    """Heading and complete rows of numbers; a row that is being written is left for the next time."""
    if not path.is_file():
        return [], []
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    if not lines:
        return [], []
    rows = []
    for line in lines[1:]:
        try:
            row = [float(cell) if cell else math.nan for cell in line]
        except ValueError:
            continue
        if len(row) == len(lines[0]):
            rows.append(row)
    return lines[0], rows


class _Handler(BaseHTTPRequestHandler):
    """Answers with the page and with snapshots."""

    def __init__(self, page: bytes, snapshot: Callable[[], Snapshot], *connection: Any):
        self._page, self._snapshot = page, snapshot
        super().__init__(*connection)

    def do_GET(self) -> None:
        """Answer a request."""
        if self.path == "/":
            self._answer(200, "text/html; charset=utf-8", self._page)
        elif self.path == SNAPSHOT_PATH:
            self._answer(200, "application/json", json.dumps(finite(self._snapshot())).encode())
        else:
            self._answer(404, "text/plain", b"There is no such page.")

    def _answer(self, code: int, kind: str, content: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the standard library
        """Print nothing."""
