"""Names: a public class name, an upper-case constant and a package name each mean one thing."""

import ast
import re
import tomllib
import types
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import truesim
from tests.architecture.test_words import ROOT, SOURCE, room

TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
ROOMS = sorted({room(path) for path in TREES})
IMPORT_NAMES = {"pin": "pinocchio", "mujoco-mjx": "mujoco", "pytest-xdist": "xdist", "import-linter": "importlinter"}
"""Import names of distributions that have another one."""
OTHER_WORDS = ("Settings", "Choices", "Config", "Configuration", "Setup")
"""Endings of records of choices, which are called `…Options`."""


def place(path: Path) -> str:
    """Path within the package."""
    return path.relative_to(SOURCE).as_posix()


def public_classes(tree: ast.Module) -> Iterator[str]:
    """Names of the public classes of a module."""
    return (node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))


def constants(tree: ast.Module) -> Iterator[str]:
    """Names of the public upper-case constants of a module."""
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(name, ast.Name) and name.id.isupper() and not name.id.startswith("_"):
                    yield name.id


def homes(names) -> dict[str, list[Path]]:
    """Modules in which each name is defined."""
    found = defaultdict(list)
    for path, tree in TREES.items():
        for name in dict.fromkeys(names(tree)):
            found[name].append(path)
    return found


CLASSES, CONSTANTS = homes(public_classes), homes(constants)


def shared(found: dict[str, list[Path]], part: str) -> list[str]:
    """Names with several homes, of which one is in the room."""
    return [
        f"{name}: {', '.join(map(place, paths))}"
        for name, paths in sorted(found.items())
        if len(paths) > 1 and part in map(room, paths)
    ]


@pytest.mark.parametrize("part", ROOMS)
def test_class_names_are_unique(part):
    """No two modules of the package define public classes of the same name."""
    found = shared(CLASSES, part)
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("part", ROOMS)
def test_constants_are_unique(part):
    """No two modules of the package define public constants of the same name."""
    found = shared(CONSTANTS, part)
    assert not found, "\n" + "\n".join(found)


def frozen_dataclasses(tree: ast.Module) -> Iterator[ast.ClassDef]:
    """Classes decorated with `dataclass(frozen=True)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for decorator in node.decorator_list:
                text = ast.unparse(decorator)
                if re.match(r"(dataclasses\.)?dataclass\(.*frozen=True", text):
                    yield node


def test_records_of_choices_are_options():
    """Frozen records of choices are called `…Options`."""
    found = [
        f"{place(path)}: {node.name}"
        for path, tree in TREES.items()
        for node in frozen_dataclasses(tree)
        if node.name.endswith(OTHER_WORDS)
    ]
    assert not found


def root_names() -> set[str]:
    """Public names of `truesim`, packages aside."""
    return {name for name in truesim.__all__ if not isinstance(getattr(truesim, name), types.ModuleType)}


def dependencies() -> set[str]:
    """Import names of required and optional dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = [name for group in project["optional-dependencies"].values() for name in group]
    names = {re.match(r"[\w-]+", requirement)[0] for requirement in [*project["dependencies"], *optional]}
    return {IMPORT_NAMES.get(name, name).replace("-", "_") for name in names}


def test_packages_have_names_of_their_own():
    """No package is called as a function of the root or as a dependency; bridges are called as what they lead to."""
    packages = [path.parent for path in TREES if path.name == "__init__.py" and path.parent != SOURCE]
    taken = root_names() | dependencies()
    assert {"load", "rollout", "jax", "mujoco", "pinocchio"} <= taken
    found = [place(package) for package in packages if package.name in taken and room(package / "x.py") != "bridges"]
    assert not found


def test_experiments_do_not_import_programs():
    """No module of the experiments imports a `__main__`: what is shared has a module of its own."""
    found = [
        path.relative_to(ROOT).as_posix()
        for path in ROOT.glob("experiments/**/*.py")
        if re.search(r"^\s*(from|import) .*__main__", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert not found


def test_duplicates_are_found():
    """Tuples, annotations and repeated assignments count; private names and lower case do not."""
    tree = ast.parse("A, B = 1, 2\nC: int = 3\n_D = 4\ne = 5\nclass F: pass\nclass _G: pass\n")
    assert list(constants(tree)) == ["A", "B", "C"]
    assert list(public_classes(tree)) == ["F"]
