"""Simulations in PyTorch, under a short name: `truesim.torch` is `truesim.bridges.torch`."""

from truesim.bridges.torch import (
    Axes,
    Simulate,
    TensorFunction,
    TensorState,
    recipe,
    rollout,
    step,
    trained,
    weights,
)

__all__ = ["Axes", "Simulate", "TensorFunction", "TensorState", "recipe", "rollout", "step", "trained", "weights"]
