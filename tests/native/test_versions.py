"""Untested versions of XLA's FFI and of NumPy: kernels fall back to slower, safe ways."""

import ctypes
import sys
import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import llvmlite
import numpy as np
import pytest

from tests.native.agreement import assert_close, normal
from truesim import native
from truesim.native.runtime import addresses, ffi, versions

ROOT = Path(__file__).resolve().parents[2]


class _Frame:
    """A call frame of XLA's FFI in plain words, as far as the handler may read it before it knows the version."""

    def __init__(self, version, query):
        self.messages = []
        prototype = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))
        self.create = prototype(self._create)
        create = ctypes.cast(self.create, ctypes.c_void_p).value
        self.api = (ctypes.c_int64 * 7)(56, 0, 24, 0, version[1] << 32 | version[0], 0, create)
        self.metadata = (ctypes.c_int64 * 6)(40, 24, 0, -1, 0, 0)
        self.extension = (ctypes.c_int64 * 4)(24, 1, 0, ctypes.addressof(self.metadata))
        start = ctypes.addressof(self.extension) if query else 0
        self.words = (ctypes.c_int64 * 22)(168, start, ctypes.addressof(self.api))

    def _create(self, words):
        self.messages.append(ctypes.string_at(words[2]).decode())
        return 1

    @property
    def answer(self):
        return self.metadata[3] & 0xFFFFFFFF, self.metadata[3] >> 32


def _call(handler, frame):
    return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(handler.address)(ctypes.addressof(frame.words))


@pytest.mark.parametrize("theirs", [(0, 3), (0, 9), (7, 1)])
def test_handler_answers_with_the_tested_version(theirs):
    """Asked for its version, the handler gives its own and not that of the XLA that asks."""
    frame = _Frame(theirs, query=True)
    assert _call(ffi.Handler((0, 3)), frame) is None
    assert frame.answer == (0, 3)


def test_handler_refuses_calls_of_another_version():
    """A call frame of another version is not read: there are null pointers where the arguments would be."""
    frame = _Frame((0, 4), query=False)
    assert _call(ffi.Handler((0, 3)), frame)
    assert frame.messages == ["truesim: native kernels are tested with version 0.3 of the XLA FFI, which this is not"]


def test_installed_versions_are_tested():
    """This environment has tested versions, and the header file of jaxlib tells the version that XLA reports."""
    assert versions.xla_ffi_version() in versions.TESTED_XLA_FFI
    assert versions.xla_ffi_refusal() is None
    assert tuple(map(int, jax.__version__.split(".")[:2])) in versions.TESTED_JAX
    assert tuple(map(int, llvmlite.__version__.split(".")[:2])) in versions.TESTED_LLVMLITE
    assert versions.has_tested_numpy()


def test_requirements_allow_only_tested_versions():
    """The bounds in pyproject.toml are those of the table."""
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (jax_minor,), (llvm_minor,) = ([minor for _, minor in v] for v in (versions.TESTED_JAX, versions.TESTED_LLVMLITE))
    assert f"jax>=0.{jax_minor},<0.{jax_minor + 1}" in required
    assert f"llvmlite>=0.{llvm_minor},<0.{llvm_minor + 1}" in required
    assert f"numpy>={versions.TESTED_NUMPY[0]}.0,<{versions.TESTED_NUMPY[-1] + 1}" in required


@pytest.fixture
def untested_ffi(monkeypatch):
    """An XLA with a later version of the FFI; nothing may be registered with it."""
    monkeypatch.setattr(versions, "xla_ffi_version", lambda: (0, 9))
    monkeypatch.setattr(ffi, "add", lambda *_: pytest.fail("a kernel was registered with an untested XLA"))
    monkeypatch.setattr(ffi, "_registered", [])


def _spring(k, x):
    return x - 0.1 * k * jnp.sin(x), (x > 0).sum()


def test_untested_xla_runs_plain_jax(untested_ffi):
    """Inside JAX the function then runs as plain JAX code: values, batches and derivatives, with a warning."""
    x, k = normal(0, 5, 3), np.float64(2.0)
    kernel = native.compile(_spring, k, x[0])
    want = jax.vmap(_spring, (None, 0))(k, x)
    message = r"jaxlib .* has version 0\.9 of XLA's .*tested with 0\.3 only"
    with pytest.warns(RuntimeWarning, match=message):
        assert_close(jax.jit(kernel)(k, x), want)
    with pytest.warns(RuntimeWarning, match=message):
        assert_close(jax.jit(jax.vmap(kernel, (None, 0)))(k, x), want)
    with pytest.warns(RuntimeWarning, match=message):
        got = jax.jit(jax.grad(lambda k: kernel(k, x)[0].sum()))(k)
    assert_close(got, jax.grad(lambda k: jax.vmap(_spring, (None, 0))(k, x)[0].sum())(k))
    assert_close(kernel(k, x), want)


def test_untested_xla_keeps_double_precision(untested_ffi):
    """The plain code of a float64 kernel is float64 too where 64-bit mode is off."""
    kernel = native.compile(lambda x: x / 3, np.float64(0))

    @jax.jit
    def f(x):
        with jax.enable_x64(True):
            return kernel(x.astype(jnp.float64)) * 3 - x

    with jax.enable_x64(False), pytest.warns(RuntimeWarning, match="plain JAX code"):
        assert abs(float(f(np.float32(0.1)))) < 1e-15


def test_registration_names_versions(untested_ffi):
    """Registering with an untested XLA is an error that names both versions."""
    with pytest.raises(RuntimeError, match=r"version 0\.9 .* tested with 0\.3"):
        ffi.registered_handler()


def test_unreadable_header_is_untested(monkeypatch, tmp_path):
    """Without jaxlib's header file the version is unknown, and that is not a tested one."""
    monkeypatch.setattr(jax.ffi, "include_dir", lambda: str(tmp_path))
    versions.xla_ffi_version.cache_clear()
    try:
        assert versions.xla_ffi_version() is None
        assert "unknown version" in versions.xla_ffi_refusal()
    finally:
        versions.xla_ffi_version.cache_clear()


def test_arrays_of_a_tested_numpy_are_read_directly():
    """The fast way is used here."""
    assert addresses.data_address is addresses.read_object


@pytest.mark.parametrize("case", ["version", "layout", "interpreter"])
def test_unknown_array_layouts_use_the_interface(monkeypatch, case):
    """With another NumPy, another object header or another interpreter, the array tells its address itself."""
    if case == "version":
        monkeypatch.setattr(np, "__version__", "3.0.0")
    elif case == "layout":
        monkeypatch.setattr(addresses, "_HEADER_BYTES", object.__basicsize__ + 8)
    else:
        monkeypatch.setattr(sys.implementation, "name", "other")
    assert addresses.choose_reader() is addresses.read_interface


def test_kernels_work_without_the_fast_way(monkeypatch):
    """Results do not depend on how addresses are found."""
    x = normal(0, 7, 3)
    kernel = native.compile(lambda x: (2 * x, x.sum()), x[0])
    want = kernel(x)
    monkeypatch.setattr("truesim.native.runtime.program.data_address", addresses.read_interface)
    for a, b in zip(kernel(x), want, strict=True):
        np.testing.assert_array_equal(a, b)
