"""Writes docs/api.md from the docstrings of the public names. `python docs/build.py --check` only compares."""

import importlib
import inspect
import sys
from pathlib import Path

from truesim.core.errors import TruesimError

MODULES = {
    "truesim": "The names most programs need.",
    "truesim.physics.dynamics": "Rigid-body algorithms on a model.",
    "truesim.physics.simulation": "Motion in time.",
    "truesim.files.logs": "Logs.",
    "truesim.physics.contact": "Where bodies touch, and how they act on each other.",
    "truesim.identification": "From logs to parameters.",
    "truesim.identification.search": "Global search.",
    "truesim.identification.posterior": "Posteriors of parameters.",
    "truesim.identification.online": "Online identification.",
    "truesim.identification.excitation": "Experiment design.",
    "truesim.control": "Trajectory optimization and model predictive control.",
    "truesim.bridges.mujoco": "Fits and closed loops in MuJoCo.",
    "truesim.bridges.gymnasium": "Closed loops in environments of gymnasium.",
    "truesim.torch": "Simulations in PyTorch.",
    "truesim.native": "JAX functions as vector machine code.",
    "truesim.physics.model.paths": "Numbers of a model by name.",
}
PAGE = Path(__file__).parent / "api.md"
REFERENCE = Path(__file__).parent / "reference"
"""Pages with signatures, made for the site and not kept."""
HEAD = """# Public names

Made by `make docs` from the docstrings. The site has a page with signatures for each module; `help` shows the same:

```
python -c "import truesim as ts; help(ts.identify)"
```
"""


def public_names(module) -> list[str]:
    """What a module offers: its `__all__`, or the functions and classes defined in it."""
    listed = getattr(module, "__all__", None)
    return listed or [name for name, value in vars(module).items() if _own(module, name, value)]


def _own(module, name: str, value: object) -> bool:
    return not name.startswith("_") and getattr(value, "__module__", None) == module.__name__ and callable(value)


def entry(name: str, value: object) -> str:
    """One line: the name and the first sentence of its docstring."""
    return f"| `{name}` | {(inspect.getdoc(value) or '').splitlines()[0].replace('|', chr(92) + '|')} |"


def section(path: str, sentence: str) -> str:
    """Table of a module; that of the present page if the libraries that the module needs are not installed."""
    module = imported(path)
    if module is None:
        return (
            "## "
            + next(part for part in PAGE.read_text().split("## ") if part.startswith(f"{path}\n")).rstrip("\n")
            + "\n"
        )
    rows = [entry(name, getattr(module, name)) for name in sorted(public_names(module), key=str.lower)]
    return f"## {path}\n\n{sentence}\n\n| name | what it is |\n|---|---|\n" + "\n".join(rows) + "\n"


def imported(path: str):
    """A module, or None if a library that it needs is not installed."""
    try:
        return importlib.import_module(path)
    except TruesimError:
        return None


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(section(path, sentence) for path, sentence in MODULES.items())])


def reference(path: str, sentence: str, seen: set[str]) -> str:
    """Page of a module for mkdocstrings: public names by the place where they are defined, each on one page only."""
    module, parts = importlib.import_module(path), [f"# {path}\n\n{sentence}\n\n```python\nimport {path}\n```\n"]
    for name in sorted(public_names(module), key=str.lower):
        value = getattr(module, name)
        place = getattr(value, "__module__", "") or ""
        if (inspect.isclass(value) or inspect.isfunction(value)) and place.startswith("truesim"):
            full = f"{place}.{value.__qualname__}"
            parts += [] if full in seen else [f"::: {full}\n"]
            seen.add(full)
    return "\n".join(parts)


def write_reference() -> None:
    """Write the pages with signatures."""
    REFERENCE.mkdir(exist_ok=True)
    seen: set[str] = set()
    for path, sentence in MODULES.items():
        if imported(path) is None:
            continue
        (REFERENCE / f"{path}.md").write_text(reference(path, sentence, seen), encoding="utf-8")


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text() != page() and "docs/api.md is out of date: run `make docs`")
    PAGE.write_text(page())
    write_reference()
    print(f"wrote {PAGE}")
