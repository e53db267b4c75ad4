"""The cache on disk: hits, damage, foreign files, concurrency, read-only folders."""

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from truesim import native
from truesim.native.codegen import compiler as backend
from truesim.native.lowering import fingerprint
from truesim.native.runtime import cache


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache folder."""
    monkeypatch.setenv("TRUESIM_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def compilations(monkeypatch):
    """A list that grows with every compilation."""
    calls = []
    assemble = backend.assemble
    monkeypatch.setattr(backend, "assemble", lambda *args: calls.append(args) or assemble(*args))
    return calls


def _use(k=3.0):
    x = np.arange(4.0)
    np.testing.assert_allclose(native.compile(lambda x: jnp.sin(x) * k, x[0])(x), np.sin(x) * k, rtol=1e-15)


def test_second_use_compiles_nothing(folder, compilations):
    """A kernel is compiled once and then read from disk."""
    _use()
    _use()
    assert len(compilations) == 1
    assert len(list(folder.iterdir())) == 1


def test_constants_count(folder, compilations):
    """Programs that differ in a constant's value are different kernels."""
    table = np.arange(40.0)
    for k in (1.0, 2.0):
        kernel = native.compile(lambda x, k=k: (x * (k * table)).sum(), np.float64(0))
        assert kernel(np.ones(1))[0] == k * table.sum()
    assert len(compilations) == 2


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "foreign", "other_kernel"])
def test_damaged_files_are_rebuilt(folder, compilations, damage):
    """A file that is not exactly what was written is ignored and replaced."""
    _use()
    (path,) = folder.iterdir()
    content = path.read_bytes()
    if damage == "other_kernel":
        _use(4.0)
        (other,) = (p for p in folder.iterdir() if p != path)
        content = other.read_bytes()
    path.write_bytes(
        {
            "truncate": content[: len(content) // 2],
            "flip": content[:-100] + bytes([content[-100] ^ 1]) + content[-99:],
            "empty": b"",
            "foreign": b"\x7fELF" + content,
            "other_kernel": content,
        }[damage]
    )
    before = len(compilations)
    _use()
    assert len(compilations) == before + 1
    _use()
    assert len(compilations) == before + 1


def test_files_others_may_write_are_ignored(folder, compilations):
    """Code that another user could have changed is not loaded."""
    _use()
    (path,) = folder.iterdir()
    path.chmod(path.stat().st_mode | stat.S_IWOTH)
    _use()
    assert len(compilations) == 2


def test_other_cpu_or_version_is_another_kernel(monkeypatch):
    """The key depends on CPU features and on the version of the compiler."""
    from dataclasses import replace

    from truesim.native.codegen.target import host

    keys = {cache.key(b"program", host()), cache.key(b"program", replace(host(), features=""))}
    monkeypatch.setattr(cache, "code_version", lambda: b"older")
    keys.add(cache.key(b"program", host()))
    assert len(keys) == 3


def test_version_covers_all_subpackages(tmp_path, monkeypatch):
    """The version of the compiler depends on every file of the package, wherever it lies, and on its name."""
    package = Path(native.__file__).parent
    copy = tmp_path / "native"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(fingerprint, "__file__", str(copy / "lowering" / "fingerprint.py"))
    version = fingerprint.code_version.__wrapped__
    assert version() == native.code_version()
    seen = {version()}
    for name in ("__init__.py", "lowering/graph.py", "codegen/emit.py", "runtime/program.py"):
        with open(copy / name, "a") as file:
            file.write("# changed\n")
        seen.add(version())
    (copy / "codegen" / "emit.py").rename(copy / "codegen" / "emission.py")
    seen.add(version())
    assert len(seen) == 6


def test_unusable_folder_costs_only_time(folder, compilations, monkeypatch):
    """Without a writable folder every use compiles, and works."""
    blocked = folder / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("TRUESIM_CACHE", str(blocked / "cache"))
    _use()
    _use()
    assert len(compilations) == 2


@contextlib.contextmanager
def _without_privileges():
    """A scope in which even root may not write where it is not allowed to."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_read_only_folder_costs_only_time(compilations, monkeypatch):
    """A read-only folder is tolerated, and what it holds is used."""
    with _without_privileges():
        folder = Path(tempfile.mkdtemp())
        monkeypatch.setenv("TRUESIM_CACHE", str(folder))
        _use()
        folder.chmod(0o500)
        _use()
        assert len(compilations) == 1
        _use(4.0)
        _use(4.0)
        assert len(compilations) == 3
        assert len(list(folder.iterdir())) == 1
        folder.chmod(0o700)
        shutil.rmtree(folder)


def test_clear(folder):
    """Clearing removes the kernels."""
    _use()
    native.clear_cache()
    assert not list(folder.iterdir())


def test_two_processes_at_once(folder):
    """Processes that compile the same kernel together leave one good file."""
    script = textwrap.dedent("""
        import numpy as np, jax.numpy as jnp
        from truesim import native
        x = np.linspace(0, 1, 7)
        f = lambda x: sum(jnp.sin(k * x) for k in range(40))
        assert abs(native.compile(f, x[0])(x) - sum(np.sin(k * x) for k in range(40))).max() < 1e-12
    """)
    processes = [subprocess.Popen([sys.executable, "-c", script], env=dict(os.environ)) for _ in range(2)]
    assert [p.wait(100) for p in processes] == [0, 0]
    (path,) = folder.iterdir()
    assert path.suffix == ".kernel"
    assert cache.read(bytes.fromhex(path.stem)) is not None
