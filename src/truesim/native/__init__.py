"""Any small JAX function as vector machine code.

`compile` traces a function once and compiles its jaxpr with LLVM so that every vector lane computes one
instance of a batch. The result runs on NumPy arrays, and inside JAX as a primitive that can be
differentiated and batched.
"""

from truesim.native.cache import clear as clear_cache
from truesim.native.cache import directory as cache_directory
from truesim.native.kernel import Kernel, compile, compiling  # noqa: A004
from truesim.native.lower import UnsupportedError

__all__ = ["Kernel", "UnsupportedError", "cache_directory", "clear_cache", "compile", "compiling"]
