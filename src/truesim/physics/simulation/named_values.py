"""Every number of a simulator by name.

Names are the paths of the model (`joints/elbow.damping`, `bodies/hand.com[2]`, `gravity`), and besides them

- `timestep` [s],
- `networks/<rule>`: all weights of a network as one vector,
- `contact.<field>`, `joint_model.<field>`, `integrator.<field>`: numbers of the solvers, such as `contact.recovery`.

In a pattern `*` stands for any text. Reads and writes are pure and take traced values.
"""

import dataclasses
import fnmatch
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.tracing import is_traced
from truesim.core.typing import Array
from truesim.physics.augmentation.learned import LearnedPhysics
from truesim.physics.model import paths, targets
from truesim.physics.model.model import Model
from truesim.physics.model.path_words import meant_path
from truesim.physics.model.structure import FRICTION_FIELDS
from truesim.physics.model.targets import Target

NETWORKS = "networks"
"""Group of the paths that name networks."""
SIMULATOR = "simulator"
"""Group of the numbers that a simulator has beside its model and its networks."""
SOLVERS = ("contact", "joint_model", "integrator")
"""Parts of a simulator that have numbers of their own."""


@runtime_checkable
class Named(Protocol):
    """A simulator, as far as its numbers are concerned."""

    @property
    def model(self) -> Model:
        """The robot."""

    @property
    def learned(self) -> LearnedPhysics | None:
        """Networks within the physics."""

    @property
    def timestep(self) -> Any:
        """Time step [s]."""

    @property
    def history(self) -> int:
        """Number of commands that delays can look back into."""

    @property
    def contact(self) -> Any:
        """Contact model."""

    @property
    def joint_model(self) -> Any:
        """Model of dry friction and limits."""

    @property
    def integrator(self) -> Any:
        """Integrator."""


S = TypeVar("S", bound=Named)


def names(simulator: Named) -> list[str]:
    """All names of a simulator's numbers, in the order of its parts."""
    return [*(str(path) for path in paths.paths(simulator.model)), *_own_names(simulator)]


def expand(simulator: Named, pattern: str) -> list[Target]:
    """Targets of a name or pattern; an error with the nearest match if there is none."""
    text, element = targets.split_element(pattern)
    own = _own_names(simulator)
    if text in own:
        return [_own_target(simulator, text, element)]
    if not targets.is_pattern(text):
        if text.split("/")[0] == NETWORKS or text.split(".")[0] in SOLVERS:
            raise unknown_name("parameter", text, own)
        if "/" not in text and text not in {str(p) for p in paths.paths(simulator.model)}:
            valid = [*names(simulator), *(str(path) for path in paths.servo_gains(simulator.model))]
            raise unknown_name("parameter", text, valid, meant_path(text, valid))
        return targets.expand(simulator.model, pattern)
    found = [_own_target(simulator, name, element) for name in own if fnmatch.fnmatchcase(name, text)]
    if found and not any(fnmatch.fnmatchcase(str(p), text) for p in paths.paths(simulator.model)):
        return found
    return targets.expand(simulator.model, pattern) + found


def read(simulator: Named, target: Target) -> Array:
    """Value at a target, in SI units."""
    if target.path.group not in (NETWORKS, SIMULATOR):
        return targets.read(simulator.model, target)
    if target.path.group == NETWORKS:
        assert simulator.learned is not None, "weights belong to a network"
        value = simulator.learned.weights(target.path.index or 0)
    else:
        value = _attribute(simulator, target.path.field)
    return target.sign * (value if target.element is None else value[target.element])


def write(simulator: S, target: Target, value: Any) -> S:
    """The simulator with another value at a target; the shape must be that of the old value.

    The recorded structure of the model stays, so that all simulators that differ in values have one tree structure.
    """
    if target.path.group not in (NETWORKS, SIMULATOR):
        model = dataclasses.replace(targets.write(simulator.model, target, value), structure=simulator.model.structure)
        return dataclasses.replace(simulator, model=model)  # type: ignore[type-var]
    value = target.sign * value
    if target.element is not None:
        whole = read(simulator, target._replace(element=None, sign=1))
        value = targets.with_element(whole, target.element, value)
    if target.path.group == NETWORKS:
        assert simulator.learned is not None, "weights belong to a network"
        learned = simulator.learned.with_weights(target.path.index or 0, value)
        return dataclasses.replace(simulator, learned=learned)  # type: ignore[type-var]
    return eqx.tree_at(lambda s: _attribute(s, target.path.field), simulator, value)


def write_all(simulator: S, values: Sequence[tuple[Target, Any]]) -> S:
    """The simulator with other values at several targets, as by `write` one after the other, but faster."""
    arrays: dict[tuple[str, str], np.ndarray] = {}
    rest = []
    for target, value in values:
        group, field, at = target.path.group, target.path.field, target.path.index
        old = None if group in (None, NETWORKS, SIMULATOR) else getattr(getattr(simulator.model, group), field, None)
        place = at if target.element is None else (at, target.element)
        if group is None or not isinstance(old, np.ndarray) or isinstance(value, jax.Array) or at is None:
            rest.append((target, value))
            continue
        if paths.is_servo_gain(simulator.model, target.path):
            rest.append((target, value))
            continue
        own = arrays.setdefault((group, field), old.copy())
        if np.shape(own[place]) != np.shape(value):
            rest.append((target, value))
            continue
        own[place] = target.sign * value
    if arrays:
        model = simulator.model
        model = eqx.tree_at(lambda m: [getattr(getattr(m, g), f) for g, f in arrays], model, list(arrays.values()))
        simulator = dataclasses.replace(simulator, model=model)  # type: ignore[type-var]
    for target, value in rest:
        simulator = write(simulator, target, value)
    return simulator


def replace(simulator: S, values: Mapping[str, Any]) -> S:
    """The simulator with other values by name; a pattern gives one value to everything that it stands for."""
    for name, value in values.items():
        for target in expand(simulator, name):
            new = _number(value)
            old = read(simulator, target)
            if np.shape(new) != np.shape(old):
                raise TruesimError(f"{target} has shape {np.shape(old)}, but the new value has shape {np.shape(new)}.")
            _check_room(simulator, target, new)
            simulator = write(simulator, target, new)
    return simulator


def _number(value: Any) -> Array:
    """A value as a floating-point array; JAX arrays and tracers stay what they are."""
    if not isinstance(value, jax.Array):
        return np.asarray(value, dtype=float)
    return value if jnp.issubdtype(value.dtype, jnp.inexact) else value.astype(jnp.result_type(float))


def _own_names(simulator: Named) -> list[str]:
    """Names of the numbers that are not the model's."""
    networks = () if simulator.learned is None else simulator.learned.names
    return [f"{NETWORKS}/{name}" for name in networks] + ["timestep", *_solver_numbers(simulator)]


def _solver_numbers(simulator: Named) -> list[str]:
    """Dotted names of the arrays in contact model, joint model and integrator."""
    found = []
    for part in SOLVERS:
        leaves, _ = jax.tree_util.tree_flatten_with_path(getattr(simulator, part))
        keys = [path for path, leaf in leaves if eqx.is_inexact_array_like(leaf)]
        found += [".".join([part, *_attributes(path)]) for path in keys]
    return found


def _attributes(path: Iterable[Any]) -> list[str]:
    return [str(getattr(key, "name", getattr(key, "key", getattr(key, "idx", key)))) for key in path]


def _attribute(simulator: Any, name: str) -> Any:
    return functools.reduce(getattr, name.split("."), simulator)


def _own_target(simulator: Named, name: str, element: int | None) -> Target:
    """Target of a number that is not the model's."""
    if name.startswith(f"{NETWORKS}/"):
        assert simulator.learned is not None, "a simulator with names of networks has some"
        rule = name.removeprefix(f"{NETWORKS}/")
        found = Target(paths.Path(name, "weights", NETWORKS, simulator.learned.names.index(rule)))
    else:
        found = Target(paths.Path(name, name, SIMULATOR))
    targets.check_element(name, np.shape(read(simulator, found)), element)
    return found._replace(element=element)


def _check_room(simulator: Named, target: Target, value: Array) -> None:
    """Refuse a value that has no effect since the simulator was made without the constraint or history it needs."""
    path, known = target.path, not is_traced(value)
    if known and not np.any(np.asarray(value) > 0):
        return
    if path.group == "joints" and path.field in FRICTION_FIELDS and not _has_friction(simulator, path):
        raise TruesimError(_no_effect(target, "dry friction in this joint", "a positive value"))
    if path.field == "load_friction" and not getattr(simulator.joint_model, "loaded", False):
        raise TruesimError(_no_effect(target, "friction under load", "a positive value"))
    if (path.group, path.field) == ("actuators", "delay"):
        longest = max(simulator.history - 1, 0)
        if not longest or (known and not is_traced(simulator.timestep) and value > longest * simulator.timestep + 1e-9):
            raise TruesimError(
                f"This simulator has room for delays of {longest} time steps; {target} needs more. "
                "Make it with Simulator.of(model, max_delay=...)."
            )
    if path.field == "restitution" and not getattr(simulator.contact, "bounces", True):
        raise TruesimError(_no_effect(target, "restitution", "a positive value"))


def _has_friction(simulator: Named, path: paths.Path) -> bool:
    dofs = simulator.joint_model.rough(simulator.model)
    links = [link for link in simulator.model.topology.links if link.joint == path.index]
    in_joints = any(d in dofs for link in links for d in range(link.v.start, link.v.stop))
    return in_joints or path.index in getattr(simulator.contact, "friction", ())


def _no_effect(target: Target, what: str, value: str) -> str:
    return (
        f"{target} has no effect: this simulator was made without {what}. "
        f"Write {value} to the model before Simulator.of(model)."
    )
