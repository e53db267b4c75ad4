"""Reads and writes at computed places, against XLA."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.native.agreement import assert_agrees, integers, normal
from truesim import native

READS = {
    "row": lambda x, i: x[i[0]],
    "element": lambda x, i: x[i[0], i[1]],
    "rows": lambda x, i: x[i],
    "columns": lambda x, i: x[:, i],
    "pairs": lambda x, i: x[i, i[::-1]],
    "clip": lambda x, i: x.at[i].get(mode="clip"),
    "fill": lambda x, i: x.at[i].get(mode="fill", fill_value=-1),
    "dynamic_slice": lambda x, i: lax.dynamic_slice(x, (i[0], i[1]), (2, 3)),
    "along_axis": lambda x, i: jnp.take_along_axis(x, jnp.argsort(x, 1), 1),
    "constant": lambda x, i: x[jnp.array([2, 0, 2])],
    "take_fill": lambda x, i: jnp.take(x, i, axis=1, mode="fill"),
}
WRITES = {
    "set": lambda x, i: x.at[i[0]].set(7),
    "set_rows": lambda x, i: x.at[i].set(x[:2] * 2),
    "add": lambda x, i: x.at[i, i[::-1]].add(1),
    "multiply": lambda x, i: x.at[:, i[0]].multiply(3),
    "min": lambda x, i: x.at[i].min(0),
    "max": lambda x, i: x.at[i].max(0),
    "drop": lambda x, i: x.at[i + 3].set(0, mode="drop"),
    "clip": lambda x, i: x.at[i + 3].set(0, mode="clip"),
    "dynamic_update_slice": lambda x, i: lax.dynamic_update_slice(x, x[:2, :2] * 3, (i[0], i[1])),
    "constant": lambda x, i: x.at[jnp.array([2, 0])].add(x[:2]),
}


@pytest.mark.parametrize("size", [4, 12])
@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_reads(name, size, dtype):
    """Gathers agree, with indices out of range and different in every lane."""
    x = integers(0, -9, 9, 9, size, 5).astype(dtype)
    assert_agrees(READS[name], x, integers(1, -3, size + 3, 9, 2))


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_writes(name, dtype):
    """Scatters agree, with indices out of range and different in every lane."""
    x = integers(0, -9, 9, 9, 4, 5).astype(dtype)
    assert_agrees(WRITES[name], x, integers(1, -2, 6, 9, 2))


def test_booleans_in_memory():
    """Booleans read at traced places keep their value."""
    x = normal(0, 5, 20) > 0
    assert_agrees(lambda x, i: (x[i], x.at[i].set(True)), x, integers(1, 0, 20, 5, 3))


def test_gradient_of_reads():
    """The scatter of a gather's gradient agrees."""
    f = jax.grad(lambda x, i: jnp.sum(jnp.sin(x[i]) ** 2))
    assert_agrees(f, normal(0, 5, 10), integers(1, 0, 10, 5, 4))


def test_reads_inside_a_loop():
    """Counters index arrays in loops, forwards and backwards."""

    def f(x):
        def body(i, total):
            return total + x[i] * x[19 - i, ::-1] + lax.dynamic_index_in_dim(x, i // 2, keepdims=False)

        return lax.fori_loop(0, 20, body, jnp.zeros(30))

    assert_agrees(f, normal(0, 3, 20, 30))


IN_PLACE = {
    "row": lambda i, k, y: y.at[i].set(jnp.sin(y[i - 1]) + y[i]),
    "read_after": lambda i, k, y: y.at[i].set(jnp.sin(y[i - 1])).at[i - 1].add(y[i] * 0.1),
    "new_is_read": lambda i, k, y: (z := y.at[i].set(y[i] * 0.5)).at[i - 1].set(z[i] + z[i - 1] + y[i]),
    "lane": lambda i, k, y: y.at[(k * i) % 60].set(y[i] * 0.5 + 1),
    "lane_twice": lambda i, k, y: y.at[(k * i) % 60].set(y[i] * 0.5).at[(k + i) % 60].set(y[i - 1]),
    "lane_added": lambda i, k, y: y.at[(k * i) % 60].add(0.1 * y[i]),
    "dropped": lambda i, k, y: y.at[k * i].set(y[i] * 0.5, mode="drop"),
    "branch": lambda i, k, y: lax.cond(k > i, lambda y: y.at[i].multiply(2.0), lambda y: y, y),
    "other_branch": lambda i, k, y: lax.cond(k > 30, lambda y: y, lambda y: y.at[i].set(y[i - 1] + 1), y),
    "slice": lambda i, k, y: lax.dynamic_update_slice(y, y[i - 1][None] + 1, (i, 0)),
}


@pytest.mark.parametrize("loop", ["for", "while"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_large_array_carried_and_written(name, loop):
    """A large array written row by row in a loop agrees, whatever is read before, after and elsewhere."""

    def f(x, k):
        if loop == "for":
            return lax.fori_loop(1, 60, lambda i, y: IN_PLACE[name](i, k, y), x)
        return lax.while_loop(lambda s: s[0] < k, lambda s: (s[0] + 1, IN_PLACE[name](s[0], k, s[1])), (1, x))[1]

    assert_agrees(f, normal(0, 7, 60, 40), integers(1, 0, 60, 7))


def test_large_arrays_that_change_places():
    """Large carried arrays that are exchanged and written in the same iteration agree."""

    def f(x):
        body = lambda i, s: (s[1], s[0].at[i].add(s[1][i - 1]))  # noqa: E731
        swapped = lax.fori_loop(1, 600, lambda i, s: (s[1], s[2], s[0]), (x, 2 * x, 3 * x))
        return lax.fori_loop(1, 60, body, (x, 2 * x)), swapped

    assert_agrees(f, normal(0, 3, 60, 40))


@pytest.mark.parametrize("index", ["shared", "by_lane"])
def test_writing_a_row_costs_a_row(index):
    """A loop that writes single rows of a large array takes no pass over the array in each iteration."""

    def f(x, k):
        row = lambda i: i if index == "shared" else (i + k) % 10000  # noqa: E731
        return lax.fori_loop(0, 9999, lambda i, y: y.at[row(i)].set(i + k), x).sum()

    x, k = np.zeros((1, 10000)), np.arange(1)
    kernel = native.compile(f, x[0], k[0])
    assert kernel(x, k)[0] == sum(range(9999))
    assert min(_cpu_seconds(lambda: kernel(x, k)) for _ in range(5)) < 0.02


def _cpu_seconds(run):
    start = time.process_time()
    run()
    return time.process_time() - start
