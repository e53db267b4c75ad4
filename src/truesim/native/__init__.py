"""Compiler of small JAX functions to vector machine code for the CPU.

`compile` traces a function once and compiles its jaxpr with LLVM, so that every vector lane computes one instance of a
batch. The kernel runs on NumPy arrays, and inside JAX as a primitive that can be differentiated and batched. The
package knows nothing of physics. Its sub-packages, each built on the next:

- `runtime`: kernels in this process: calls on NumPy arrays and from XLA, the JAX primitive, the cache on disk, and the
  table of tested versions of JAX, XLA, NumPy and LLVM (`runtime.versions`);
- `codegen`: scalar graph to schedule, LLVM IR and machine code;
- `lowering`: jaxpr to scalar graph, one rule per primitive, and the fingerprints of jaxprs.
"""

from truesim.native.lowering import UnsupportedError
from truesim.native.lowering.fingerprint import code_version
from truesim.native.runtime.cache import clear as clear_cache
from truesim.native.runtime.cache import directory as cache_directory
from truesim.native.runtime.cache import usage as cache_usage
from truesim.native.runtime.columns import columns
from truesim.native.runtime.kernel import Kernel, compile, compiling  # noqa: A004
from truesim.native.runtime.structure import KernelStructure
from truesim.native.runtime.threads import use_threads

__all__ = [
    "Kernel",
    "KernelStructure",
    "UnsupportedError",
    "cache_directory",
    "cache_usage",
    "clear_cache",
    "code_version",
    "columns",
    "compile",
    "compiling",
    "use_threads",
]
