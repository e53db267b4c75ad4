"""Control flow against XLA: loops, branches, nesting, lanes that diverge."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.native.agreement import assert_agrees, assert_close, integers, normal
from truesim import native


def _collatz(n):
    """Steps of the Collatz iteration: every lane stops at its own time."""

    def body(state):
        n, count = state
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1

    return lax.while_loop(lambda s: s[0] > 1, body, (n, 0))[1]


def test_lanes_leave_a_loop_at_their_own_time():
    """A while loop whose length differs between lanes agrees, in every batch size."""
    n = integers(0, 0, 50, 100)
    kernel = native.compile(_collatz, n[0])
    want = jax.vmap(_collatz)(n)
    for size in (1, 2, 3, 5, 7, 64, 100):
        assert_close(kernel(n[:size]), want[:size])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 3, 40])
def test_scan(length, reverse):
    """Scans agree for every length and direction, with carries of several types."""

    def f(x, c):
        def body(carry, x):
            y, n, flag = carry
            y = jnp.sin(y) + x[0] * x[1]
            return (y, n + 1, flag ^ (y > 0)), (y, n, x * 2)

        return lax.scan(body, (c, 0, c > 0), x, reverse=reverse)

    assert_agrees(f, normal(0, 3, length, 2), normal(1, 3))


def test_swapped_carries():
    """All carries change at once."""
    f = lambda x, y: lax.fori_loop(0, 501, lambda i, c: (c[1], c[0] + 0.0 * i, c[2] + c[0]), (x, y, x))  # noqa: E731
    assert_agrees(f, normal(0, 3), normal(1, 3))


def test_loop_with_a_large_body():
    """A body of several chunks keeps its carries in memory and agrees."""

    def f(x, u):
        def body(x, u):
            for _ in range(12):
                x = jnp.tanh(x @ jnp.full((8, 8), 0.2) + jnp.roll(x, 1, 0)) + 0.1 * u
            return x, (x[0], u)

        return lax.scan(body, x, u)

    assert_agrees(f, normal(0, 5, 8, 8), normal(1, 5, 30))


def test_nested_loops():
    """Loops in loops agree, with counters and values of the outer loop used in the inner one."""

    def f(x):
        def outer(i, x):
            return lax.fori_loop(0, 11, lambda j, y: jnp.cos(y) + x[0] * j / (1 + i), x)

        return lax.fori_loop(0, 60, outer, x)

    assert_agrees(f, normal(0, 3, 4))


def test_while_inside_scan():
    """A loop of data-dependent length runs inside one of fixed length."""

    def f(x):
        def body(x, _):
            halved = lax.while_loop(lambda v: jnp.abs(v) > 1, lambda v: v / 2, 10 * x + 3)
            return halved, halved

        return lax.scan(body, x, None, length=30)

    assert_agrees(f, normal(0, 9))


def test_while_in_an_untaken_branch():
    """A loop that would never end is not run in lanes that do not take its branch."""

    def f(x):
        endless = lambda x: lax.while_loop(lambda v: v > 0, lambda v: v - jnp.where(x > 0, 1.0, 0.0), x + 0.5)  # noqa: E731
        return lax.cond(x > 0, endless, lambda x: x, x), lax.cond(x <= 0, lambda x: x * 2, endless, x)

    x = np.array([3.2, -0.3, 1.0, 0.0, -0.4])
    want = [jax.jit(f)(v) for v in x]
    assert_close(native.compile(f, x[0])(x), tuple(np.array(w) for w in zip(*want, strict=True)))


def test_while_under_vmap():
    """A loop over several instances at once, inside the function, agrees."""
    newton = lambda a: lax.while_loop(lambda x: jnp.abs(x * x - a) > 1e-9, lambda x: 0.5 * (x + a / x), a)  # noqa: E731
    assert_agrees(jax.vmap(newton), np.abs(normal(0, 4, 6)) + 0.1)


def _halvings(x, length, width=1):
    """Halvings until all entries are below one, at most `length`, as a scan that stands still at the end."""

    def halve(state):
        x, count, near, _ = state
        x = jnp.tanh(x / 2) * 2 if width > 1 else x / 2
        return x, count + 1, near | (x.max() < 2), x.max() >= 1

    def body(state, _):
        return lax.cond(state[3], halve, lambda s: (*s[:3], False), state), None

    start = (jnp.full(width, x), 0, x < 0, x >= 1)
    return lax.scan(body, start, None, length=length)[0][:3]


@pytest.mark.parametrize(("length", "width"), [(9, 1), (40, 1), (40, 200)])
def test_scan_that_stands_still(length, width):
    """A scan that does nothing more once a flag is down agrees, whether or not it is cut short by its length."""
    x = np.array([3.0, 0.2, -1.0, 700.0, 1.0, 1e6, 17.0])
    assert_agrees(lambda x: _halvings(x, length, width), x)


@pytest.mark.parametrize("width", [1, 500])
def test_scan_that_stands_still_ends_early(width):
    """Iterations in which no lane has anything to do are not run: there are two thousand million of them here."""
    long, short = (native.compile(lambda x, n=n: _halvings(x, n, width), np.float64(0)) for n in (2**31 - 2, 30))
    x = np.array([1.5, 5.0, 0.5])
    start = time.process_time()
    result = long(x)
    assert time.process_time() - start < 1
    assert_close(result, short(x))


@pytest.mark.parametrize("count", [2, 3, 4])
def test_branches(count):
    """Branches chosen by lane agree, with indices out of range."""
    branches = [lambda x, k=k: (jnp.sin(x) * k, jnp.sum(x) + k) for k in range(count)]
    f = lambda i, x: lax.switch(i, branches, x)  # noqa: E731
    assert_agrees(f, integers(0, -2, 6, 9), normal(1, 9, 3))


def test_constant_branch_is_the_only_one_compiled():
    """A branch that cannot be taken may even be unsupported."""
    f = lambda x: lax.cond(False, lambda x: jnp.linalg.eigh(x)[0], lambda x: x[0], x)  # noqa: E731
    assert_agrees(f, normal(0, 3, 2, 2))


def test_calls_are_inlined():
    """Nested jit, checkpoint, custom derivatives and linear solves agree."""

    @jax.custom_jvp
    def double(x):
        return 2 * x

    double.defjvp(lambda p, t: (2 * p[0], 2 * t[0]))

    def f(x):
        a = jax.jit(jnp.sin)(x) + jax.checkpoint(jnp.cos)(x) + double(x)
        return lax.custom_linear_solve(lambda v: 3 * v, a, lambda _, b: b / 3, symmetric=True)

    assert_agrees(lambda x: (f(x), jax.grad(lambda x: jnp.sum(f(x)))(x)), normal(0, 3, 4))


@pytest.mark.parametrize("checkpoint", [False, True])
def test_gradient_of_a_rollout(checkpoint):
    """The gradient of a loss over a whole trajectory is one kernel and agrees."""

    def loss(p, x, u):
        def step(x, u):
            v = x[1] + 0.01 * (u - p[0] * jnp.sin(x[0]) - p[1] * x[1])
            return jnp.stack([x[0] + 0.01 * v, v])

        step = jax.checkpoint(step) if checkpoint else step
        xs = lax.scan(lambda x, u: (step(x, u),) * 2, x, u)[1]
        return jnp.mean((xs[:, 0] - 0.3) ** 2)

    f = jax.value_and_grad(loss, argnums=(0, 1, 2))
    assert_agrees(f, normal(0, 3, 2), normal(1, 3, 2), normal(2, 3, 700))


def test_forward_mode_of_a_loop():
    """Tangents and Jacobians through loops agree."""
    f = lambda x: lax.fori_loop(0, 50, lambda i, x: x + 0.01 * jnp.sin(x[::-1]), x)  # noqa: E731
    assert_agrees(lambda x: (jax.jvp(f, (x,), (x,)), jax.jacfwd(f)(x)), normal(0, 3, 3))


def test_values_that_do_not_change_are_not_carried():
    """Zeros and shared values stay outside the loop: its body costs nothing for them."""
    from truesim.native.codegen import compiler as backend
    from truesim.native.codegen import target

    def f(x, zeros):
        return lax.scan(lambda c, _: ((c[0] + c[1] @ c[2], c[1] * 1, c[2] * 0), None), (x, x, zeros), None, 99)[0]

    plain = lambda x: f(x, jnp.zeros(6))[0]  # noqa: E731
    listing = backend.listing(jax.make_jaxpr(plain)(np.zeros(6)), target.host())
    assert listing.operations < 10
    assert_agrees(plain, normal(0, 2, 6))


def test_unsupported_primitive_names_itself_and_its_line():
    """The error for an unknown primitive says which and where."""
    with pytest.raises(native.UnsupportedError, match=r"`eigh` .*test_control\.py"):
        native.compile(lambda x: jnp.linalg.eigh(x)[0], np.eye(3))
