"""Derivatives of a function along several directions, as one JAX primitive.

`columns(f, primals, tangents)` means `f(*primals)` and `vmap` of `jvp` over the tangents. JAX traces `jvp` once, with a
single tangent, and native kernels distribute it over the columns in which it is not zero (`lowering/columns.py`).
Everywhere else, under `jit`, `vmap` and further differentiation, the primitive is replaced by that `vmap`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend import core as jex
from jax.interpreters import ad, batching, mlir

from truesim.native.lowering.columns import expand

columns_p = jex.Primitive("columns")
columns_p.multiple_results = True


def columns(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Value of a function, and its derivatives along several directions.

    Equals `f(*primals)` and `jax.vmap(lambda *t: jax.jvp(f, primals, t)[1])(*tangents)`.

    Args:
        f: Function of trees of arrays. It is traced once.
        primals: Its arguments.
        tangents: A tree for each argument, with directions along a leading axis that all have in common. Leaves that do
            not move have None.

    Returns:
        The value, and a tree of the same structure with the derivatives along a leading axis; None for leaves that are
        not floating-point numbers or do not depend on anything that moves.
    """
    tree: Any
    leaves, tree = jax.tree.flatten(tuple(primals))
    directions = tree.flatten_up_to(tuple(tangents))
    moves = [d is not None for d in directions]
    order = sorted(range(len(leaves)), key=lambda k: moves[k])
    given = [d for d in directions if d is not None]
    counts = {len(d) for d in given}
    if len(counts) != 1:
        raise ValueError(f"directions must have one number of columns, not {sorted(counts)}")
    structure: list[Any] = []

    def both(*flat: Any) -> list[Any]:
        arguments, moved = list(flat[: len(leaves)]), flat[len(leaves) :]
        still = len(leaves) - len(moved)

        def of_moving(*chosen: Any) -> tuple[list[Any], Any]:
            placed = dict(zip(order, [*arguments[:still], *chosen], strict=True))
            results, made = jax.tree.flatten(f(*jax.tree.unflatten(tree, [placed[k] for k in range(len(leaves))])))
            structure[:] = [made]
            floats = [jnp.issubdtype(jnp.result_type(x), jnp.floating) for x in results]
            structure.append(floats)
            return [x for x, is_float in zip(results, floats, strict=True) if is_float], results

        _, changes, results = jax.jvp(of_moving, tuple(arguments[still:]), tuple(moved), has_aux=True)
        return [*results, *changes]

    operands = [leaves[k] for k in order]
    closed = jax.make_jaxpr(both)(*map(_shape, operands), *map(_shape, operands[len(operands) - len(given) :]))
    made, floats = structure
    found = columns_p.bind(
        *closed.consts, *operands, *given,
        jaxpr=closed.jaxpr, count=counts.pop(), moving=len(given), values=len(floats),
    )  # fmt: skip
    depends = iter(_dependent(closed.jaxpr, len(given))[len(floats) :])
    changes = iter(found[len(floats) :])
    derivatives = [next(changes) if is_float else None for is_float in floats]
    kept = [d if is_float and next(depends) else None for d, is_float in zip(derivatives, floats, strict=True)]
    return jax.tree.unflatten(made, found[: len(floats)]), jax.tree.unflatten(made, kept)


def _dependent(jaxpr: jex.Jaxpr, count: int) -> list[bool]:
    """For each output of a jaxpr, whether it may depend on the last `count` inputs."""
    reached = set(jaxpr.invars[len(jaxpr.invars) - count :])
    for eqn in jaxpr.eqns:
        if any(isinstance(v, jex.Var) and v in reached for v in eqn.invars):
            reached.update(eqn.outvars)
    return [isinstance(v, jex.Var) and v in reached for v in jaxpr.outvars]


def _shape(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(np.shape(x), jnp.result_type(x))


@columns_p.def_abstract_eval
def _abstract(*avals: ShapedArray, jaxpr: jex.Jaxpr, count: int, moving: int, values: int) -> list[ShapedArray]:
    outputs: list[Any] = [v.aval for v in jaxpr.outvars]
    changes = [ShapedArray((count, *a.shape), a.dtype) for a in outputs[values:]]
    return [*(ShapedArray(a.shape, a.dtype) for a in outputs[:values]), *changes]


@columns_p.def_impl
def _run(*operands: Any, **parameters: Any) -> list[Any]:
    return _expanded(**parameters)(*operands)


def _expanded(*, jaxpr: jex.Jaxpr, count: int, moving: int, values: int) -> Callable[..., list[Any]]:
    return functools.partial(expand, jaxpr, count, moving, values)


mlir.register_lowering(
    columns_p, mlir.lower_fun(lambda *operands, **parameters: _expanded(**parameters)(*operands), multiple_results=True)
)


def _batch(operands: Sequence[Any], axes: Sequence[Any], **parameters: Any) -> tuple[list[Any], list[int]]:
    results = jax.vmap(_expanded(**parameters), in_axes=tuple(axes))(*operands)
    return results, [0] * len(results)


batching.primitive_batchers[columns_p] = _batch


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> tuple[Any, Any]:
    moves = [type(t) is not ad.Zero for t in tangents]

    def of_moving(*chosen: Any) -> list[Any]:
        rest = iter(chosen)
        return _expanded(**parameters)(*(next(rest) if m else p for p, m in zip(primals, moves, strict=True)))

    moving, along = (tuple(x for x, m in zip(xs, moves, strict=True) if m) for xs in (primals, tangents))
    results, changes = jax.jvp(of_moving, moving, along)
    return results, [ad.Zero(ShapedArray(c.shape, c.dtype)) if c.dtype == jax.dtypes.float0 else c for c in changes]


ad.primitive_jvps[columns_p] = _jvp
