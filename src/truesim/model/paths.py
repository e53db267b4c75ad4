"""Every number of a model by name: `bodies/link2.mass`, `joints/elbow.damping`, `gravity`.

A path is `group/name.field`, or just a field of the model itself. Reading and writing are pure: a write returns a
new model.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Array
from truesim.model.actuators import Actuators
from truesim.model.kinds import FREE, SLIDE
from truesim.model.model import Model
from truesim.model.sensors import Sensors

GROUPS = {
    "bodies": "body",
    "joints": "joint",
    "actuators": "actuator",
    "sites": "site",
    "geoms": "geom",
    "sensors": "sensor channel",
}
"""The groups of named things, each with its word in the singular."""
VARIED: dict[type, Callable[[Any, str, int], bool]] = {Actuators: Actuators.applies, Sensors: Sensors.applies}
"""Records of which not all have all fields, and who has which."""


@dataclasses.dataclass(frozen=True)
class Path:
    """One parsed and checked path."""

    text: str
    field: str
    group: str | None = None
    index: int | None = None

    def __str__(self) -> str:
        return self.text


def parse(model: Model, text: str) -> Path:
    """The path that `text` names in this model; an error with the nearest match if there is none."""
    if "/" not in text:
        if text not in _quantities(model):
            raise unknown_name("parameter", text, [*_quantities(model), *(f"{g}/<name>.<field>" for g in GROUPS)])
        return Path(text, text)
    group, rest = text.split("/", 1)
    if group not in GROUPS:
        raise unknown_name("parameter group", group, GROUPS)
    name, _, field = rest.rpartition(".")
    records = getattr(model, group)
    if field not in _quantities(records):
        raise unknown_name(f"field of {group}", field, _quantities(records))
    if name not in records.names:
        raise unknown_name(GROUPS[group], name, records.names)
    i = records.names.index(name)
    if not has(records, field, i):
        raise unknown_name(f"field of {group}/{name}", field, _fields(records, i))
    return Path(text, field, group, i)


def paths(model: Model) -> Iterator[Path]:
    """All paths of the model, in the order of its groups, names and fields."""
    for group in GROUPS:
        records = getattr(model, group)
        for i, name in enumerate(records.names):
            for field in _fields(records, i):
                yield Path(f"{group}/{name}.{field}", field, group, i)
    for field in _quantities(model):
        yield Path(field, field)


def read(model: Model, path: Path | str) -> Array:
    """The value at a path, in SI units."""
    path = parse(model, path) if isinstance(path, str) else path
    value = _array(model, path)
    return value if path.index is None else value[path.index]


def write(model: Model, path: Path | str, value: Any) -> Model:
    """The model with another value at a path; the shape must be that of the old value."""
    path = parse(model, path) if isinstance(path, str) else path
    old = read(model, path)
    if np.shape(value) != np.shape(old):
        raise TruesimError(f"{path} has shape {np.shape(old)}, but the new value has shape {np.shape(value)}.")
    array = _array(model, path)
    if path.index is None:
        new = value
    elif isinstance(array, np.ndarray) and not _is_traced(value):
        new = array.copy()
        new[path.index] = value
    else:
        new = jnp.asarray(array).at[path.index].set(value)
    return eqx.tree_at(lambda m: _array(m, path), model, new)


def unit(model: Model, path: Path) -> str:
    """Unit of the value at a path."""
    text = _quantities(model if path.group is None else getattr(model, path.group))[path.field]
    if path.group == "sensors" and text == "reading":
        return model.sensors.channels[path.index or 0].unit
    units = text.split("|")
    if len(units) == 1 or path.index is None:
        return units[0]
    joint = path.index if path.group == "joints" else model.actuators.joints[path.index]
    kind = model.joints.kinds[joint]
    return f"{units[0]} and {units[1]}" if kind == FREE else units[kind == SLIDE]


def has(records: eqx.Module, field: str, i: int) -> bool:
    """Whether member `i` of a group has this quantity; some depend on its kind or law."""
    applies = VARIED.get(type(records), lambda records, field, i: True)
    return field in _quantities(records) and applies(records, field, i)


def _fields(records: eqx.Module, i: int) -> list[str]:
    """Quantities that member `i` of a group has."""
    return [field for field in _quantities(records) if has(records, field, i)]


def _quantities(module: eqx.Module) -> dict[str, str]:
    """Fields of a module that are physical quantities, with their units."""
    return _units(type(module))


@functools.cache
def _units(record: type[eqx.Module]) -> dict[str, str]:
    return {f.name: f.metadata["unit"] for f in dataclasses.fields(record) if "unit" in f.metadata}


def _array(model: Model, path: Path) -> Array:
    return getattr(model if path.group is None else getattr(model, path.group), path.field)


def _is_traced(value: Any) -> bool:
    return eqx.is_array(value) and not isinstance(value, np.ndarray)
