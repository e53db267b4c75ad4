"""MuJoCo's exported collision functions, and the memory that a thread needs to call them."""

import ctypes
from functools import cache
from pathlib import Path

import mujoco
import numpy as np

from truesim.core.errors import TruesimError
from truesim.physics.routines.foreign import MAX_PAIR_POINTS, PRECONTACT_NUMBERS

TESTED_MUJOCO = ((4, 0),)
"""Versions (major, minor) of MuJoCo whose collision functions have been tested; they are not documented."""


@cache
def collision_addresses() -> dict[tuple[int, int], int]:
    """Address of the collision function of two geom types, in ascending order."""
    version = tuple(int(n) for n in mujoco.__version__.split(".")[:2])
    if version not in TESTED_MUJOCO:
        tested = ", ".join(".".join(map(str, v)) for v in TESTED_MUJOCO)
        raise TruesimError(
            f"MuJoCo {mujoco.__version__} has not been tested as a source of collision functions (tested: {tested}); "
            "pairs of meshes, ellipsoids and boxes need one of these versions"
        )
    count = int(mujoco.mjtGeom.mjNGEOMTYPES)
    library = ctypes.CDLL(str(_library_path()))
    table = (ctypes.c_void_p * (count * count)).in_dll(library, "mjCOLLISIONFUNC")
    return {(a, b): address for a in range(count) for b in range(a, count) if (address := table[a * count + b])}


def _library_path() -> Path:
    folder = Path(mujoco.__file__).parent
    found = [p for pattern in ("libmujoco*", "mujoco.dll") for p in folder.glob(pattern)]
    if not found:
        raise TruesimError(f"no MuJoCo library in {folder}")
    return found[0]


class CollisionMemory:
    """An `mjData` whose geom poses one thread may overwrite, and room for the contacts of a pair."""

    def __init__(self, model: mujoco.MjModel):
        self.model, self.data = model, mujoco.MjData(model)
        self._contacts = np.zeros(MAX_PAIR_POINTS * PRECONTACT_NUMBERS)

    def addresses(self) -> list[int]:
        """Addresses of model, data, `geom_xpos`, `geom_xmat` and the contacts."""
        arrays = (self.data.geom_xpos, self.data.geom_xmat, self._contacts)
        return [self.model._address, self.data._address, *(a.ctypes.data for a in arrays)]
