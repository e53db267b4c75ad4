"""Interpreter that walks a jaxpr and builds the graph, and the registry of lowering rules."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
from jax.extend import core as jex
from jax.extend import source_info_util

from truesim.native.lowering.algebra import Algebra
from truesim.native.lowering.types import BOOL, F64, ScalarType, scalar_type
from truesim.native.lowering.values import Array, NodeArray, Nodes, RowArray, Shape, constant, is_huge


class UnsupportedError(NotImplementedError):
    """Raised for functions that native kernels cannot run; use XLA for them."""


Equation = Any
"""A `JaxprEqn`; JAX does not type its abstract values."""
Rule = Callable[..., Array | Sequence[Array]]

LOWERING_RULES: dict[str, Rule] = {}
"""Lowering rule of each primitive, by name: `rule(lowering, equation, *operands)`."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the decorated function as the lowering rule of the named primitives."""

    def register(f: Rule) -> Rule:
        for name in names:
            assert name not in LOWERING_RULES, f"two rules for {name}"
            LOWERING_RULES[name] = f
        return f

    return register


class Lowering:
    """State of one lowering: the graph, the active lanes, and the current source line."""

    def __init__(self, graph: Algebra, has_fma: bool = True):
        self.graph = graph
        self.has_fma = has_fma
        self.mask: int | None = None
        """Boolean node: lanes that execute this code (None: all). Only loops that may not terminate need it."""
        self.is_double = False
        """True when the program computes in float64."""
        self._sources: list[Any] = []

    # Walking a jaxpr

    def run(self, jaxpr: jex.Jaxpr, consts: Sequence[Array], args: Sequence[Array]) -> list[Array]:
        """Values of a jaxpr's outputs."""
        uses = Counter(v for eqn in jaxpr.eqns for v in eqn.invars if isinstance(v, jex.Var))
        uses.update(v for v in jaxpr.outvars if isinstance(v, jex.Var))
        env: dict[jex.Var, Array] = {}

        def write(var: jex.Var, value: Array) -> None:
            if isinstance(value, RowArray) and not value.is_cheap and uses[var] > 1:
                value = value.materialize()
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
        found = LOWERING_RULES.get(eqn.primitive.name)
        self._sources.append(eqn.source_info)
        if found is None:
            raise self.unsupported(f"the primitive `{eqn.primitive.name}` is not supported")
        result = found(self, eqn, *operands)
        self._sources.pop()
        return [result] if isinstance(result, Array) else result

    def unsupported(self, problem: str) -> UnsupportedError:
        """Error to raise; its message names the source line of the problem."""
        lines = (source_info_util.summarize(source) for source in reversed(self._sources))
        location = next(filter(None, lines), "an unknown line")
        return UnsupportedError(f"{problem} in native kernels (from {location})")

    @contextmanager
    def active_where(self, condition: int) -> Iterator[None]:
        """Scope in which only the lanes where `condition` holds are active."""
        outer = self.mask
        self.mask = condition if outer is None else self.graph.logical_and(outer, condition)
        yield
        self.mask = outer

    # Making values

    def type_of(self, aval: Any) -> ScalarType:
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

    def elements(self, nodes: Nodes | np.integer, dtype: ScalarType) -> NodeArray:
        """Array of the given nodes."""
        return NodeArray(self.graph, np.asarray(nodes, dtype=np.int64), dtype)

    def rowwise(self, shape: Shape, dtype: ScalarType, build: Callable[..., Nodes], *operands: Array) -> Array:
        """Array built from operands with the same first axis (or one of length one): by rows if large, else at once.

        `build` maps the nodes of one entry of each operand to the nodes of the result. It is also called with the nodes
        of whole operands, which have one more leading axis, and must therefore treat leading axes alike, as elementwise
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

        return RowArray(self.graph, shape, dtype, row)


def map_nodes(f: Callable[..., int], *arrays: Nodes | np.integer) -> Nodes:
    """Apply `f` to corresponding nodes of arrays, which are broadcast together."""
    if len(arrays) > 1:
        arrays = tuple(np.broadcast_arrays(*arrays))
    flat = [a.reshape(-1).tolist() for a in arrays]
    result = np.fromiter(map(f, *flat), dtype=np.int64, count=len(flat[0]))
    return result.reshape(arrays[0].shape)
