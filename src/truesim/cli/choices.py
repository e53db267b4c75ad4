"""Options and arguments that take one of a few words: checked before anything is read, shown in help, completed by Tab.

typer's own choices need enumerations, and their error does not name the nearest match. The words are written out here
because importing the rooms that define them takes a second; a test compares the two.
"""

from collections.abc import Iterator
from typing import Any

from truesim.core.errors import unknown_name

CHOICES: dict[str, tuple[str, ...]] = {
    "contact": ("none", "rigid", "compliant", "implicit", "file"),
    "preset": ("arm", "servo", "quadruped", "free-body"),
    "optimizer": ("auto", "lm", "adam"),
    "search": ("local", "hopping", "cmaes"),
    "engine": ("truesim", "mujoco"),
    "criterion": ("intervals", "volume"),
    "posterior kind": ("laplace", "mixture", "basins"),
    "calibrate kind": ("laplace", "mixture"),
    "style": ("mjcf", "urdf"),
    "integrator": ("Euler", "RK4", "implicit", "implicitfast", "discrete"),
    "action": ("show", "clear"),
}
"""Valid words by the name of the parameter, or by verb and name where verbs differ."""
MAX_SHOWN, WORD = 16, "WORD"
"""Characters up to which valid words stand in the place of the value; more of them stand in the text only."""
FREE_PATTERNS = (
    "bodies/*.mass",
    "bodies/*.com",
    "joints/*.damping",
    "joints/*.frictionloss",
    "joints/*.armature",
    "joints/*.stiffness",
    "actuators/*.kp",
    "actuators/*.kv",
    "actuators/*.gain",
    "actuators/*.delay",
    "geoms/*.friction[0]",
)
"""Patterns that Tab offers after --free and --tie; the names of a robot's own parts are not read."""


def choices_of(verb: str, parameter: Any) -> tuple[str, ...] | None:
    """Valid words of a parameter, or None if it takes any text."""
    return CHOICES.get(f"{verb} {parameter.name}", CHOICES.get(parameter.name))


def show_choices(verb: str, parameters: list[Any]) -> None:
    """Put the valid words into the help of parameters, and let Tab complete them."""
    for parameter in parameters:
        words = choices_of(verb, parameter)
        if words is not None:
            shown = "|".join(words) if len("|".join(words)) <= MAX_SHOWN else WORD
            parameter.metavar = shown + ("…" if getattr(parameter, "multiple", False) else "")
        offered = words or (FREE_PATTERNS if parameter.name in ("free", "tie") else None)
        if offered is not None:
            parameter._custom_shell_complete = _completer(offered)


def check_choices(verb: str, parameters: list[Any], values: dict[str, Any]) -> None:
    """Raise an error for a word that is not valid, with the nearest one."""
    for parameter in parameters:
        words = choices_of(verb, parameter)
        if words is None:
            continue
        for value in _texts(values.get(parameter.name)):
            if value not in words:
                raise unknown_name(f"choice of {parameter.opts[0]}", value, words)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple):
        yield from value
    elif value is not None:
        yield value


def _completer(words: tuple[str, ...]) -> Any:
    def complete(_ctx: Any, _parameter: Any, incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete
