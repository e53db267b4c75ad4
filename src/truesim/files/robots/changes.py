"""Differences between two models, quantity by quantity."""

import dataclasses
import functools
from typing import Any

import equinox as eqx
import numpy as np

from truesim.core.errors import TruesimError
from truesim.physics.model import paths
from truesim.physics.model.actuator_models import with_actuator_model
from truesim.physics.model.model import Model
from truesim.physics.model.tendons import couplings, with_coupling

FILE_ROUNDING = 1e-12
"""Difference, relative to the largest entry of a vector, up to which a value counts as unchanged by a file."""


def differing(a: Model, b: Model) -> list[paths.Path]:
    """Paths of `a` at which `b` has another value beyond rounding; paths that `b` lacks are skipped."""
    equal = {at for at in _fields(a) if _is_equal(a, b, *at)}
    others = (path for path in paths.paths(a) if (path.group, path.field) not in equal)
    return [path for path in others if _exists(b, path) and not _close(a, b, path)]


def _is_equal(a: Model, b: Model, group: str | None, field: str) -> bool:
    """True if a field has the same finite numbers for the same names, so that none of its paths can differ."""
    if group is not None and getattr(a, group).names != getattr(b, group).names:
        return False
    x, y = np.asarray(_get(a, group, field)), np.asarray(_get(b, group, field))
    return bool(np.array_equal(x, y) and np.all(np.isfinite(x)))


def _exists(model: Model, path: paths.Path) -> bool:
    """True if a model has a quantity of this name; models from different formats are matched by name."""
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
    return bool(np.all(np.abs(x - y) <= FILE_ROUNDING * scale))


def undo_rounding(model: Model, base: Model) -> Model:
    """Model in 64-bit NumPy arrays, with the base's value wherever the two differ by float32 rounding only."""
    for group, field in _fields(model):
        own = _get(model, group, field)
        if isinstance(own, np.ndarray) and own.dtype == np.float64:
            continue
        new, old = np.asarray(own), np.asarray(_get(base, group, field))
        if new.dtype != np.float64:
            decimal = np.array([float(str(x)) for x in new.ravel()], dtype=float).reshape(new.shape)
            new = np.where(new == old.astype(new.dtype), old, decimal)
        model = eqx.tree_at(functools.partial(_get, group=group, field=field), model, new)
    return model


def with_values(base: Model, model: Model, changed: list[paths.Path]) -> Model:
    """Base with the model's values at these paths."""
    for path in changed:
        base = paths.write(base, str(path), np.asarray(paths.read(model, path), dtype=float))
    return base


def with_actuator_models(base: Model, model: Model) -> Model:
    """Base with the model's actuator models, for actuators of the same name on the same joint."""
    for k, (name, kind) in enumerate(zip(model.actuators.names, model.actuators.models, strict=True)):
        if name in base.actuators.names:
            i = base.actuator(name)
            same = base.driven(i) == model.driven(k)
            base = with_actuator_model(base, name, kind) if same and kind != base.actuators.models[i] else base
    return base


def with_couplings(base: Model, model: Model) -> Model:
    """Base with the model's motors that turn with several joints, where it has these joints."""
    for name, joints in couplings(model).items():
        base = with_coupling(base, name, joints) if set(joints) <= set(base.joints.names) else base
    return base


def check_finite(model: Model) -> None:
    """Refuse a model with numbers that are not finite."""
    finite = {at for at in _fields(model) if np.all(np.isfinite(np.asarray(_get(model, *at))))}
    for path in paths.paths(model):
        if (path.group, path.field) in finite:
            continue
        if not np.all(np.isfinite(value := np.asarray(paths.read(model, path)))):
            raise TruesimError(f"{path} is {value.tolist()}; only finite numbers can be saved.")


def check_structure(model: Model, base: Model) -> None:
    """Refuse a model whose names, kinds or flags differ from its source file."""
    for group in paths.GROUPS:
        mine, theirs = getattr(model, group), getattr(base, group)
        for field in dataclasses.fields(mine):
            number = "unit" in field.metadata
            if not number and field.name != "meshes" and getattr(mine, field.name) != getattr(theirs, field.name):
                raise TruesimError(
                    f"The {field.name!r} of the {group} differ from the file; only numbers can be saved."
                )


def _fields(model: Model) -> list[tuple[str | None, str]]:
    """Group and name of each field that holds quantities."""
    return list(dict.fromkeys((path.group, path.field) for path in paths.paths(model)))


def _get(model: Model, group: str | None, field: str) -> Any:
    """Array of a field; in `eqx.tree_at`, the placeholder of a leaf."""
    return getattr(model if group is None else getattr(model, group), field)
