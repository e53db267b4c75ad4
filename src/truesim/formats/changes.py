"""What differs between two models, number by number."""

import dataclasses
import functools

import equinox as eqx
import numpy as np

from truesim.core.errors import TruesimError
from truesim.model import paths
from truesim.model.laws import with_law
from truesim.model.model import Model

ROUNDING = 1e-12
"""A number that a file gives back this close, relative to its vector's largest entry, is the number."""


def differing(a: Model, b: Model) -> list[paths.Path]:
    """Paths of `a` at which `b`, which may lack some of them, has another value beyond rounding."""
    return [path for path in paths.paths(a) if _exists(b, path) and not _close(a, b, path)]


def _exists(model: Model, path: paths.Path) -> bool:
    """Whether a model has a number of this name; models from different formats are matched by name."""
    if path.group is None:
        return True
    name = str(path).removeprefix(f"{path.group}/").removesuffix(f".{path.field}")
    records = getattr(model, path.group)
    return name in records.names and paths.has(records, path.field, records.names.index(name))


def _close(a: Model, b: Model, path: paths.Path) -> bool:
    x, y = np.asarray(paths.read(a, path), dtype=float), np.asarray(paths.read(b, str(path)), dtype=float)
    if path.field == "orientation" and np.dot(x, y) < 0:
        y = -y
    scale = np.max(np.abs(x), initial=0.0)
    return bool(np.all(np.abs(x - y) <= ROUNDING * scale))


def rounded_off(model: Model, base: Model) -> Model:
    """The model in 64-bit NumPy arrays, with the base's own number wherever the two differ by float32 rounding only."""
    for group, field in _fields(model):
        new, old = np.asarray(_get(model, group, field)), np.asarray(_get(base, group, field))
        if new.dtype != np.float64:
            decimal = np.array([float(str(x)) for x in new.ravel()], dtype=float).reshape(new.shape)
            new = np.where(new == old.astype(new.dtype), old, decimal)
        model = eqx.tree_at(functools.partial(_get, group=group, field=field), model, new)
    return model


def with_values(base: Model, model: Model, changed: list[paths.Path]) -> Model:
    """The base with the model's values at these paths."""
    for path in changed:
        base = paths.write(base, str(path), np.asarray(paths.read(model, path), dtype=float))
    return base


def with_laws(base: Model, model: Model) -> Model:
    """The base with the model's laws, for actuators of the same name on the same joint."""
    for name, law, joint in zip(model.actuators.names, model.actuators.laws, model.actuators.joints, strict=True):
        if name in base.actuators.names:
            i = base.actuator(name)
            same = base.joints.names[base.actuators.joints[i]] == model.joints.names[joint]
            base = with_law(base, name, law) if same and law != base.actuators.laws[i] else base
    return base


def check_finite(model: Model) -> None:
    """Refuse a model with numbers that no file can give back."""
    for path in paths.paths(model):
        if not np.all(np.isfinite(value := np.asarray(paths.read(model, path)))):
            raise TruesimError(f"{path} is {value.tolist()}; only finite numbers can be saved.")


def check_structure(model: Model, base: Model) -> None:
    """Refuse a model whose names, kinds or flags are not those of its source file."""
    for group in paths.GROUPS:
        mine, theirs = getattr(model, group), getattr(base, group)
        for field in dataclasses.fields(mine):
            number = "unit" in field.metadata
            if not number and field.name != "meshes" and getattr(mine, field.name) != getattr(theirs, field.name):
                raise TruesimError(
                    f"The {field.name!r} of the {group} differ from the file; only numbers can be saved."
                )


def _fields(model: Model) -> list[tuple[str | None, str]]:
    return list(dict.fromkeys((path.group, path.field) for path in paths.paths(model)))


def _get(model: Model, group: str | None, field: str) -> np.ndarray:
    return getattr(model if group is None else getattr(model, group), field)
