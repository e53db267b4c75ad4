"""Primitives that move elements, against XLA."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.native.agreement import assert_agrees, normal
from truesim.native.codegen import compiler as backend
from truesim.native.codegen import target

CASES = {
    "reshape": lambda x: x.reshape(4, -1),
    "squeeze": lambda x: x[:1].squeeze(0),
    "expand_dims": lambda x: x[:, None, :, None],
    "broadcast_in_dim": lambda x: jnp.broadcast_to(x[:, None], (3, 2, *x.shape[1:])),
    "transpose": lambda x: jnp.transpose(x, (2, 0, 1)),
    "slice": lambda x: x[1:3, ::2, 1:],
    "rev": lambda x: lax.rev(x, (0, 2)),
    "concatenate": lambda x: jnp.concatenate([x, 2 * x, x[:1]], 0),
    "concatenate_inner": lambda x: jnp.concatenate([x, x[:, :1]], 1),
    "pad": lambda x: lax.pad(x, jnp.asarray(7, x.dtype), ((1, 2, 0), (0, 1, 2), (-1, 0, 0))),
    "iota": lambda x: lax.broadcasted_iota(jnp.int32, (3, 2), 0) + x.shape[0],
    "split": lambda x: jnp.split(x, [1, 3], axis=1),
    "stack": lambda x: jnp.stack([x, x + 1], 1),
    "unstack": lambda x: [2 * y for y in jnp.unstack(x, axis=1)],
    "tile": lambda x: jnp.tile(x, (2, 1, 3)),
    "copy": lambda x: jnp.array(x, copy=True),
    "eye": lambda x: jnp.eye(4) * x[0, 0, 0],
    "empty": lambda x: x[:0],
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, bool])
def test_small_arrays(name, dtype):
    """Rearrangements of small arrays agree for every kind of element."""
    assert_agrees(CASES[name], normal(0, 3, 3, 4, 2, dtype=np.float32).astype(dtype))


LARGE = {
    "elementwise": lambda x: 2 * x + 1,
    "reshape": lambda x: x.reshape(50, 40, -1) * 2,
    "reshape_rows": lambda x: (2 * x).reshape(100, 4, 10),
    "broadcast": lambda x: x * x[0],
    "broadcast_column": lambda x: x * x[:, :1],
    "transpose": lambda x: x.T + 1,
    "slice": lambda x: x[10:90:2] * 2,
    "slice_small": lambda x: x[3:5, :7] * 2,
    "rev": lambda x: x[::-1] - x[:, ::-1],
    "concatenate": lambda x: jnp.concatenate([x, 2 * x], 1),
    "concatenate_rows": lambda x: jnp.concatenate([x, 2 * x], 0),
    "pad": lambda x: jnp.pad(x, ((0, 0), (1, 2))),
    "iota": lambda x: x + jnp.arange(100.0)[:, None],
    "sum_rows": lambda x: jnp.sum(jnp.sin(x), 0),
    "sum_columns": lambda x: jnp.sum(x * x, 1),
    "sum": lambda x: jnp.sum((x - 0.5) ** 2),
    "max": lambda x: (jnp.max(x), jnp.min(x, 0)),
    "used_twice": lambda x: (lambda y: (y.sum(), y[::-1].sum(0), y))(jnp.sin(x) * 2),
    "identity": lambda x: (x, x),
    "difference": lambda x: jnp.diff(x, axis=0).sum(),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_arrays(name):
    """Arrays handled by loops over memory agree."""
    assert_agrees(LARGE[name], normal(0, 3, 100, 40))


def test_large_constants():
    """Large constants are read from memory."""
    table = normal(1, 100, 40)
    assert_agrees(lambda x: (x + table, jnp.sum(table * x), table), normal(0, 3, 100, 40))


def _trajectory(length):
    """States of a scan with its end appended, a flag that never changes, and both halves of the states swapped."""

    def f(x):
        end, (xs, flags) = lax.scan(lambda x, _: (jnp.sin(x + x[::-1]), (x, True)), x, None, length=length)
        half = length // 2
        return jnp.concatenate([xs, end[None]]), flags, jnp.concatenate([xs[half:], xs[:half]])

    return f


def test_copies_are_loops():
    """Moving stacked values to the results takes the same code for any length."""
    assert_agrees(_trajectory(60), normal(0, 3, 3))
    sizes = [
        len(backend.listing(jax.make_jaxpr(_trajectory(length))(np.zeros(3)), target.host()).text)
        for length in (60, 300, 3000)
    ]
    assert max(sizes) < 1.1 * min(sizes)
