"""Hybrid models in MuJoCo."""

from truesim.mujoco.attach import Hybrid, attach

__all__ = ["Hybrid", "attach"]
