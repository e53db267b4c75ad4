"""Quantities of a model by path: `bodies/link2.mass`, `joints/elbow.damping`, `gravity`.

A path is `group/name.field`, or just a field of the model itself. Reading and writing are pure: a write returns a
new model. The gains of an affine servo have paths of their own, `actuators/<name>.kp` and `.kv` (see `servos`).
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Array
from truesim.physics.model import servos
from truesim.physics.model.actuators import Actuators
from truesim.physics.model.kinds import FREE, SLIDE
from truesim.physics.model.model import Model
from truesim.physics.model.path_words import meant_field, meant_group, meant_path
from truesim.physics.model.sensors import Sensors
from truesim.physics.model.structure import record_write

if TYPE_CHECKING:
    Quantity = Any
else:
    Quantity = Array | np.floating
    """Value at a path: an array, or an entry of a NumPy array."""

GROUPS = {
    "bodies": "body",
    "joints": "joint",
    "actuators": "actuator",
    "sites": "site",
    "geoms": "geom",
    "sensors": "sensor channel",
    "contacts": "contact pair",
    "equalities": "equality constraint",
    "tendons": "tendon",
}
"""Groups of a model with their names in the singular."""
FIELD_FILTERS: dict[type, Callable[[Any, str, int], bool]] = {Actuators: Actuators.applies, Sensors: Sensors.applies}
"""Records whose members do not all have the same fields, with the function that decides."""


@dataclasses.dataclass(frozen=True)
class Path:
    """Parsed and checked path."""

    text: str
    field: str
    group: str | None = None
    index: int | None = None

    def __str__(self) -> str:
        return self.text


def parse(model: Model, text: str) -> Path:
    """Parse a path in this model; an unknown name raises an error with the nearest match."""
    if "/" not in text:
        if text not in _quantities(model):
            valid = [*_quantities(model), *(f"{g}/<name>.<field>" for g in GROUPS)]
            raise unknown_name("parameter", text, valid, meant_path(text, [str(path) for path in paths(model)]))
        return Path(text, text)
    group, rest = text.split("/", 1)
    if group not in GROUPS:
        raise unknown_name("parameter group", group, GROUPS, meant_group(group, GROUPS))
    name, _, field = rest.rpartition(".")
    records = getattr(model, group)
    known = [*_quantities(records), *(servos.GAINS if group == "actuators" else ())]
    if field not in known:
        raise unknown_name(f"field of {group}", field, known, meant_field(group, field, known))
    if name not in records.names:
        raise unknown_name(GROUPS[group], name, records.names)
    i = records.names.index(name)
    if group == "actuators" and servos.is_gain(records, field, i):
        servos.check(records, field, i)
        return Path(text, field, group, i)
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


def read(model: Model, path: Path | str) -> Quantity:
    """Value at a path, in SI units."""
    path = parse(model, path) if isinstance(path, str) else path
    if is_servo_gain(model, path):
        return servos.read(model.actuators, path.field, path.index)
    value = _array(model, path)
    return value if path.index is None else value[path.index]


def write(model: Model, path: Path | str, value: Any) -> Model:
    """Model with another value at a path, of the same shape as the old value."""
    path = parse(model, path) if isinstance(path, str) else path
    old = read(model, path)
    if np.shape(value) != np.shape(old):
        raise TruesimError(f"{path} has shape {np.shape(old)}, but the new value has shape {np.shape(value)}.")
    if is_servo_gain(model, path):
        actuator = str(path).rpartition(".")[0]
        for field, new in servos.written(model.actuators, path.field, path.index, value).items():
            model = write(model, f"{actuator}.{field}", new)
        return model
    model = record_write(model, path.group, path.field, path.index, value)
    array = _array(model, path)
    if path.index is None:
        new = value
    elif isinstance(array, np.ndarray) and not _is_traced(value):
        new = array.copy()
        new[path.index] = value
    else:
        new = jnp.asarray(array).at[path.index].set(value)
    return eqx.tree_at(lambda m: _array(m, path), model, new)


def servo_gains(model: Model) -> Iterator[Path]:
    """Paths of the gains of affine servos: `actuators/<name>.kp` and `.kv`. They are not among `paths`."""
    for i, name in enumerate(model.actuators.names):
        for field in servos.gains(model.actuators, i):
            yield Path(f"actuators/{name}.{field}", field, "actuators", i)


def is_servo_gain(model: Model, path: Path) -> bool:
    """True if a path names a gain of an affine servo."""
    return path.group == "actuators" and servos.is_gain(model.actuators, path.field, path.index)


def unit(model: Model, path: Path) -> str:
    """Unit of the value at a path."""
    if is_servo_gain(model, path):
        text = servos.UNITS[path.field]
    else:
        text = _quantities(model if path.group is None else getattr(model, path.group))[path.field]
    if path.group == "sensors" and text == "measurement":
        return model.sensors.channels[path.index or 0].unit
    units = text.split("|")
    if len(units) == 1 or path.index is None or path.group == "tendons":
        return units[0]
    joint = path.index if path.group == "joints" else model.actuators.joints[path.index]
    kind = model.joints.kinds[joint] if joint >= 0 else SLIDE
    return f"{units[0]} and {units[1]}" if kind == FREE else units[kind == SLIDE]


def has(records: eqx.Module, field: str, i: int) -> bool:
    """True if member `i` of a group has this quantity; some depend on its kind or actuator model."""
    applies = FIELD_FILTERS.get(type(records), lambda records, field, i: True)
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


def _array(model: Model, path: Path) -> Any:
    """Array that holds a path; in `eqx.tree_at`, the placeholder of a leaf."""
    return getattr(model if path.group is None else getattr(model, path.group), path.field)


def _is_traced(value: Any) -> bool:
    return isinstance(value, jax.Array)
