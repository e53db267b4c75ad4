"""Structure of kernels: the objects that a kernel is made from, by which it is found before anything is traced.

The key of a structure is a hash of its objects, of the shapes and types of the arguments, of all sources of the package
and of the versions of every library that takes part in a trace. Only values whose meaning is the same in every process
have a canonical text: numbers, text, arrays by their bytes, enumerations, containers, data classes and plain objects of
this package, and module-level functions of it. With anything else in it (a lambda, a class of a user) a structure has
no key, and its kernel is traced as any other.
"""

import dataclasses
import enum
import functools
import hashlib
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import Any

import equinox as eqx
import jax
import jaxlib
import numpy as np

from truesim.core.fields import is_annotation

PACKAGE = __name__.partition(".")[0]
TRACE_FLAGS = (
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_default_matmul_precision",
    "jax_disable_jit",
    "jax_debug_nans",
    "jax_debug_infs",
    "jax_threefry_partitionable",
)
"""Settings of JAX that change traces, beside the precision, which `compile` chooses."""
MAX_DEPTH = 100
"""Nesting beyond which an object has no key; it would otherwise be followed for ever if it contained itself."""


@dataclasses.dataclass(frozen=True)
class KernelStructure:
    """Everything that decides what a kernel computes, and the structure of its results."""

    name: str
    """Name of the kernel in messages; part of its key."""
    parts: tuple[Any, ...]
    """Objects that the function reads while it is traced. Numbers that are arguments of the kernel instead should be
    NaN in them, in the key and while tracing: a number that leaked into the code would then make results NaN."""
    results: Any
    """Tree of the function's results, with any number in the place of each array."""

    def digest(self) -> bytes | None:
        """Hash of name and parts, or None if something in them has no canonical text."""
        digest = hashlib.sha256()
        try:
            for word in _words((self.name, self.parts), 0):
                digest.update(word.encode() + b"\n")
        except _NoTextError:
            return None
        return digest.digest()

    def key(self, example_args: Any, *settings: Any) -> bytes | None:
        """Key of the kernel, or None if it has none.

        Args:
            example_args: Arguments; of arrays, only shapes and types count.
            settings: Whatever else decides on the trace, such as the precision.
        """
        own = self.digest()
        if own is None:
            return None
        digest = hashlib.sha256(own + package_digest() + repr(_versions()).encode())
        try:
            for word in _words((jax.tree.map(_shape, example_args), settings), 0):
                digest.update(word.encode() + b"\n")
        except _NoTextError:
            return None
        return digest.digest()


class _NoTextError(Exception):
    """An object has no canonical text."""


def _shape(x: Any) -> Any:
    """Shape and type of an array; anything else itself."""
    if isinstance(x, np.ndarray | np.generic | jax.Array | jax.ShapeDtypeStruct):
        return "shape", tuple(x.shape), str(x.dtype)
    return x


def _words(x: Any, depth: int) -> Iterator[str]:
    """Canonical text of a value, in parts."""
    if depth > MAX_DEPTH:
        raise _NoTextError
    if x is None or (isinstance(x, bool | int | str | bytes | complex) and not isinstance(x, enum.Enum)):
        yield f"{type(x).__name__}:{x!r}"
    elif isinstance(x, float) and not isinstance(x, np.generic):
        yield f"float:{x.hex()}"
    elif isinstance(x, np.ndarray | np.generic | jax.Array):
        yield _array_words(x)
    elif isinstance(x, enum.Enum):
        yield f"enum:{_own_name(type(x))}.{x.name}"
    elif isinstance(x, type):
        yield f"type:{_own_name(x)}"
    elif isinstance(x, np.dtype):
        yield f"dtype:{x}"
    elif isinstance(x, types.FunctionType):
        yield f"function:{_function_name(x)}"
    else:
        heading, members = _members(x)
        yield heading
        for member in members:
            yield from _words(member, depth + 1)
        yield "end"


def _array_words(x: Any) -> str:
    if isinstance(x, jax.core.Tracer):
        raise _NoTextError
    array = np.asarray(x)
    if array.dtype.hasobject:
        raise _NoTextError
    content = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return f"array:{array.dtype}:{array.shape}:{content}"


def _members(x: Any) -> tuple[str, list[Any]]:
    """Heading of a compound value, and the values in it."""
    if isinstance(x, tuple | list):
        name = type(x).__name__ if type(x) in (tuple, list) else _own_name(type(x))
        return f"{name}[{len(x)}", list(x)
    if isinstance(x, dict | types.MappingProxyType):
        return f"dict[{len(x)}", [value for pair in x.items() for value in pair]
    if isinstance(x, set | frozenset):
        return f"set[{len(x)}", sorted("\n".join(_words(value, 0)) for value in x)
    if isinstance(x, PurePath):
        return "path", [str(x)]
    if isinstance(x, functools.partial):
        return "partial", [x.func, x.args, x.keywords]
    name = _own_name(type(x))
    if dataclasses.is_dataclass(x):
        kept = [field.name for field in dataclasses.fields(x) if not is_annotation(field)]
        return f"record:{name}", [value for field in kept for value in (field, getattr(x, field))]
    if any(vars(base).get("__slots__") for base in type(x).__mro__) or not hasattr(x, "__dict__"):
        raise _NoTextError
    computed = {key for base in type(x).__mro__ for key, v in vars(base).items() if _is_computed(v)}
    return f"object:{name}", [value for key, v in vars(x).items() if key not in computed for value in (key, v)]


def _is_computed(attribute: Any) -> bool:
    return isinstance(attribute, functools.cached_property)


def _own_name(kind: type) -> str:
    """Name of a class of this package that can be found under its name."""
    return _function_name(kind)


def _function_name(x: Callable[..., Any]) -> str:
    """Name of a function or class of this package; it must be found under that name, so that it has no closure."""
    module, name = x.__module__, x.__qualname__
    if module != PACKAGE and not module.startswith(f"{PACKAGE}."):
        raise _NoTextError
    found: Any = sys.modules.get(module)
    for word in name.split("."):
        found = getattr(found, word, None)
    if found is not x:
        raise _NoTextError
    return f"{module}.{name}"


@functools.cache
def package_digest() -> bytes:
    """Hash of all sources of this package: a kernel that was traced from other sources is never found."""
    digest = hashlib.sha256()
    folder = Path(__file__).parents[2]
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.digest()


def _versions() -> tuple[Any, ...]:
    """Versions and settings of everything that takes part in a trace."""
    libraries = (sys.version, jax.__version__, jaxlib.__version__, eqx.__version__, np.__version__)
    return libraries, tuple((name, str(getattr(jax.config, name))) for name in TRACE_FLAGS)
