"""Operators `truesim::call` and `truesim::pullback`: functions on tensors with autograd, vmap and fake rules.

Compiled graphs and tensor subclasses take them. Plain tensors in eager mode take `EagerCall`, which costs a fraction of
their overhead; the transforms of `torch.func` take `TransformedCall`, since they do not differentiate operators.
"""

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from truesim.bridges.torch.compiled import CompiledFunction, Specialized
from truesim.bridges.torch.mapped_axes import sum_shared, with_all_axes, with_mapped_axis
from truesim.core.errors import TruesimError

PLAIN_TENSORS = (Tensor, torch.nn.Parameter)
NUMPY_DTYPES: dict[Any, np.dtype] = {torch.float32: np.dtype(np.float32), torch.float64: np.dtype(np.float64)}
"""Precisions of kernels."""

_registered: "weakref.WeakValueDictionary[str, CompiledFunction]" = weakref.WeakValueDictionary()


def register(key: str, function: CompiledFunction) -> None:
    """Let operators find a function by its key, as long as it exists."""
    _registered[key] = function


def are_plain(tensors: Sequence[Tensor]) -> bool:
    """True for tensors in eager mode, none of a subclass and none within a transform of `torch.func`."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    return all(type(x) in PLAIN_TENSORS for x in tensors)


def apply(key: str, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """Results of the function with this key, for tensors of any kind."""
    if not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active():
        return TransformedCall.apply(key, *tensors)
    return call(key, tensors)


@torch.library.custom_op("truesim::call", mutates_args=())
def call(key: str, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Results of the function with this key."""
    return [torch.from_numpy(x) for x in _kernels(key, inputs).values(_arrays(inputs))]


@torch.library.custom_op("truesim::pullback", mutates_args=())
def pullback(key: str, by: Sequence[int], inputs: Sequence[Tensor], cotangents: Sequence[Tensor]) -> list[Tensor]:
    """Gradients of `sum(cotangents * results)` by the inputs at the positions `by`."""
    return _gradients(_kernels(key, inputs), tuple(by), inputs, cotangents)


def _kernels(key: str, inputs: Sequence[Tensor]) -> Specialized:
    return _registered[key].at([x.shape for x in inputs], NUMPY_DTYPES[inputs[0].dtype])


def _gradients(
    kernels: Specialized, by: tuple[int, ...], inputs: Sequence[Tensor], cotangents: Sequence[Tensor]
) -> list[Tensor]:
    found = kernels.pullback(by, _arrays(inputs), _arrays(cotangents))
    return [torch.from_numpy(np.asarray(x)) for x in found]


def _arrays(tensors: Sequence[Tensor]) -> list[np.ndarray]:
    """Tensors as NumPy arrays on the same memory."""
    return [x.detach().numpy() for x in tensors]


class EagerCall(torch.autograd.Function):
    """The operator `truesim::call` for plain tensors in eager mode."""

    @staticmethod
    def forward(ctx: Any, key: str, kernels: Specialized, batch: int, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Results; `batch` is the number of batch axes."""
        found = kernels.values(_arrays(inputs))
        ctx.key, ctx.kernels, ctx.shapes = key, kernels, [x.shape[batch:] for x in found]
        ctx.save_for_backward(*inputs)
        ctx.set_materialize_grads(False)
        return tuple(map(torch.from_numpy, found))

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Tensor | None, ...]:
        """Gradients by the inputs; results that have none count with zeros, shared by the whole batch."""
        inputs, by = ctx.saved_tensors, _positions(ctx.needs_input_grad[3:])
        given = [
            inputs[0].new_zeros(shape) if x is None else x for x, shape in zip(cotangents, ctx.shapes, strict=True)
        ]
        if torch.is_grad_enabled():
            gradients = pullback(ctx.key, by, inputs, given)
        else:
            gradients = _gradients(ctx.kernels, by, inputs, given)
        found = dict(zip(by, gradients, strict=True))
        return None, None, None, *[found.get(k) for k in range(len(inputs))]

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> None:
        """Refuse forward mode."""
        refuse_forward_mode()


class TransformedCall(torch.autograd.Function):
    """The operator `truesim::call` within transforms of `torch.func`."""

    @staticmethod
    def forward(key: str, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Results."""
        return tuple(call(key, inputs))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep the inputs."""
        ctx.key = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients by the inputs."""
        inputs, by = ctx.saved_tensors, _positions(ctx.needs_input_grad[1:])
        found = dict(zip(by, TransformedPullback.apply(ctx.key, by, len(inputs), *inputs, *cotangents), strict=True))
        return None, *[found.get(k) for k in range(len(inputs))]

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> None:
        """Refuse forward mode."""
        refuse_forward_mode()

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], key: str, *inputs: Tensor) -> tuple[Any, Any]:
        """Results with the mapped axis in front."""
        results = TransformedCall.apply(key, *with_mapped_axis(info.batch_size, _ranks(key), inputs, dims[1:]))
        return results, (0,) * len(results)


class TransformedPullback(torch.autograd.Function):
    """The operator `truesim::pullback` within transforms; the first `count` tensors are inputs, then cotangents."""

    @staticmethod
    def forward(key: str, by: tuple[int, ...], count: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Gradients."""
        return tuple(pullback(key, by, tensors[:count], tensors[count:]))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep nothing: there are no second derivatives."""

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> None:
        """Refuse second derivatives."""
        _refuse_second_derivatives()

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> None:
        """Refuse forward mode, and so second derivatives by `torch.func.hessian`."""
        refuse_forward_mode()

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], key: str, by: Any, count: int, *tensors: Tensor) -> tuple[Any, Any]:
        """Gradients with the mapped axis in front."""
        full, shared = with_all_axes(info.batch_size, _ranks(key), tensors, dims[3:])
        return tuple(sum_shared(TransformedPullback.apply(key, by, count, *full), by, shared)), (0,) * len(by)


def refuse_forward_mode() -> None:
    """Raise an error with the way that works."""
    raise TruesimError("Simulations have no forward-mode derivatives in PyTorch: use reverse mode, or JAX.")


def _refuse_second_derivatives(*_: Any) -> None:
    raise TruesimError(
        "Second derivatives of a simulation are not available in PyTorch: differentiate `truesim.rollout` with JAX."
    )


def _positions(needed: Sequence[bool]) -> tuple[int, ...]:
    return tuple(k for k, is_needed in enumerate(needed) if is_needed)


def _ranks(key: str) -> tuple[int, ...]:
    return _registered[key].ranks


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.key, tensors = inputs
    ctx.save_for_backward(*tensors)


def _pull(ctx: Any, cotangents: Sequence[Tensor]) -> tuple[None, list[Tensor | None]]:
    inputs = list(ctx.saved_tensors)
    by = _positions(ctx.needs_input_grad[1])
    found = dict(zip(by, pullback(ctx.key, by, inputs, [x.contiguous() for x in cotangents]), strict=True))
    return None, [found.get(k) for k in range(len(inputs))]


call.register_autograd(_pull, setup_context=_save)
pullback.register_autograd(_refuse_second_derivatives)


@call.register_fake
def _(key: str, inputs: Sequence[Tensor]) -> list[Tensor]:
    counts = [x.ndim - rank for x, rank in zip(inputs, _ranks(key), strict=True)]
    batch = next((x.shape[:n] for x, n in zip(inputs, counts, strict=True) if n), ())
    return [inputs[0].new_empty((*batch, *shape)) for shape in _kernels(key, inputs).result_shapes]


@pullback.register_fake
def _(key: str, by: Sequence[int], inputs: Sequence[Tensor], cotangents: Sequence[Tensor]) -> list[Tensor]:
    return [inputs[k].new_empty(inputs[k].shape) for k in by]


@call.register_vmap
def _(info: Any, dims: Any, key: str, inputs: Sequence[Tensor]) -> tuple[Any, Any]:
    results = call(key, with_mapped_axis(info.batch_size, _ranks(key), inputs, dims[1]))
    return results, [0] * len(results)


@pullback.register_vmap
def _(
    info: Any, dims: Any, key: str, by: Sequence[int], inputs: Sequence[Tensor], cotangents: Sequence[Tensor]
) -> tuple[Any, Any]:
    tensors, count = [*inputs, *cotangents], len(inputs)
    full, shared = with_all_axes(info.batch_size, _ranks(key), tensors, [*dims[2], *dims[3]])
    results = pullback(key, by, full[:count], full[count:])
    return sum_shared(results, by, shared), [0] * len(by)
