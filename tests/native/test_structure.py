"""Kernels found by their structure: keys, the whitelist, hits without tracing, damage, derivatives after a hit."""

import dataclasses
import enum
import functools
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from truesim import native
from truesim.files.robots import load
from truesim.native.runtime import cache, structure
from truesim.physics.model.kinds import HINGE, SLIDE
from truesim.physics.model.source import Finding, Structure
from truesim.physics.parameters.transforms import Positive


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache folder."""
    monkeypatch.setenv("TRUESIM_CACHE", str(tmp_path))
    return tmp_path


def digest(*parts):
    """Hash of some objects."""
    return native.KernelStructure("test", parts, 0.0).digest()


DISTINCT = [
    None,
    True,
    1,
    1.0,
    -0.0,
    0.0,
    "1",
    b"1",
    (1,),
    [1],
    (1, (2, 3)),
    ((1, 2), 3),
    {"a": 1},
    {"a": 2},
    {1, 2},
    np.ones(2),
    np.ones(2, np.float32),
    np.ones((1, 2)),
    np.array([1.0, np.nan]),
    np.float64(1.0),
    HINGE,
    SLIDE,
    Structure((0,), (), None, False),
    Structure((), (0,), None, False),
    Finding("a", "b"),
    Positive(1.0),
    Positive(2.0),
    Positive,
    structure._shape,
    functools.partial(structure._shape, 1),
]


def test_different_objects_have_different_keys():
    """Values, types and grouping count."""
    found = [digest(x) for x in DISTINCT]
    assert None not in found
    assert len(set(found)) == len(found)
    assert digest(jnp.ones(2)) == digest(np.ones(2))
    assert digest({1, 2, 3}) == digest({3, 2, 1})


class Colour(enum.Enum):
    """An enumeration of a user."""

    RED = 1


@dataclasses.dataclass
class Own:
    """A record of a user."""

    x: float = 1.0


UNKNOWN = [
    lambda x: x,
    Own(),
    Own,
    Colour.RED,
    np.array([object()]),
    object(),
    slice(1),
    np.sin,
    jnp.sin,
    [(1, {"a": Own()})],
]


@pytest.mark.parametrize("value", UNKNOWN, ids=lambda x: str(type(x).__name__))
def test_whatever_is_not_known_has_no_key(value):
    """Functions without a name, objects of users and callables of libraries could mean anything elsewhere."""
    assert digest(value) is None


def test_an_object_that_contains_itself_has_no_key():
    """It is not followed for ever."""
    loop = []
    loop.append(loop)
    assert digest(loop) is None


def test_a_function_that_is_not_found_under_its_name_has_no_key(monkeypatch):
    """Closures, and functions that were replaced, could mean anything."""
    own = structure._shape
    assert digest(own) is not None
    monkeypatch.setattr(structure, "_shape", lambda x: x)
    assert digest(own) is None
    assert digest(structure._shape) is None


def test_annotations_do_not_count(robot_of):
    """A model that comes from another file with the same content has the same key; another name of a body has not."""
    one, other = robot_of("a"), robot_of("a")
    assert one.source != other.source
    assert digest(one) == digest(other)
    assert digest(one) != digest(robot_of("b"))


@pytest.fixture
def robot_of(tmp_path):
    """Loads a pendulum from a new file each time."""
    count = iter(range(10))

    def make(name):
        path = tmp_path / f"robot{next(count)}.xml"
        body = f"<body name='{name}'><joint name='j'/><geom size='1' mass='1'/></body>"
        path.write_text(f"<mujoco model='m'><worldbody>{body}</worldbody></mujoco>")
        return load(path)

    return make


def pair_structure(k):
    """Structure of `pair(k)`."""
    return native.KernelStructure("pair", (k,), (0.0, {"b": 0.0}))


def pair(k, traced=None):
    """A function with a constant, which counts its traces."""

    def f(x, y):
        if traced is not None:
            traced.append(k)
        return jnp.sin(x) * k + y[0], {"b": y * jnp.exp(x)}

    return f


X, Y = np.linspace(-1, 1, 9), np.arange(27.0).reshape(9, 3)


def results(k, traced):
    """Results of the kernel of `pair(k)`."""
    kernel = native.compile(pair(k, traced), X[0], Y[0], structure=pair_structure(k))
    a, b = kernel(X, Y)
    return kernel, np.concatenate([a, b["b"].ravel()])


def test_a_hit_traces_nothing_and_gives_the_same_bits(folder):
    """A second kernel of the same structure is read from disk."""
    traced = []
    _, cold = results(3.0, traced)
    _, warm = results(3.0, traced)
    assert traced == [3.0]
    np.testing.assert_array_equal(cold, warm)
    _, other = results(4.0, traced)
    assert traced == [3.0, 4.0]
    assert not np.array_equal(cold, other)
    assert {path.suffix for path in folder.iterdir()} == {".kernel", ".entry"}


def test_shapes_and_types_are_part_of_the_key(folder):
    """Arguments of another shape or type are another kernel."""
    traced = []
    results(3.0, traced)
    native.compile(pair(3.0, traced), X[0], np.zeros(4), structure=pair_structure(3.0))
    native.compile(pair(3.0, traced), np.float32(1), np.zeros(3), structure=pair_structure(3.0))
    native.compile(pair(3.0, traced), X[0], Y[0], dtype=np.float32, structure=pair_structure(3.0))
    assert len(traced) == 4


def test_settings_of_jax_are_part_of_the_key(folder):
    """What changes a trace changes the key."""
    traced = []
    results(3.0, traced)
    with jax.numpy_dtype_promotion("strict"):
        results(3.0, traced)
    assert len(traced) == 2


def test_unknown_objects_are_traced_every_time(folder):
    """And their code is still found by its jaxpr."""
    traced = []
    for _ in range(2):
        own = native.KernelStructure("own", (Own(),), (0.0, {"b": 0.0}))
        native.compile(pair(3.0, traced), X[0], Y[0], structure=own)
    assert len(traced) == 2
    assert [path.suffix for path in folder.iterdir()] == [".kernel"]


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "others_may_write", "other_entry", "no_code"])
def test_damaged_entries_are_made_again(folder, damage):
    """An entry that is not exactly what was written, or whose code is gone, only costs time."""
    traced = []
    expected = results(3.0, traced)[1]  # the kernel itself is dropped, so that its code is read again
    (entry,) = folder.glob("*.entry")
    content = entry.read_bytes()
    if damage == "no_code":
        for path in folder.glob("*.kernel"):
            path.unlink()
    elif damage == "others_may_write":
        entry.chmod(0o666)
    else:
        results(4.0, traced)
        (other,) = (p for p in folder.glob("*.entry") if p != entry)
        flipped = content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]
        entry.write_bytes({"truncate": content[:-5], "flip": flipped, "empty": b""}.get(damage, other.read_bytes()))
    before = len(traced)
    np.testing.assert_array_equal(results(3.0, traced)[1], expected)
    assert len(traced) == before + 1
    results(3.0, traced)
    assert len(traced) == before + 1


def test_derivatives_after_a_hit_are_traced_then(folder):
    """A kernel from disk has no jaxpr until it is differentiated; inside `jit` it needs none."""
    traced = []
    results(3.0, traced)
    kernel, _ = results(3.0, traced)
    f = pair(3.0)
    np.testing.assert_allclose(jax.jit(kernel)(X[0], Y[0])[0], f(X[0], Y[0])[0], rtol=1e-14)
    assert len(traced) == 1
    for _ in range(2):
        np.testing.assert_allclose(jax.grad(lambda x: kernel(x, Y[0])[0])(X[0]), 3 * np.cos(X[0]), rtol=1e-14)
    assert len(traced) == 2


def test_results_must_have_the_declared_structure(folder):
    """A wrong template is told when the function is traced."""
    with pytest.raises(TypeError, match="results must have the structure"):
        native.compile(pair(5.0), X[0], Y[0], structure=native.KernelStructure("pair", (5.0,), (0.0, 0.0)))


def test_another_process_gives_the_same_bits(folder):
    """Keys and results do not depend on the process."""
    script = textwrap.dedent("""
        import sys, numpy as np
        from tests.native.test_structure import results
        import jax
        with jax.enable_x64(True), jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
            traced = []
            np.save(sys.argv[1], results(3.0, traced)[1])
            print(len(traced))
    """)
    outputs = []
    for k in range(2):
        command = [sys.executable, "-c", script, str(folder / f"{k}.npy")]
        done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
        outputs.append(int(done.stdout))
    assert outputs == [1, 0]
    np.testing.assert_array_equal(np.load(folder / "0.npy"), np.load(folder / "1.npy"))


def test_least_recently_used_files_go_first(folder, monkeypatch):
    """The folder is bounded; reading a file keeps it."""
    keys = [bytes([k]) * 32 for k in range(4)]
    monkeypatch.setattr(cache, "MAX_CACHE_BYTES", 3500)
    for time, key in enumerate(keys[:3]):
        cache.write(key, b"x" * 1000)
        os.utime(folder / f"{key.hex()}.kernel", (time, time))
    assert cache.read(keys[0]) is not None
    cache.write(keys[3], b"x" * 1000)
    assert [cache.read(key) is not None for key in keys] == [True, False, True, True]
    assert native.cache_usage().kernels == 3
    native.clear_cache()
    assert native.cache_usage()[1:4] == (0, 0, 0)
