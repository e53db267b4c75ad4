"""Simulations in the worker processes of a DataLoader."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'truesim[torch]'")
from torch.utils.data import DataLoader, Dataset  # noqa: E402

from tests.robots import SMOOTH, robot  # noqa: E402
from truesim.physics.simulation import Simulator  # noqa: E402

import truesim.torch as tt  # noqa: E402, isort: skip


class Motions(Dataset):
    """Simulated motions under constant commands."""

    def __init__(self, layer: tt.Simulate):
        self.layer = layer

    def __len__(self) -> int:
        return 4

    def __getitem__(self, k: int) -> torch.Tensor:
        """States of a motion."""
        commands = torch.full((4, 3), 0.1 * k, dtype=torch.float64)
        with torch.no_grad():
            return self.layer(self.layer.initial_state(), commands)[1].q


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize(("method", "warm"), [("fork", True), ("fork", False), ("spawn", False)])
def test_workers_simulate(method, warm):
    """Workers give what this process gives, whether or not it has compiled the kernels before."""
    layer = tt.Simulate(Simulator.of(robot(SMOOTH)), ["bodies/*.mass"], dtype=torch.float64)
    motions = Motions(layer)
    if warm:
        motions[0]
    loader = DataLoader(motions, batch_size=2, num_workers=1, multiprocessing_context=method, timeout=120)
    found = torch.cat(list(loader))
    torch.testing.assert_close(found, torch.stack([motions[k] for k in range(4)]), rtol=0, atol=0)
