"""Kernels that are compiled, called and dropped by several threads at once."""

import ctypes
import gc
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.native.agreement import normal
from truesim import native
from truesim.native.codegen import compiler
from truesim.native.lowering import types
from truesim.native.runtime import ffi
from truesim.native.runtime.program import program


@pytest.fixture
def eager_switching():
    """Threads take turns as often as Python allows."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def _together(f, count=8):
    """Results of `f(0)`, `f(1)`, ... in threads that start at the same time."""
    barrier = threading.Barrier(count)

    def run(k):
        with jax.enable_x64(True), jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
            barrier.wait()
            return f(k)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_compiling_and_calling_together(eager_switching):
    """Equal and different kernels are compiled, called directly, in `jit` and differentiated, and dropped."""
    x = normal(0, 9, 3)

    def work(thread):
        errors = []
        for n in range(4):
            k = float(n if thread % 2 else 10 * thread + n) + 0.25
            kernel = native.compile(lambda x, k=k: jnp.sin(k * x) + x.sum(), x[0])
            want = np.sin(k * x) + x.sum(1, keepdims=True)
            errors.append(np.abs(kernel(x) - want).max())
            errors.append(np.abs(jax.jit(kernel)(x) - want).max())
            gradient = jax.jit(jax.grad(lambda x, kernel=kernel: kernel(x).sum()))(x)
            errors.append(np.abs(gradient - (k * np.cos(k * x) + 3)).max())
            del kernel
            gc.collect()
        return max(errors)

    assert max(_together(work)) < 1e-12


def test_equal_programs_are_one_object(eager_switching):
    """All threads get the same program of equal functions, and it is compiled once."""
    closed = [jax.make_jaxpr(lambda x: jnp.cos(x) * 1.75)(np.zeros(4)) for _ in range(8)]
    programs = _together(lambda k: program(closed[k]))
    assert len({id(p) for p in programs}) == 1
    assert len(set(_together(lambda k: programs[k].address))) == 1


def test_compilation_does_not_block_other_kernels(monkeypatch):
    """While one thread compiles, others load and call their kernels."""
    started, finish = threading.Event(), threading.Event()
    assemble = compiler.assemble

    def slow(*args):
        started.set()
        assert finish.wait(60)
        return assemble(*args)

    x = np.ones((2, 3))
    small = native.compile(lambda x: x + 17.0, x[0])
    monkeypatch.setattr(compiler, "assemble", slow)
    thread = threading.Thread(target=native.compile, args=(lambda x: x - 18.0, np.zeros(3)))
    thread.start()
    try:
        assert started.wait(60)
        with ThreadPoolExecutor(1) as pool:
            got = pool.submit(lambda: native.compile(lambda x: x + 17.0, np.zeros(3))(x)).result(30)
    finally:
        finish.set()
        thread.join()
    np.testing.assert_array_equal(got, small(x))


def test_handler_is_registered_once(monkeypatch):
    """JAX accepts a name only once: threads that need the handler at the same time get the same one."""
    made = []

    def slow():
        time.sleep(0.05)
        made.append(object())
        return made[-1]

    monkeypatch.setattr(ffi, "_registered", [])
    monkeypatch.setattr(ffi, "_register", slow)
    assert len(set(map(id, _together(lambda _: ffi.registered_handler())))) == len(made) == 1


@pytest.fixture
def table():
    """A table of kernels, and a function that looks a kernel up as the handler does."""
    place = ctypes.c_void_p()
    table = ffi.KernelTable(ctypes.addressof(place))

    def find(number):
        words = ctypes.cast(place, ctypes.POINTER(ctypes.c_int64))
        return next((words[2 + 2 * k] for k in range(words[0]) if words[1 + 2 * k] == number), None)

    return table, find, place


def test_garbage_collection_while_the_table_is_locked(table):
    """A kernel may be finalized while its thread holds the lock of the table; it is removed afterwards."""
    table, find, _ = table
    table.add(5, 500)
    with table._lock:
        thread = threading.Thread(target=table.remove, args=(5, 500), daemon=True)
        thread.start()
        thread.join(10)
        assert not thread.is_alive(), "removing waits for the lock"
    table.add(6, 600)
    assert (find(5), find(6)) == (None, 600)


def test_late_removal_spares_the_successor(table):
    """A kernel that is compiled again before the old one is finalized stays callable."""
    table, find, _ = table
    table.add(5, 500)
    table.add(5, 501)
    table.remove(5, 500)
    assert find(5) == 501
    table.remove(5, 501)
    assert find(5) is None


def test_table_with_many_threads(table, eager_switching):
    """Kernels come and go in many threads; in the end exactly the kept ones are there."""
    table, find, _ = table

    def work(thread):
        for k in range(200):
            number = 1 + 1000 * thread + k
            table.add(number, 10 * number)
            assert find(number) == 10 * number
            if k % 3:
                table.remove(number, 10 * number)

    _together(work)
    for thread in range(8):
        for k in range(200):
            number = 1 + 1000 * thread + k
            assert find(number) == (None if k % 3 else 10 * number)


def test_types_are_unique_in_all_threads(monkeypatch):
    """Threads that ask for the same memory type at the same time get the same object."""
    plain = types.MemoryType.__init__

    def slow(self, *args):
        plain(self, *args)
        time.sleep(0.02)

    monkeypatch.setattr(types.MemoryType, "__init__", slow)
    assert len(set(map(id, _together(lambda _: types.memory(types.F64, 987654))))) == 1
