"""Writes docs/api.md from the docstrings of the public names. `python docs/build.py --check` only compares."""

import importlib
import inspect
import sys
from pathlib import Path

MODULES = {
    "truesim": "The names most programs need.",
    "truesim.dynamics": "Rigid-body algorithms on a model.",
    "truesim.simulate": "Motion in time.",
    "truesim.data": "Logs.",
    "truesim.contact": "Where bodies touch, and how they act on each other.",
    "truesim.identify": "From logs to parameters.",
    "truesim.identify.search": "Many starts.",
    "truesim.identify.posterior": "What the logs leave possible.",
    "truesim.identify.online": "Parameters while a robot runs.",
    "truesim.identify.design": "Experiments that tell most.",
    "truesim.mujoco": "Fits in MuJoCo.",
    "truesim.native": "JAX functions as vector machine code.",
    "truesim.model.paths": "Numbers of a model by name.",
}
PAGE = Path(__file__).parent / "api.md"


def public_names(module) -> list[str]:
    """What a module offers: its `__all__`, or the functions and classes defined in it."""
    listed = getattr(module, "__all__", None)
    return listed or [name for name, value in vars(module).items() if _own(module, name, value)]


def _own(module, name: str, value: object) -> bool:
    return not name.startswith("_") and getattr(value, "__module__", None) == module.__name__ and callable(value)


def entry(name: str, value: object) -> str:
    """One line: the name and the first sentence of its docstring."""
    return f"| `{name}` | {(inspect.getdoc(value) or '').splitlines()[0].replace('|', chr(92) + '|')} |"


def page() -> str:
    """The whole page."""
    parts = ["# Public names\n\nMade by `make docs` from the docstrings; `help(name)` shows the rest.\n"]
    for path, sentence in MODULES.items():
        module = importlib.import_module(path)
        rows = [entry(name, getattr(module, name)) for name in sorted(public_names(module), key=str.lower)]
        parts.append(f"## {path}\n\n{sentence}\n\n| name | what it is |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text() != page() and "docs/api.md is out of date: run `make docs`")
    PAGE.write_text(page())
    print(f"wrote {PAGE}")
