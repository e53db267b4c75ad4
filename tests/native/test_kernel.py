"""Kernels called on NumPy arrays: batches, pytrees, errors, threads, memory, overhead."""

import gc
import os
import resource
import time
import weakref

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.native.agreement import assert_close, normal
from truesim import native


def _function(p, x):
    return {"y": jnp.sin(x["a"]) * p + x["b"].sum(), "n": (x["b"] > 0, x["a"].astype(jnp.int32))}


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64, 1000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_batch_sizes(size, dtype):
    """Every batch size gives what one instance at a time gives, bit for bit."""
    x = {"a": normal(0, size, dtype=dtype), "b": normal(1, size, 3, dtype=dtype)}
    kernel = native.compile(_function, dtype(1), jax.tree.map(lambda a: a[0], x))
    together = kernel(dtype(0.7), x)
    alone = [kernel(dtype(0.7), jax.tree.map(lambda a, k=k: a[k], x)) for k in range(min(size, 9))]
    for k, one in enumerate(alone):
        jax.tree.map(lambda a, b, k=k: np.testing.assert_array_equal(a[k], b), together, one)
    assert_close(together, jax.vmap(_function, (None, 0))(dtype(0.7), x))


def test_empty_batch():
    """A batch of no instances gives empty results."""
    kernel = native.compile(lambda x, y: x * y, np.zeros(3), np.float64(0))
    assert kernel(np.zeros((0, 3)), np.float64(2)).shape == (0, 3)


def test_several_batch_axes():
    """Batch axes may be many; arguments without any are shared."""
    x, y = normal(0, 4, 5, 3), normal(1, 3)
    kernel = native.compile(jnp.dot, y, y)
    np.testing.assert_allclose(kernel(x, y), x @ y, rtol=1e-13)


def test_arrays_in_any_layout():
    """Transposed and sliced arrays are read correctly."""
    x = normal(0, 6, 10)
    kernel = native.compile(lambda x: 2 * x, x[0, :3])
    np.testing.assert_array_equal(kernel(x[::2, 1:7:2]), 2 * x[::2, 1:7:2])
    np.testing.assert_array_equal(kernel(np.asfortranarray(x[:, :3])), 2 * x[:, :3])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [3, 100])
def test_outputs_that_repeat_inputs(size, threads):
    """Outputs that are inputs, reshaped or not, shared or not, are exact copies; unread inputs do no harm."""
    x, y, unused = normal(0, 13, size), normal(1, size), normal(2, 13, 5)
    f = lambda x, y, unused: (x, y, x[:, None], 2 * x, x[::-1])  # noqa: E731
    got = native.compile(f, x[0], y, unused[0], threads=threads)(x, y, unused)
    want = x, np.tile(y, (13, 1)), x[:, :, None], 2 * x, x[:, ::-1]
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_structures():
    """Any pytree goes in and out; leaves that are not arrays stay as they were."""

    class Spring(eqx.Module):
        stiffness: jax.Array
        model: object
        name: str = eqx.field(static=True)

    spring = Spring(np.full(2, 3.0), jnp.tanh, "main")
    kernel = native.compile(lambda s, x: (s, {"force": s.model(s.stiffness * x)}), spring, np.zeros(2))
    x = normal(0, 5, 2)
    result = kernel(spring, x)[1]["force"]
    np.testing.assert_allclose(result, np.tanh(3 * x), rtol=1e-14)
    with pytest.raises(TypeError, match="structure"):
        kernel(Spring(np.full(2, 3.0), jnp.tanh, "other"), x)
    with pytest.raises(TypeError, match="compiled for"):
        kernel(Spring(np.full(2, 3.0), jnp.sin, "main"), x)


@pytest.mark.parametrize(
    ("argument", "error", "message"),
    [
        (np.zeros(3, np.float32), TypeError, r"argument 0\['x'\] must be float64, not float32"),
        (np.zeros((5, 4)), ValueError, r"argument 0\['x'\] must have shape \(3,\)"),
        (np.float64(0), ValueError, "must have shape"),
        (np.zeros(3, np.int64), TypeError, "must be float64, not int64"),
    ],
)
def test_wrong_arguments_are_refused(argument, error, message):
    """A type or shape that does not fit is an error that names the argument."""
    kernel = native.compile(lambda d: d["x"] * 2, {"x": np.zeros(3)})
    with pytest.raises(error, match=message):
        kernel({"x": argument})


def test_different_batch_axes_are_refused():
    """Batch axes must agree."""
    kernel = native.compile(lambda x, y: x + y, np.zeros(3), np.zeros(3))
    with pytest.raises(ValueError, match=r"batch axes \(4,\), but others have \(5,\)"):
        kernel(np.zeros((5, 3)), np.zeros((4, 3)))


def test_precision_is_chosen_by_dtype():
    """`dtype` converts the examples, whatever JAX's own mode is."""
    with jax.enable_x64(False):
        double = native.compile(lambda x: x / 3, np.float32(1), dtype=np.float64)
        single = native.compile(lambda x: x / 3, 1.0)
    assert double(np.ones(2)).dtype == np.float64
    np.testing.assert_array_equal(double(np.ones(2)), np.ones(2) / 3)
    assert single(np.ones(2, np.float32)).dtype == np.float32


@pytest.mark.parametrize("size", [0, 1, 9, 40, 1001])
def test_threads_give_the_same_results(size):
    """A batch split over threads gives the same bits, also when there is little to split."""
    x, y = normal(0, size, 5), normal(1, 5)
    f = lambda x, y: (jnp.exp(-x) @ jnp.cos(x + y), x)  # noqa: E731
    one, three = (native.compile(f, y, y, threads=n) for n in (1, 3))
    for a, b in zip(one(x, y), three(x, y), strict=True):
        np.testing.assert_array_equal(a, b)


def test_results_do_not_alias():
    """Results are new arrays at every call."""
    kernel = native.compile(lambda x: x, np.zeros(3))
    x = np.ones((2, 3))
    first, second = kernel(x), kernel(2 * x)
    assert first.max() == 1
    assert second.min() == 2


@pytest.mark.parametrize(
    ("count", "f"),
    [(5, lambda *xs: [x + 1 for x in xs]), (9, lambda *xs: sum(xs))],
    ids=["five_to_five", "nine_to_one"],
)
def test_call_overhead(count, f):
    """A call with ten arrays costs less than 0.6 of a call of the same function under `jax.jit`."""
    args = [np.zeros((4, 3)) for _ in range(count)]
    kernel, jitted = native.compile(f, *(a[0] for a in args)), jax.jit(f)
    ours, peer = [], []
    for _ in range(20):  # in turns, so that both meet the same machine
        ours.append(_seconds(lambda: kernel(*args), 200))
        peer.append(_seconds(lambda: jax.block_until_ready(jitted(*args)), 200))
    assert min(ours) < 0.6 * min(peer)


def _seconds(f, repeats):
    start = time.process_time()
    for _ in range(repeats):
        f()
    return (time.process_time() - start) / repeats


def test_memory_stays_flat():
    """Kernels that are compiled and dropped leave nothing behind: in all, less than a megabyte.

    Run with TRUESIM_LEAK_CYCLES=1000 for the full test; by default fewer cycles, enough to see 15 kB each.
    """
    cycles = int(os.environ.get("TRUESIM_LEAK_CYCLES", "70"))

    def cycle(k):
        kernel = native.compile(lambda x: jnp.sin(x) * k + x @ x, np.zeros(6))
        kernel(np.zeros((3, 6)))

    def growth(first):
        before = _resident()
        for k in range(cycles):
            cycle(first + k)
        return _resident() - before

    for k in range(40):
        cycle(k)
    assert min(growth(0.5), growth(0.25)) < 1e6  # a leak shows in both rounds, threads of other tests in one at most


def _resident():
    jax.clear_caches()
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_prepared_calls_follow_their_arrays():
    """A prepared call computes from what its arrays hold at the time, into the same results."""
    kernel = native.compile(_function, np.float64(1), {"a": np.zeros(()), "b": np.zeros(3)})
    x = {"a": normal(0, 5), "b": normal(1, 5, 3)}
    call = kernel.prepare(np.array(2.0), x)
    first = call()
    assert_close(first, kernel(np.float64(2), x))
    x["a"][:], x["b"][2] = normal(2, 5), -1.0
    assert call() is first
    assert_close(first, kernel(np.float64(2), x))
    given = native.compile(lambda x: 2 * x, np.zeros(3)).prepare(x["b"], results=np.zeros((5, 3)))
    np.testing.assert_array_equal(given(), 2 * x["b"])


def test_prepared_calls_refuse_what_would_be_copied():
    """Arrays that are not contiguous, or results of another shape, would be left behind by later changes."""
    kernel = native.compile(lambda x: 2 * x, np.zeros(3))
    with pytest.raises(TypeError, match="argument 0 of a prepared call must be a contiguous"):
        kernel.prepare(np.zeros((3, 5)).T)
    with pytest.raises(ValueError, match=r"result 0 of a prepared call must be .* of shape \(5, 3\)"):
        kernel.prepare(np.zeros((5, 3)), results=np.zeros((4, 3)))


def test_importing_changes_no_setting():
    """Importing and using the package leaves JAX's configuration alone."""
    with jax.enable_x64(False):
        before = dict(jax.config.values)
        native.compile(lambda x: x + 1, np.zeros(2))(np.zeros(2))
        assert dict(jax.config.values) == before
        assert jnp.ones(1).dtype == jnp.float32


def test_kernels_that_are_collected_as_garbage():
    """Part of a cycle, a kernel is finalised in no order with what it holds."""
    for k in range(8):
        kernel = native.compile(lambda x, k=k: jnp.sin(x) * k, np.zeros(3))
        cycle = [kernel]
        cycle.append(cycle)
        held = weakref.ref(kernel)
        del kernel, cycle
        gc.collect()
        assert held() is None


def test_optimization_levels_are_kernels_of_their_own():
    """Level 0 agrees with level 1 to rounding, is another entry of the cache, and passes to derivatives."""
    f = lambda x: jnp.sum(jnp.sin(x) * x @ jnp.outer(x, x))  # noqa: E731
    fast, best = (native.compile(f, np.zeros(4), level=level) for level in (0, 1))
    x = normal(0, 9, 4)
    np.testing.assert_allclose(fast(x), best(x), rtol=1e-13)
    assert fast.program.key != best.program.key
    assert native.compile(f, np.zeros(4)).program is best.program
    jax.grad(lambda x: fast(x))(x[0])
    assert {derived.target.level for derived in fast.program.derived.values()} == {0}
