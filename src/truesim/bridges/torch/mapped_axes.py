"""Axes of `torch.func.vmap` in front of the batch axes of arguments."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor


class _Argument(NamedTuple):
    """An argument, with the mapped axis in front if it has one."""

    tensor: Tensor
    element: tuple[int, ...]
    """Shape without mapped axis and batch axes."""
    batch: tuple[int, ...]
    mapped: bool

    def expanded(self, size: int, batch: tuple[int, ...]) -> Tensor:
        """The argument with the mapped axis and all batch axes."""
        own = self.batch or (1,) * len(batch)
        front = (size,) if self.mapped else (1,)
        return self.tensor.reshape((*front, *own, *self.element)).expand((size, *batch, *self.element)).contiguous()


def with_mapped_axis(
    size: int, ranks: Sequence[int], inputs: Sequence[Tensor], dims: Sequence[int | None]
) -> list[Tensor]:
    """Inputs with the mapped axis in front of the same batch axes; those with neither stay shared.

    Args:
        size: Length of the mapped axis.
        ranks: Number of axes of each input without batch axes.
        inputs: The inputs.
        dims: Place of the mapped axis in each input, or None.
    """
    arguments = _arguments(ranks, inputs, dims)
    batch = _common_batch(arguments)
    return [x.expanded(size, batch) if x.mapped or x.batch else x.tensor for x in arguments]


def with_all_axes(
    size: int, ranks: Sequence[int], tensors: Sequence[Tensor], dims: Sequence[int | None]
) -> tuple[list[Tensor], list[tuple[int, ...]]]:
    """Inputs, and cotangents after them, with the mapped axis and all batch axes.

    Returns:
        The tensors; and for each input the batch axes that it did not have.
    """
    count = len(ranks)
    arguments = _arguments(ranks, tensors[:count], dims[:count])
    batch = _common_batch(arguments)
    cotangents = [
        x.expand((size, *x.shape)) if dim is None else x.movedim(dim, 0)
        for x, dim in zip(tensors[count:], dims[count:], strict=True)
    ]
    full = [*(x.expanded(size, batch) for x in arguments), *(x.contiguous() for x in cotangents)]
    return full, [() if x.batch else tuple(range(1, 1 + len(batch))) for x in arguments]


def sum_shared(gradients: Sequence[Tensor], by: Sequence[int], shared: Sequence[tuple[int, ...]]) -> list[Tensor]:
    """Gradients summed over the batch axes that their inputs do not have."""
    return [g.sum(dim=shared[k]) if shared[k] else g for g, k in zip(gradients, by, strict=True)]


def _arguments(ranks: Sequence[int], inputs: Sequence[Tensor], dims: Sequence[int | None]) -> list[_Argument]:
    found = []
    for rank, x, dim in zip(ranks, inputs, dims, strict=True):
        mapped = dim is not None
        front = x if dim is None else x.movedim(dim, 0)
        shape, split = front.shape[int(mapped) :], front.ndim - int(mapped) - rank
        found.append(_Argument(front, tuple(shape[split:]), tuple(shape[:split]), mapped))
    return found


def _common_batch(arguments: Sequence[_Argument]) -> tuple[int, ...]:
    return next((x.batch for x in arguments if x.batch), ())
