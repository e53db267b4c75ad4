"""JAX functions as differentiable functions of tensors."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from truesim.bridges.torch import operators
from truesim.bridges.torch.compiled import CompiledFunction, FlatFunction
from truesim.core.errors import TruesimError

MAX_SIGNATURES = 1024
"""Number of sets of shapes for which the result of the checks is kept; larger uses more memory."""

_numbers = itertools.count()


class Axes(NamedTuple):
    """Name and axes of an argument without batch axes."""

    name: str
    axes: tuple[int | str, ...]
    """Length of each axis; a name stands for any length."""


class TensorFunction:
    """A JAX function as a differentiable function of tensors on the CPU, in float32 or float64.

    Arguments may have leading batch axes, which broadcast. Gradients are available once, in reverse mode. It works
    in `torch.compile(fullgraph=True)` and under `torch.func.vmap` and `torch.func.grad`.
    """

    def __init__(self, f: FlatFunction, arguments: Sequence[Axes], *, name: str = "function", threads: int = 1):
        """Prepare it; kernels are compiled at the first call for each precision and each set of shapes.

        Args:
            f: From arrays without batch axes to a tuple of arrays.
            arguments: Name and axes of each argument.
            name: Name of the function in compiled graphs.
            threads: Number of threads over which a batch is split.
        """
        self.arguments = tuple(arguments)
        self.key = f"{name}-{next(_numbers)}"
        self._ranks = tuple(len(argument.axes) for argument in arguments)
        self._compiled = CompiledFunction(f, self._ranks, threads)
        self._checked: dict[Any, tuple[Any, ...]] = {}
        operators.register(self.key, self._compiled)

    def __call__(self, *tensors: Tensor) -> Sequence[Tensor]:
        """Results, with the batch axes of the arguments in front."""
        if operators.are_plain(tensors):
            signature = tuple([(x.shape, x.dtype, x.is_cpu) for x in tensors])
            plan = self._checked.get(signature)
            if plan is None:
                plan = self._plan(signature, tensors)
            kernels, batch, is_equal = plan
            return operators.EagerCall.apply(
                self.key, kernels, batch, *(tensors if is_equal else _broadcast(tensors, self._ranks))
            )
        self._check(tensors)
        return operators.apply(self.key, _broadcast(tensors, self._ranks))

    def _plan(self, signature: Any, tensors: Sequence[Tensor]) -> tuple[Any, ...]:
        """Kernels for tensors of these shapes, the number of batch axes, and whether all have the same or none."""
        self._check(tensors)
        wide = _broadcast(tensors, self._ranks)
        batch = max(x.ndim - rank for x, rank in zip(wide, self._ranks, strict=True))
        kernels = self._compiled.at([x.shape for x in tensors], operators.NUMPY_DTYPES[tensors[0].dtype])
        if len(self._checked) >= MAX_SIGNATURES:
            self._checked.clear()
        self._checked[signature] = plan = kernels, batch, wide is tensors
        return plan

    def _check(self, tensors: Sequence[Any]) -> None:
        for argument, rank, tensor in zip(self.arguments, self._ranks, tensors, strict=True):
            if not _fits(argument.axes, rank, tensor, tensors[0]):
                raise _mistake(argument, tensor, tensors[0], self.arguments[0].name)


def _fits(axes: tuple[int | str, ...], rank: int, tensor: Any, first: Any) -> bool:
    """True for a tensor that a kernel can take."""
    if not isinstance(tensor, Tensor) or not tensor.is_cpu or tensor.dtype != first.dtype:
        return False
    if tensor.dtype not in operators.NUMPY_DTYPES or tensor.ndim < rank:
        return False
    shape = tensor.shape
    return all(n == m for n, m in zip(axes, shape[len(shape) - rank :], strict=True) if type(n) is int)


def _mistake(argument: Axes, tensor: Any, first: Any, first_name: str) -> TruesimError:
    """Error for a tensor that a kernel cannot take."""
    name, axes = argument
    if not isinstance(tensor, Tensor):
        return TruesimError(f"{name} must be a tensor, not {type(tensor).__name__}.")
    if not tensor.is_cpu:
        return TruesimError(f"{name} is on the device {tensor.device}; simulations run on the CPU: use {name}.cpu().")
    if tensor.dtype not in operators.NUMPY_DTYPES:
        return TruesimError(f"{name} has the dtype {tensor.dtype}; valid are torch.float32 and torch.float64.")
    if tensor.dtype != first.dtype:
        return TruesimError(
            f"{name} has the dtype {tensor.dtype}, but {first_name} has {first.dtype}: use {name}.to({first.dtype})."
        )
    shape = "(" + ", ".join(["...", *map(str, axes)]) + ")"
    return TruesimError(f"{name} has the shape {tuple(tensor.shape)}; it must be {shape}.")


def _broadcast(tensors: Sequence[Tensor], ranks: Sequence[int]) -> Sequence[Tensor]:
    """Tensors with the same batch axes, or none."""
    batches = [x.shape[: x.ndim - rank] for x, rank in zip(tensors, ranks, strict=True)]
    different = {batch for batch in batches if len(batch)}
    if len(different) < 2:
        return tensors
    try:
        batch = torch.broadcast_shapes(*different)
    except RuntimeError:
        shapes = ", ".join(str(tuple(x)) for x in different)
        raise TruesimError(f"The batch axes {shapes} of the arguments do not go together.") from None
    return [
        x.expand(*batch, *x.shape[x.ndim - rank :]) if own and own != batch else x
        for x, rank, own in zip(tensors, ranks, batches, strict=True)
    ]
