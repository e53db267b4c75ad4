"""The interpreter that walks a jaxpr and builds the graph, and the registry of its rules."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
from jax.extend import core as jex
from jax.extend import source_info_util

from truesim.native.algebra import Algebra
from truesim.native.lower.values import Array, Elements, Nodes, Rows, Shape, constant, is_huge
from truesim.native.types import BOOL, F64, Scalar, scalar_type


class UnsupportedError(NotImplementedError):
    """A function uses something that native kernels cannot run; use XLA for it instead."""


Equation = Any
"""A `JaxprEqn`; its abstract values are not typed by JAX."""
Rule = Callable[..., Array | Sequence[Array]]

RULES: dict[str, Rule] = {}
"""Lowering rule of each primitive, by name: `rule(lowering, equation, *operands)`."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """A decorator that registers a function as the lowering rule of the named primitives."""

    def register(f: Rule) -> Rule:
        for name in names:
            assert name not in RULES, f"two rules for {name}"
            RULES[name] = f
        return f

    return register


class Lowering:
    """State of one lowering: the graph, which lanes are active, and where we are in the source."""

    def __init__(self, graph: Algebra, has_fma: bool = True):
        self.graph = graph
        self.has_fma = has_fma
        self.mask: int | None = None
        """Boolean node: lanes that execute this code (None: all). Only loops that may not end need it."""
        self.is_double = False
        """Whether the program computes in float64."""
        self._location = ""

    # Walking a jaxpr

    def run(self, jaxpr: jex.Jaxpr, consts: Sequence[Array], args: Sequence[Array]) -> list[Array]:
        """Values of a jaxpr's outputs."""
        uses = Counter(v for eqn in jaxpr.eqns for v in eqn.invars if isinstance(v, jex.Var))
        uses.update(v for v in jaxpr.outvars if isinstance(v, jex.Var))
        env: dict[jex.Var, Array] = {}

        def write(var: jex.Var, value: Array) -> None:
            if isinstance(value, Rows) and not value.is_cheap and uses[var] > 1:
                value = value.materialized()
            env[var] = value

        for var, value in zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True):
            write(var, value)
        for eqn in jaxpr.eqns:
            operands = [self.read(env, v) for v in eqn.invars]
            for var, value in zip(eqn.outvars, self.equation(eqn, operands), strict=True):
                write(var, value)
        return [self.read(env, v) for v in jaxpr.outvars]

    def read(self, env: dict[jex.Var, Array], atom: Any) -> Array:
        """Value of a variable or literal."""
        if not isinstance(atom, jex.Var):
            return self.literal(np.asarray(atom.val, atom.aval.dtype))
        return env[atom]

    def run_closed(self, closed: jex.ClosedJaxpr, args: Sequence[Array]) -> list[Array]:
        """Values of a closed jaxpr's outputs."""
        return self.run(closed.jaxpr, [self.literal(c) for c in closed.consts], args)

    def equation(self, eqn: Equation, operands: list[Array]) -> Sequence[Array]:
        """Values of one equation's outputs."""
        outer = self._location
        here = source_info_util.summarize(eqn.source_info)
        self._location = here or outer
        found = RULES.get(eqn.primitive.name)
        if found is None:
            raise self.unsupported(f"the primitive `{eqn.primitive.name}` is not supported")
        result = found(self, eqn, *operands)
        self._location = outer
        return [result] if isinstance(result, Array) else result

    def unsupported(self, problem: str) -> UnsupportedError:
        """The error to raise; its message says which source line the problem comes from."""
        return UnsupportedError(f"{problem} in native kernels (from {self._location or 'an unknown line'})")

    @contextmanager
    def active_where(self, condition: int) -> Iterator[None]:
        """Scope in which only the lanes where `condition` holds are active."""
        outer = self.mask
        self.mask = condition if outer is None else self.graph.logical_and(outer, condition)
        yield
        self.mask = outer

    # Making values

    def type_of(self, aval: Any) -> Scalar:
        """Scalar type of an abstract value."""
        dtype = getattr(aval, "dtype", None)
        if dtype == jax.dtypes.float0:
            return BOOL
        found = scalar_type(dtype) if isinstance(dtype, np.dtype) else None
        if found is None:
            raise self.unsupported(f"the type {aval} is not supported")
        self.is_double |= found is F64
        return found

    def literal(self, value: Any) -> Array:
        """Value of a literal or constant of the jaxpr."""
        array = np.asarray(value)
        if array.dtype == jax.dtypes.float0:
            array = np.zeros(array.shape, bool)
        return constant(self.graph, array, self.type_of(array))

    def elements(self, nodes: Nodes, dtype: Scalar) -> Elements:
        """Array made of the given nodes."""
        return Elements(self.graph, np.asarray(nodes, dtype=np.int64), dtype)

    def rowwise(self, shape: Shape, dtype: Scalar, build: Callable[..., Nodes], *operands: Array) -> Array:
        """Array built from operands with the same first axis (or one of length one), by rows if large, else at once.

        `build` maps the nodes of one entry of each operand (or of whole operands: then arrays have one
        more leading axis) to the nodes of the result. It must treat leading axes alike, as elementwise
        functions do.
        """
        if not is_huge(shape) and not any(x.in_rows for x in operands):
            return self.elements(np.broadcast_to(build(*(x.nodes() for x in operands)), shape), dtype)

        def row_of(x: Array, index: int) -> Nodes:
            if len(x.shape) < len(shape):
                return x.nodes()
            return x.row(index if x.shape[0] == shape[0] else self.graph.index(0))

        def row(index: int) -> Nodes:
            return build(*(row_of(x, index) for x in operands))

        return Rows(self.graph, shape, dtype, row)


def map_nodes(f: Callable[..., int], *arrays: Nodes) -> Nodes:
    """`f` applied to corresponding nodes of arrays, broadcast together."""
    if len(arrays) > 1:
        arrays = tuple(np.broadcast_arrays(*arrays))
    flat = [a.reshape(-1).tolist() for a in arrays]
    result = np.fromiter(map(f, *flat), dtype=np.int64, count=len(flat[0]))
    return result.reshape(arrays[0].shape)
