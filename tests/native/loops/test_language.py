"""Routines of the loop language compute what their Python says, in every lane."""

import ctypes

import numpy as np
import pytest

from truesim.native.codegen.target import host
from truesim.native.loops.functions import atan2, power, sincos
from truesim.native.loops.language import Routine
from truesim.native.loops.layout import Layout, RoutineModule
from truesim.native.loops.library import RoutineLibrary
from truesim.native.loops.values import INDEX_TYPE, POINTER_TYPE, LoopArray, Precision, Value

EMPTY = Layout((), (), (), (), ())
PRECISIONS = [Precision(64, 4), Precision(32, 8), Precision(64, 2)]


def run(precision, write, *inputs, outputs):
    """Compile a routine on vectors (count, lanes) and call it; `write(k, arrays, count)` stores to the last arrays."""
    module = RoutineModule.empty(EMPTY, precision, False)
    k = Routine(module.module, precision, "test", [POINTER_TYPE] * (len(inputs) + outputs) + [INDEX_TYPE])
    arrays = [LoopArray(k, a, precision.vector) for a in k.arguments[:-1]]
    write(k, *arrays, Value(k, k.arguments[-1]))
    k.returns()
    library = RoutineLibrary(lambda: module, str(module.module).encode(), host())
    dtype = np.float64 if precision.bits == 64 else np.float32
    buffers = []
    for x in [*inputs, *[np.zeros_like(inputs[0])] * outputs]:
        raw = np.zeros(x.size + 64, dtype)
        start = (-raw.ctypes.data % 64) // raw.itemsize
        buffers.append(raw[start : start + x.size].reshape(x.shape))
        buffers[-1][:] = x
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * len(buffers), ctypes.c_int64)(library.address("test"))
    assert call(*(b.ctypes.data for b in buffers), len(inputs[0])) == 0
    return buffers[len(inputs) :]


@pytest.fixture(params=PRECISIONS, ids=lambda p: f"f{p.bits}x{p.lanes}")
def precision(request):
    return request.param


def test_loop_branch_and_mask(precision):
    """A prefix sum of the positive entries, that stops after a lane exceeds 5."""
    x = np.random.default_rng(0).normal(size=(40, precision.lanes))

    def write(k, source, target, count):
        total = k.variable(0.0)
        with k.breakable_loop(0, count) as (i, leave_if):
            leave_if(k.any(total.get() > 5.0))
            total.add(k.where(source[i] > 0.0, source[i], 0.0))
            with k.when((i % 2).equals(0)):
                target[i] = total.get()

    (found,) = run(precision, write, x, outputs=1)
    expected = np.cumsum(np.maximum(x, 0), axis=0)
    last = int(np.argmax((expected > 5).any(axis=1)))
    expected[last + 1 :] = 0
    expected[1::2] = 0
    np.testing.assert_allclose(found, expected, rtol=1e-5 if precision.bits == 32 else 1e-14)


def test_nan_of_masked_lanes_is_dropped(precision):
    """`where` selects: a NaN in the branch that is not taken has no effect."""
    x = np.tile([[-1.0, 4.0]], (3, precision.lanes // 2))

    def write(k, source, target, count):
        with k.loop(0, count) as i:
            target[i] = k.where(source[i] > 0.0, k.sqrt(source[i]), 7.0)

    (found,) = run(precision, write, x, outputs=1)
    np.testing.assert_array_equal(found, np.where(x > 0, 2.0, 7.0))


def test_elementary_functions(precision):
    """Sine, cosine, arc tangent and powers agree with NumPy to a few units in the last place."""
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(-50, 50, (60, precision.lanes)), np.zeros((1, precision.lanes))])
    y = np.concatenate([rng.normal(size=(60, precision.lanes)), np.zeros((1, precision.lanes))])

    def write(k, x, y, s, c, angle, p, count):
        with k.loop(0, count) as i:
            s[i], c[i] = sincos(k, x[i])
            angle[i] = atan2(k, y[i], x[i])
            p[i] = power(k, k.abs(y[i]), k.where(x[i] > 25.0, 2.5, k.where(x[i] > 0.0, k.real(2.0), 1.0)))

    s, c, angle, p = run(precision, write, x, y, outputs=4)
    x, y = x.astype(s.dtype).astype(float), y.astype(s.dtype).astype(float)
    eps = np.finfo(s.dtype).eps
    np.testing.assert_allclose(s, np.sin(x), atol=8 * eps if precision.bits == 64 else 50 * eps)
    np.testing.assert_allclose(c, np.cos(x), atol=8 * eps if precision.bits == 64 else 50 * eps)
    np.testing.assert_allclose(angle, np.arctan2(y, x), atol=8 * eps)
    exponent = np.where(x > 25, 2.5, np.where(x > 0, 2.0, 1.0))
    np.testing.assert_allclose(p, np.abs(y) ** exponent, rtol=20 * eps)
