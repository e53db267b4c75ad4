"""Array types: shapes live in annotations, units in docstrings."""

from typing import TYPE_CHECKING

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

if TYPE_CHECKING:
    Array = jax.Array | np.ndarray  # shapes and dtypes are checked at run time, by jaxtyping in the tests
else:
    Array = jax.Array | np.ndarray | np.generic
    """A JAX array, or the NumPy array or scalar it came from: files load as NumPy, which needs no 64-bit mode."""

if TYPE_CHECKING:
    NumPyArray = np.ndarray
else:
    NumPyArray = np.ndarray | np.generic
    """A NumPy array, or the scalar that NumPy makes of an array without axes."""

__all__ = ["Array", "Bool", "Float", "Int", "NumPyArray"]
