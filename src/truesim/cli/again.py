"""A fit taken up again from its folder: the same robot, logs and options."""

from pathlib import Path
from typing import Any

from rich.console import Console

from truesim.cli.identify import model_of, said
from truesim.cli.progress import working
from truesim.cli.readable import readable
from truesim.core.errors import FileError
from truesim.identify.api import problems, resumed
from truesim.identify.fit import Settings, Solution, solve_problem
from truesim.identify.folder import read_fit, values_in
from truesim.identify.problem import Problem


def problem_again(folder: Path) -> tuple[Problem, Settings, dict[str, Any]]:
    """The problem of the fit in a folder, how it was solved, and what `fit.json` holds."""
    document = read_fit(folder)
    provenance = document["provenance"]
    request = provenance["request"]
    robot, logs = Path(provenance["robot"]["file"]), [Path(log["file"]) for log in provenance["logs"]]
    for path in (robot, *logs):
        if not path.is_file():
            raise FileError(f"{path}, which {folder} was fitted to, is not there; run from where it was fitted.")
    options = {**DEFAULTS, **request["options"]}
    model = model_of(robot, options)
    recorded = readable(model, logs, options["mapping"])
    problem, _ = problems(model, recorded, request["free"], (), said(options))
    settings = Settings(window=options["window"], threshold=options["robust"], optimiser=options["optimizer"])
    return problem, settings, document


def solved_again(folder: Path, console: Console) -> tuple[Solution, Settings, dict[str, Any]]:
    """The solution of the fit in a folder, found again from its values, how, and what `fit.json` holds."""
    problem, settings, document = problem_again(folder)
    start = resumed(problem, values_in(folder, document))
    with working(console, f"Compiling {len(problem.parameters)} parameters and finding the best fit again …"):
        return solve_problem(problem, settings, theta=start), settings, document


DEFAULTS: dict[str, Any] = {
    "window": None, "tie": None, "bounds": None, "prior": None, "channel": None, "law": None, "contact": None,
    "barrier": None, "set": None, "robust": 8.0, "optimizer": "auto", "per_log": None, "mapping": None,
    "floating_base": None, "blueprint": None,
}  # fmt: skip
"""What an option is if a request does not name it."""
