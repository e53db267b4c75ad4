"""Array types: shapes live in annotations, units in docstrings."""

from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

if TYPE_CHECKING:
    Array = Any  # shapes and dtypes are checked at run time, by jaxtyping in the tests
else:
    Array = jax.Array | np.ndarray
    """A JAX array, or the NumPy array it came from: files load as NumPy, so that loading needs no 64-bit mode."""

__all__ = ["Array", "Bool", "Float", "Int"]
