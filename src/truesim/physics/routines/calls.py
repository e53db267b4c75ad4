"""The adjoint of a step on fixed arrays: a call that may be repeated while the numbers in the arrays change."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from truesim.native.runtime.addresses import data_address
from truesim.physics.routines.adjoint import IDLE_SLOT, AdjointTransfer

if TYPE_CHECKING:
    from truesim.physics.routines.engine import Engine

FIRST_SLOTS = 16
"""Contact slots for which there is room at first; where there are more, a call is repeated with more room."""
_AFTER = AdjointTransfer.QPOS_OUT, AdjointTransfer.QVEL_OUT, AdjointTransfer.WARMSTART_OUT
"""Entries of the state after the step."""


class AdjointCall:
    """The adjoint of one step of a batch on fixed arrays, whose numbers stay; `adjoint.py` derives it.

    Attributes:
        solved: Acceleration of the constraint solver, shape (batch, nv).
        integrated: Acceleration of the integrator, shape (batch, nv).
        y: `(M + h D)'^-1` times the cotangents, shape (batch, count, nv).
        z: `H^-1 M y`, shape (batch, count, nv).
        slots: Contact slots, shape (batch, capacity, numbers); the pair is -1 where nothing touches.
        after: `(qpos, qvel, warmstart)` after the step, if it is taken.
    """

    def __init__(self, engine: "Engine", states: Sequence[np.ndarray], cotangents: np.ndarray, steps: bool):
        """Take arrays.

        Args:
            engine: The routines.
            states: Arrays (batch, ...) of `(qpos, qvel, warmstart, ctrl)`.
            cotangents: Cotangents of the acceleration of the integrator, shape (batch or 1, count, nv).
            steps: Also compute the state after the step, `after`.
        """
        batch, nv = len(states[0]), engine.sizes["nv"]
        self.states, self.cotangents = states, cotangents
        self.solved, self.integrated = (np.empty((batch, nv), engine.dtype) for _ in range(2))
        self.y, self.z = (np.empty((batch, *cotangents.shape[1:]), engine.dtype) for _ in range(2))
        self.after = [np.empty_like(x) for x in states[:3]] if steps else []
        self._engine = engine
        self._make_slots(FIRST_SLOTS)

    def _make_slots(self, capacity: int) -> None:
        """Make room for so many contact slots of each instance."""
        batch, count, _ = self.y.shape
        self.slots = np.empty((batch, capacity, len(IDLE_SLOT)), self.y.dtype)
        self._io = np.zeros(AdjointTransfer.SLOT_COUNT + 1, np.int64)
        self._io[:8] = [data_address(a) for a in (*self.states, self.solved, self.integrated, self.slots, self.y)]
        self._io[AdjointTransfer.BATCH], self._io[AdjointTransfer.COTANGENT_COUNT] = batch, count
        self._io[AdjointTransfer.SLOT_CAPACITY], self._io[AdjointTransfer.WEIGHTS_OUT] = capacity, data_address(self.z)
        for entry, array in zip(_AFTER, self.after, strict=False):
            self._io[entry] = data_address(array)

    def __call__(self, parameters: Mapping[str, np.ndarray], threads: int) -> int:
        """Compute all arrays; returns the largest number of contact slots in use."""
        while True:
            self.y[:] = self.cotangents
            self.slots[:] = IDLE_SLOT
            self._io[AdjointTransfer.SLOT_COUNT] = 0
            most = self._engine.run("adjoint_batch", self._io, parameters, threads)
            capacity = self.slots.shape[1]
            if most <= capacity:
                return most
            while capacity < most:
                capacity *= 2
            self._make_slots(capacity)
