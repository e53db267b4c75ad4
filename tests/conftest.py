"""Settings of all tests: 64-bit numbers, no silent broadcasting or promotion, the same random examples every time."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.annotations import check_annotations
from tests.memory import return_freed_memory

check_annotations()

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

settings.register_profile(
    "stable",
    derandomize=True,  # the same examples on every run, so that a failure is the change's and not the dice's
    database=None,
    phases=[Phase.explicit, Phase.generate],  # shrinking would compile hundreds of examples; `search` does it
    deadline=None,  # an example may have to be compiled
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.register_profile(
    "search", parent=settings.get_profile("stable"), derandomize=False, max_examples=1000, phases=tuple(Phase)
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "stable"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what has been imported and collected out of garbage collections, which otherwise take two seconds each.

    Tracing makes many objects and little garbage, so that collections are rare.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


@pytest.fixture(scope="module", autouse=True)
def _release_memory() -> Iterator[None]:
    """Drop what was compiled for the tests of a module: nothing of it is used again, and it adds up to gigabytes."""
    yield
    jax.clear_caches()
    return_freed_memory()


@pytest.fixture(scope="session")
def sysid_cases() -> Path:
    """Folder of the recorded cases: `$TRUESIM_DATA/sysid_cases`, or the data beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("TRUESIM_DATA", beside)) / "sysid_cases"
    if not folder.is_dir():
        pytest.skip(f"the recorded cases are not at {folder}; set TRUESIM_DATA to the data folder")
    return folder
