"""Memory over calls with many batch shapes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.memory import resident_memory
from truesim import native


def _calls(kernel):
    """Calls outside of `jit` on a batch of any size: plain, batched by `vmap`, and differentiated."""
    k = np.float64(2.0)

    def pull_back(x):
        out, back = jax.vjp(lambda x: kernel(k, x), x)
        return back(out)

    return {
        "direct": lambda x: kernel(k, x),
        "vmap": lambda x: jax.vmap(kernel, (None, 0))(k, x),
        "vmap_of_last_axis": lambda x: jax.vmap(kernel, (None, 1))(k, x.T),
        "nested_vmap": lambda x: jax.vmap(jax.vmap(kernel, (None, 0)), (0, None))(np.ones(2), x),
        "jvp": lambda x: jax.jvp(lambda x: kernel(k, x), (x,), (x,)),
        "vjp": pull_back,
    }


@pytest.mark.parametrize("name", ["direct", "vmap", "vmap_of_last_axis", "nested_vmap", "jvp", "vjp"])
def test_batch_shapes_leave_no_memory_behind(name):
    """A new batch shape outside of `jit` compiles nothing: 100 shapes keep less than 10 MB.

    An XLA executable takes 1.4 MB, so that a single operation of `jax.numpy` per shape would keep 140 MB.
    """
    kernel = native.compile(lambda k, x: jnp.sin(x) * k + x @ x, np.float64(0), np.zeros(6))
    call = _calls(kernel)[name]
    for size in range(1, 8):
        call(np.ones((size, 6)))
    before = resident_memory()
    for size in range(10, 110):
        call(np.ones((size, 6)))
    assert resident_memory() - before < 10e6
