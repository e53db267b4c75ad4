"""`--threads`: reaches every kernel that a verb compiles, and the search of `identify`."""

import numpy as np
import pytest

from truesim import native
from truesim.cli import designing
from truesim.cli.verbs import VERB_TABLE, load_verb
from truesim.core.errors import TruesimError
from truesim.identification import pipeline
from truesim.native.runtime.threads import scoped_threads


def test_kernels_take_the_threads_of_their_scope():
    """A kernel that is compiled in the scope has at least its threads, and the same results."""

    def f(x):
        return x * x + 1

    x = np.linspace(0, 1, 1000)
    plain = native.compile(f, 0.0)
    with native.use_threads(3):
        split, more = native.compile(f, 0.0), native.compile(f, 0.0, threads=4)
    assert (plain.threads, split.threads, more.threads, scoped_threads()) == (1, 3, 4, 1)
    np.testing.assert_array_equal(split(x), plain(x))


@pytest.mark.parametrize(
    "verb", ["identify", "posterior", "calibrate", "design", "suggest", "watch", "simulate", "evaluate"]
)
def test_verbs_that_compute_have_threads(verb):
    """The option is the same everywhere, with one thread by default."""
    (option,) = [p for p in load_verb(verb).params if "--threads" in p.opts]
    assert option.default == 1
    assert verb in VERB_TABLE


@pytest.mark.parametrize(
    ("options", "threads", "workers"),
    [(("--threads", "2"), 2, "2"), ((), 1, "1"), (("--workers", "3"), 1, "3"), (("--workers", "ray"), 1, "ray")],
)
def test_threads_of_a_search(truesim, arm, tmp_path, monkeypatch, options, threads, workers):
    """The number is that of the scope and of the search; `--workers` is the old spelling for the search."""
    (tmp_path / "run.csv").write_text("time,qpos/elbow\n0,1\n")
    seen = []

    def stop(robot, parts, free, options, *_):
        seen.append((scoped_threads(), options.search.workers))
        raise TruesimError("Enough.")

    monkeypatch.setattr(pipeline, "run", stop)
    what = ("identify", arm, "run.csv", "--free", "bodies/*.mass", "--search", "hopping", "--out", "fit")
    assert "Enough." in truesim(*what, *options).sentence
    assert seen == [(threads, workers)]


def test_threads_of_a_design(truesim, arm, monkeypatch):
    """The number reaches the options of the design."""
    seen = []

    def stop(robot, free, options, given, fit):
        seen.append((scoped_threads(), options.threads))
        raise TruesimError("Enough.")

    monkeypatch.setattr(designing, "design_motion", stop)
    what = ("design", arm, "--free", "bodies/*.mass", "--seconds", "1", "--speed", "1")
    assert "Enough." in truesim(*what, "--threads", "2").sentence
    assert seen == [(2, 2)]
