"""Help of verbs: options in groups, and words for what an option takes."""

import re
from collections.abc import Collection
from typing import Any

MIN_GROUPED = 10
"""Number of options from which on a verb shows them in groups; smaller groups more verbs."""
PANELS: dict[str, tuple[str, ...]] = {
    "Parameters": (
        "free", "preset", "tie", "bounds", "prior", "prior_width", "set_", "servo", "gear", "actuator_model",
        "blueprint", "payload", "weighed",
    ),
    "Input": (
        "config", "holdout", "loaded", "validate", "mapping", "per_log", "channel", "fit", "robot", "controls",
        "calibration", "start_from_log", "keyframe", "floating_base",
    ),
    "Simulation": ("contact", "smoothing", "timestep", "integrator", "smooth", "tighten"),
    "Solver": (
        "window", "horizon", "robust", "optimizer", "iterations", "misfit_factor", "segment_factor",
        "identifiable_std", "starts", "criterion", "fourier",
    ),
    "Global search": ("search", "engine", "workers", "solves", "cost"),
    "Limits of the motion": ("speed", "force_limit", "position", "noise", "rate"),
    "Output": ("out", "live", "force", "as_json", "quiet", "show", "write_mapping"),
    "Machine": ("seed", "threads", "workers"),
    "Server": ("host", "port", "no_browser"),
}  # fmt: skip
"""Groups of options, by the names of their parameters; others stay under "Options"."""
NEEDED = {"Global search": "search", "Limits of the motion": "speed"}
"""Parameters without which a verb has no such group."""
SEARCH_ONLY = ("seconds",)
"""Options that belong to the search in verbs that have one."""
TYPE_WORDS = {"float": "NUMBER", "int": "N", "str": "TEXT", "path": "PATH"}
EXAMPLE_WIDTH = 74
"""Characters of a line of an example, so that it fits a terminal of 80 columns and can be copied from it."""


def wrapped_example(command: str) -> str:
    """An example for a shell, broken before options where it is too long for a line."""
    words = re.split(r" (?=--)", command)
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) > EXAMPLE_WIDTH:
            lines.append(f"    {word}")
        else:
            lines[-1] += f" {word}"
    return " \\\n".join(lines)


def arrange(parameters: list[Any]) -> None:
    """Sort the options of a verb into groups, and name what they take."""
    options = [p for p in parameters if p.param_type_name == "option"]
    for argument in parameters:
        if argument.param_type_name == "argument":
            argument.display_type_rich = _no_type  # its name says it: ROBOT, LOG…
    names = {p.name for p in parameters}
    for option in options:
        option.metavar = _word(option)
        if len(options) >= MIN_GROUPED:
            option.rich_help_panel = _panel(option.name, names)
    order = [None, *PANELS]
    parameters.sort(key=lambda p: order.index(p.rich_help_panel) if p.param_type_name == "option" else -1)


def _no_type(ctx: Any) -> None:
    """Type of an argument in the help: none."""


def _panel(name: str, names: Collection[str]) -> str | None:
    """Group of an option in a verb with parameters of these names."""
    if "search" in names and name in SEARCH_ONLY:
        return "Global search"
    own = (panel for panel, members in PANELS.items() if name in members and NEEDED.get(panel, name) in names)
    return next(own, None)


def _word(option: Any) -> str | None:
    if option.metavar is not None:
        return option.metavar
    if getattr(option, "is_flag", False):
        return ""
    annotation = getattr(getattr(option, "type_descriptor", None), "annotation", None)
    return TYPE_WORDS.get(getattr(annotation, "__name__", "").lower())
