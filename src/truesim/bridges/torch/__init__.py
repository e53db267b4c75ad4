"""Simulations in PyTorch: modules, rollouts and steps through which gradients flow, and networks in both directions.

Values and vector-Jacobian products are native kernels on the memory of the tensors. Kernels compile at the first call.
"""

from importlib.util import find_spec

from truesim.core.errors import TruesimError

if find_spec("torch") is None:
    raise TruesimError("truesim.torch needs PyTorch: pip install 'truesim[torch]'.")

from truesim.bridges.torch.functions import Axes, TensorFunction
from truesim.bridges.torch.networks import recipe, trained, weights
from truesim.bridges.torch.simulate import Simulate, rollout, step
from truesim.bridges.torch.state import TensorState

__all__ = ["Axes", "Simulate", "TensorFunction", "TensorState", "recipe", "rollout", "step", "trained", "weights"]
