"""Addresses of the data of NumPy arrays.

The address is the first field of NumPy's array object. To read it there takes a fifth of the time of
`__array_interface__`, which matters for kernels that take a microsecond. It is done only where this layout has been
tested, and after a comparison with `ndarray.ctypes` on a few arrays.
"""

import ctypes
import sys
from collections.abc import Callable

import numpy as np

from truesim.native.runtime.versions import has_tested_numpy

_place = ctypes.c_void_p.from_address
_HEADER_BYTES = object.__basicsize__
"""Size of the fields that all Python objects have; NumPy's own follow."""


def read_object(array: np.ndarray) -> int:
    """Read the address from NumPy's array object."""
    return _place(id(array) + _HEADER_BYTES).value or 0


def read_interface(array: np.ndarray) -> int:
    """Read the address from `__array_interface__`, which every NumPy has."""
    return array.__array_interface__["data"][0]


def choose_reader() -> Callable[[np.ndarray], int]:
    """Return the fastest safe way to get the address of an array's data."""
    is_known = sys.implementation.name == "cpython" and has_tested_numpy()
    return read_object if is_known and _agrees() else read_interface


def _agrees() -> bool:
    """Compare both ways on arrays of different kinds."""
    base = np.arange(12.0).reshape(3, 4)
    probes = (base, base[1:, 2:], base.T, np.zeros((), np.float32), np.zeros(5, bool)[3:])
    return all(read_object(x) == x.ctypes.data == read_interface(x) for x in probes)


data_address = choose_reader()
"""Address of the data of a NumPy array."""
