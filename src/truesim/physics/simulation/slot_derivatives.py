"""Derivatives by parameters that act through contact slots: what the kernel gives by slot, summed over slots."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from truesim.physics.routines.adjoint import IDLE_SLOT, SlotNumber
from truesim.physics.simulation.adjoint_rows import Tables
from truesim.physics.simulation.step_adjoint import OF_SLOTS


@dataclass(frozen=True)
class SlotColumns:
    """Contact slots, and cotangents of some of their columns."""

    slots: np.ndarray
    """Shape (rows, slots, numbers)."""
    by_columns: np.ndarray
    """Shape (rows, slots, columns)."""
    columns: np.ndarray

    def cotangents(self, name: str) -> np.ndarray:
        """Cotangents of the values of a table that the slots hold, shape (rows, slots, width)."""
        first = int(SlotNumber[name.removeprefix("pair_").upper()])
        later = [int(entry) for entry in (*SlotNumber, len(IDLE_SLOT)) if entry > first]
        return self.by_columns[..., (self.columns >= first) & (self.columns < min(later))]

    def sum_over_pairs(
        self, direct: Tables, moving: tuple[str, ...], shape_of: Callable[[str], tuple[int, ...]]
    ) -> dict[str, np.ndarray]:
        """Cotangents of the tables whose values the slots hold: sums over the slots of each pair.

        Args:
            direct: Cotangents of the tables that do not act through slots.
            moving: Names of the tables to differentiate by.
            shape_of: Shape of a table by its name.
        """
        slots = self.slots
        used = slots[..., SlotNumber.PAIR] >= 0
        instance, slot = np.nonzero(used)
        pair = slots[instance, slot, SlotNumber.PAIR].astype(int)
        found = {}
        for name in (n for n in OF_SLOTS if n in moving):
            shape = shape_of(name)
            total = np.zeros((len(slots), *shape), slots.dtype)
            values = self.cotangents(name)[instance, slot]
            np.add.at(total, (instance, pair), values if len(shape) > 1 else values[:, 0])
            found[name] = total
        if "body_invweight0" in moving:
            total = np.array(direct["body_invweight0"])
            values = self.cotangents("weight")[instance, slot, 0]
            for entry in (SlotNumber.FIRST_BODY, SlotNumber.SECOND_BODY):
                body = slots[instance, slot, entry].astype(int)
                np.add.at(total[..., 0], (instance, body), values)
            found["body_invweight0"] = total
        return found


def derivatives_along(directions: Tables, by_tables: Tables, rows: int, columns: SlotColumns | None) -> np.ndarray:
    """Derivatives (rows, directions) along changes of the tables, from cotangents of the tables and of the slots."""
    count = len(next(iter(directions.values())))
    total = np.zeros((rows, count))
    for name, change in directions.items():
        if name not in OF_SLOTS:
            total += by_tables[name].reshape(rows, -1) @ change.reshape(count, -1).T
    if columns is None:
        return total
    slots = columns.slots
    used = slots[..., SlotNumber.PAIR] >= 0
    pair = np.where(used, slots[..., SlotNumber.PAIR], 0).astype(int)
    for name, change in directions.items():
        if name in OF_SLOTS:
            moved = np.moveaxis(change.reshape(count, change.shape[1], -1), 0, -1)[pair]
            total += np.einsum("rsw,rswp->rp", used[..., None] * columns.cotangents(name), moved)
    if "body_invweight0" in directions:
        bodies = slots[..., [SlotNumber.FIRST_BODY, SlotNumber.SECOND_BODY]].astype(int)
        moved = directions["body_invweight0"][:, bodies, 0].sum(axis=-1)
        total += np.einsum("rs,prs->rp", used * columns.cotangents("weight")[..., 0], moved)
    return total
