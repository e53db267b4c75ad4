"""JAX primitive of kernels, with the rules of all transformations.

Batching adds a batch axis. The tangent of a program is the program of its jvp jaxpr. The transpose of a tangent is the
program of the vjp jaxpr of the original program, which repeats the forward computation in the same kernel. Derivatives
are compiled when they are first needed.
"""

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend import core as jex
from jax.interpreters import ad, batching, mlir

from truesim.native.runtime import ffi
from truesim.native.runtime.host import HostProgram
from truesim.native.runtime.program import Program, Shape, program
from truesim.native.runtime.versions import xla_ffi_refusal

Origin = tuple[Program, tuple[bool, ...]]
"""The program that a tangent program differentiates, and which of its inputs have tangents."""

native_call = jex.Primitive("native_call")
native_call.multiple_results = True


def bind(called: Program, leaves: Sequence[Any], threads: int) -> list[Any]:
    """Results of a program on tracers or arrays, with batch axes in front of all that have any."""
    with jax.enable_x64(_is_wide(called)):
        for k, (leaf, (_, dtype)) in enumerate(zip(leaves, called.inputs, strict=True)):
            if jnp.result_type(leaf) != dtype:
                raise TypeError(f"argument {k} must be {dtype}, not {jnp.result_type(leaf)}")
        batch: Shape = ()
        for k, leaf in enumerate(leaves):
            if np.shape(leaf) != called.inputs[k][0]:
                batch = called.batch(k, np.shape(leaf), batch, "argument {}".format)
        return native_call.bind(*leaves, called=called, batch=batch, threads=threads, origin=None)


def _is_wide(called: Program) -> bool:
    arrays = (*called.inputs, *called.outputs)
    return jax.config.read("jax_enable_x64") or any(dtype.itemsize == 8 for _, dtype in arrays)


@native_call.def_abstract_eval
def _abstract(
    *avals: ShapedArray, called: Program, batch: Shape, threads: int, origin: Origin | None
) -> list[ShapedArray]:
    return [ShapedArray(batch + shape, dtype) for shape, dtype in called.outputs]


@native_call.def_impl
def _run(*arrays: Any, called: Program, batch: Shape, threads: int, origin: Origin | None) -> list[jax.Array]:
    with jax.enable_x64(_is_wide(called)):
        results = called.run(arrays, threads, "argument {}".format)
        return [jax.device_put(x) for x in results]  # `jnp.asarray` would compile a copy for every new shape


def _lower(
    ctx: Any, *operands: Any, called: Program, batch: Shape, threads: int, origin: Origin | None
) -> Sequence[Any]:
    refusal = xla_ffi_refusal()
    if refusal is not None:
        warnings.warn(refusal, RuntimeWarning, stacklevel=2)
        plain = functools.partial(_run_as_jax, called, batch)
        return mlir.lower_fun(plain, multiple_results=True)(ctx, *operands)
    ctx.module_context.add_keepalive(called)
    count = math.prod(batch)
    inputs = [
        (np.dtype(a.dtype).name, math.prod(a.shape), called.stride(k, tuple(a.shape)))
        for k, a in enumerate(ctx.avals_in)
    ]
    outputs = [(np.dtype(a.dtype).name, math.prod(a.shape)) for a in ctx.avals_out]
    words = ffi.describe_call(called.number, count, threads, inputs, outputs)
    return jax.ffi.ffi_lowering(ffi.TARGET_NAME)(ctx, *operands, call=words)


mlir.register_lowering(native_call, _lower, platform="cpu")


def _run_as_jax(called: Program, batch: Shape, *arrays: Any) -> list[Any]:
    """Results of a program as plain JAX code, for an XLA that cannot call kernels."""
    f = jex.jaxpr_as_fun(called.closed)
    axes = [None if np.shape(x) == shape else 0 for x, (shape, _) in zip(arrays, called.inputs, strict=True)]
    for _ in batch:
        f = jax.vmap(f, axes)
    with jax.enable_x64(_is_wide(called)):
        return f(*arrays)


def _array_module(arrays: Sequence[Any]) -> Any:
    """NumPy for concrete arrays, else `jax.numpy`.

    Outside of traces, every operation of `jax.numpy` compiles an XLA executable for every new batch shape, which takes
    20 ms and 1.4 MB. NumPy compiles nothing.
    """
    return jnp if any(isinstance(x, jax.core.Tracer) for x in arrays) else np


def _batch(
    args: Sequence[Any], dims: Sequence[Any], *, called: Program, batch: Shape, threads: int, origin: Origin | None
) -> Any:
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    full = (size, *batch)
    xp = _array_module(args)
    moved = []
    for x, d, (shape, _) in zip(args, dims, called.inputs, strict=True):
        if d is None:
            moved.append(x if np.ndim(x) == len(shape) else xp.broadcast_to(x, full + shape))
            continue
        front = x if d == 0 else xp.moveaxis(x, d, 0)
        if batch and front.ndim == 1 + len(shape):
            front = xp.broadcast_to(xp.reshape(front, (size, *(1,) * len(batch), *shape)), full + shape)
        moved.append(front)
    results = native_call.bind(*moved, called=called, batch=full, threads=threads, origin=origin)
    return results, [0] * len(results)


batching.primitive_batchers[native_call] = _batch


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    called: Program,
    batch: Shape,
    threads: int,
    origin: Origin | None,
) -> Any:
    results = native_call.bind(*primals, called=called, batch=batch, threads=threads, origin=origin)
    moving = tuple(type(t) is not ad.Zero for t in tangents)
    given = [t for t, m in zip(tangents, moving, strict=True) if m]
    kept = results if called.keeps_results else []
    changes = iter(
        native_call.bind(
            *primals,
            *kept,
            *given,
            called=_tangent(called, moving),
            batch=batch,
            threads=threads,
            origin=(called, moving),
        )
    )
    return results, [
        next(changes) if _is_float(dtype) else ad.Zero(ShapedArray(x.shape, jax.dtypes.float0))
        for x, (_, dtype) in zip(results, called.outputs, strict=True)
    ]


ad.primitive_jvps[native_call] = _jvp


def _is_float(dtype: np.dtype) -> bool:
    return dtype.kind == "f"


def _derive(called: Program, key: Any, derive: Callable[[Callable], Callable], avals: list[Any]) -> Program:
    """Program of a function derived from that of another program, compiled once.

    Args:
        called: The other program.
        key: Identifies what is derived.
        derive: Makes the function to compile from that of the other program.
        avals: Shapes and types of its arguments.
    """
    with called.lock:
        if key not in called.derived:
            f = derive(jex.jaxpr_as_fun(called.closed))
            with jax.enable_x64(_is_wide(called)):
                called.derived[key] = program(jax.make_jaxpr(f)(*avals), called.target)
        return called.derived[key]


def _avals(arrays: list[tuple[Shape, np.dtype]], keep: Sequence[bool] | None = None) -> list[Any]:
    kept = [True] * len(arrays) if keep is None else keep
    return [jax.ShapeDtypeStruct(*a) for a, k in zip(arrays, kept, strict=True) if k]


def _tangent(called: Program, moving: tuple[bool, ...]) -> Program:
    """Program of the tangents of the floating-point results, given primals and tangents of some of them."""
    if isinstance(called, HostProgram):
        return called.tangent(moving)
    count = len(called.inputs)

    def change(f: Callable, *args: Any) -> list[Any]:
        primals, given = args[:count], iter(args[count:])
        tangents = [
            next(given) if m else np.zeros(p.shape, p.dtype if _is_float(p.dtype) else jax.dtypes.float0)
            for p, m in zip(primals, moving, strict=True)
        ]
        changes = jax.jvp(f, primals, tuple(tangents))[1]
        return [c for c, (_, dtype) in zip(changes, called.outputs, strict=True) if _is_float(dtype)]

    avals = _avals(called.inputs) + _avals(called.inputs, moving)
    return _derive(called, ("tangent", moving), lambda f: functools.partial(change, f), avals)


def _pullback(called: Program, moving: tuple[bool, ...], given: tuple[bool, ...]) -> Program:
    """Program of cotangents of some inputs, given primals and cotangents of some results."""
    if isinstance(called, HostProgram):
        return called.pullback(moving, given)
    count = len(called.inputs)
    floats = [_is_float(dtype) for _, dtype in called.outputs]

    def cotangents(f: Callable, *args: Any) -> tuple[Any, ...]:
        primals, rest = args[:count], iter(args[count:])

        def of_moving(*chosen: Any) -> list[Any]:
            chosen_iter = iter(chosen)
            full = [next(chosen_iter) if m else p for p, m in zip(primals, moving, strict=True)]
            return [r for r, is_float in zip(f(*full), floats, strict=True) if is_float]

        results, back = jax.vjp(of_moving, *(p for p, m in zip(primals, moving, strict=True) if m))
        return back([next(rest) if g else jnp.zeros_like(r) for r, g in zip(results, given, strict=True)])

    float_outputs = [o for o, is_float in zip(called.outputs, floats, strict=True) if is_float]
    avals = _avals(called.inputs) + _avals(float_outputs, given)
    return _derive(called, ("pullback", moving, given), lambda f: functools.partial(cotangents, f), avals)


def _transpose(
    cotangents: Sequence[Any], *args: Any, called: Program, batch: Shape, threads: int, origin: Origin | None
) -> list[Any]:
    assert origin is not None, "only tangents are linear"
    of, moving = origin
    known = len(of.inputs) + (len(of.outputs) if of.keeps_results else 0)
    primals, linear = args[:known], args[known:]
    given = tuple(type(c) is not ad.Zero for c in cotangents)
    values = [c for c, g in zip(cotangents, given, strict=True) if g]
    back = native_call.bind(
        *primals, *values, called=_pullback(of, moving, given), batch=batch, threads=threads, origin=None
    )
    shapes = [shape for (shape, _), m in zip(of.inputs, moving, strict=True) if m]
    shared = [bool(batch) and len(x.aval.shape) == len(shape) for x, shape in zip(linear, shapes, strict=True)]
    axes = tuple(range(len(batch)))
    sums = [jnp.sum(c, axes) if s else c for c, s in zip(back, shared, strict=True)]
    return [None] * len(primals) + sums


ad.primitive_transposes[native_call] = _transpose
