import jax
import pytest


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    """Keep the kernels of a test run in a folder of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRUESIM_CACHE", str(tmp_path_factory.mktemp("kernels")))
        yield


@pytest.fixture(autouse=True)
def _double_precision():
    """Let the functions under test use float64 and all of NumPy's broadcasting."""
    with jax.enable_x64(True), jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield
