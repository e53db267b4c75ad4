"""Functions as trees: a compiled kernel serves every function with the same code and contents, not just one object.

A lambda is a new object in every call. As a `FunctionTree` it equals every other function with the same code that
refers to equal values. JAX arrays and tracers that it refers to are leaves of the tree, inputs of a kernel; everything
else (numbers of Python, NumPy arrays, other objects) is part of the structure and compared by value.
"""

import dis
import functools
import types
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

VALUES = (bool, int, float, complex, str, bytes, type(None))
"""Types that are compared by value."""


@jax.tree_util.register_pytree_node_class
class FunctionTree:
    """A function and what it refers to; calling it calls the function."""

    def __init__(self, f: Callable[..., Any]):
        arrays: list[Any] = []
        self._skeleton = _skeleton(f, arrays)
        self._arrays = arrays

    def __call__(self, *args: Any) -> Any:
        """The result of the function."""
        return self._skeleton.rebuild(iter(self._arrays))(*args)

    def tree_flatten(self) -> tuple[list[Any], Any]:
        """Arrays that the function refers to, and all the rest."""
        return self._arrays, self._skeleton

    @classmethod
    def tree_unflatten(cls, skeleton: Any, arrays: Any) -> "FunctionTree":
        """The function with other arrays."""
        new = object.__new__(cls)
        new._skeleton, new._arrays = skeleton, list(arrays)
        return new


class _Part:
    """A part of a function, without its arrays; parts are equal if their keys are."""

    def __init__(self, key: Hashable, rebuild: Callable[[Iterator[Any]], Any]):
        self.key, self.rebuild = key, rebuild

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Part) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class _Identity:
    """An object that is compared by identity, and kept alive as long as it is."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _skeleton(value: Any, arrays: list[Any]) -> _Part:
    """The part that stands for a value; the arrays in it are appended to `arrays`."""
    if _is_number(value):
        arrays.append(value)
        return _Part("array", next)
    if isinstance(value, types.FunctionType):
        return _function(value, arrays)
    if isinstance(value, types.MethodType):
        return _call(lambda f, owner: types.MethodType(f, owner), (value.__func__, value.__self__), arrays)
    if isinstance(value, functools.partial):
        names = tuple(value.keywords)
        contents = (value.func, *value.args, *value.keywords.values())
        return _call(functools.partial(_partial, names), contents, arrays, names)
    if isinstance(value, np.ndarray):
        return _constant((value.shape, value.dtype.str, value.tobytes()), value)
    if isinstance(value, VALUES):
        return _constant(_value_key(value), value)
    return _tree(value, arrays)


def _function(f: types.FunctionType, arrays: list[Any]) -> _Part:
    """A function: its code, what it closes over, its defaults, and the values of the global names that it uses."""
    cells = [cell.cell_contents for cell in f.__closure__ or ()]
    if any(content is f for content in cells):  # a function that calls itself
        return _constant(_Identity(f), f)
    keywords = f.__kwdefaults__ or {}
    defaults = f.__defaults__ or ()
    code, scope = f.__code__, f.__globals__
    used = {name: scope[name] for name in _global_names(code) if name in scope}
    numbers = {name: value for name, value in used.items() if _is_number(value)}
    others = tuple((name, _global_key(value)) for name, value in used.items() if name not in numbers)

    def make(*contents: Any) -> types.FunctionType:
        rest = iter(contents)
        closure = tuple(types.CellType(next(rest)) for _ in cells) or None
        given = tuple(next(rest) for _ in defaults) or None
        by_name = {name: next(rest) for name in keywords}
        own = {**scope, **{name: next(rest) for name in numbers}} if numbers else scope
        new = types.FunctionType(code, own, f.__name__, given, closure)
        new.__kwdefaults__ = by_name or None
        return new

    contents = (*cells, *defaults, *keywords.values(), *numbers.values())
    return _call(make, contents, arrays, (code, _Identity(scope), others, tuple(keywords), tuple(numbers)))


def _call(make: Callable[..., Any], contents: tuple[Any, ...], arrays: list[Any], key: Hashable = ()) -> _Part:
    """The part of a value that is made from others."""
    parts = [_skeleton(content, arrays) for content in contents]
    return _Part((key, tuple(parts)), lambda rest: make(*[part.rebuild(rest) for part in parts]))


def _partial(names: tuple[str, ...], f: Callable[..., Any], *values: Any) -> functools.partial:
    first = len(values) - len(names)
    return functools.partial(f, *values[:first], **dict(zip(names, values[first:], strict=True)))


def _constant(key: Hashable, value: Any) -> _Part:
    return _Part(key, lambda rest: value)


def _tree(value: Any, arrays: list[Any]) -> _Part:
    """Any other object: a tree of JAX (a network, a tuple, a dictionary), or a leaf, compared by identity."""
    leaves, structure = jax.tree.flatten(value)
    if not _is_hashable(structure) or (len(leaves) == 1 and leaves[0] is value):
        return _constant(_Identity(value), value)
    if isinstance(value, eqx.Module):  # numbers of a module are numbers, whichever library holds them
        leaves = [jnp.asarray(x) if eqx.is_inexact_array(x) else x for x in leaves]
    return _call(lambda *rest: jax.tree.unflatten(structure, rest), tuple(leaves), arrays, structure)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


@functools.lru_cache(maxsize=1024)
def _global_names(code: types.CodeType) -> tuple[str, ...]:
    """Global names that a code object, or one within it, uses."""
    own = [i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    inner = [name for x in code.co_consts if isinstance(x, types.CodeType) for name in _global_names(x)]
    return tuple(dict.fromkeys([*own, *inner]))


def _is_number(value: Any) -> bool:
    """True if a value is a floating-point array of JAX, or a tracer of one."""
    return isinstance(value, jax.Array) and bool(jnp.issubdtype(value.dtype, jnp.inexact))


def _global_key(value: Any) -> Hashable:
    return _value_key(value) if isinstance(value, VALUES) else _Identity(value)


def _value_key(value: Any) -> Hashable:
    """A key that tells 1, 1.0 and True apart, and 0.0 and -0.0."""
    return type(value), repr(value) if isinstance(value, float | complex) else value
