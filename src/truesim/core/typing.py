"""Array types: shapes live in annotations, units in docstrings."""

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

Array = jax.Array | np.ndarray
"""A JAX array, or the NumPy array it was made from: model files load as NumPy, so that loading needs no 64-bit mode."""

__all__ = ["Array", "Bool", "Float", "Int"]
