"""Kernels for Windows, as far as another system can tell: they ask the system only for what it has."""

import jax
import numpy as np

from truesim.native.codegen import compiler
from truesim.native.codegen.target import CpuTarget, host

WINDOWS = CpuTarget("x86_64-pc-windows-msvc", "x86-64", "")
LINUX = CpuTarget("x86_64-unknown-linux-gnu", "x86-64", "")


def object_code(target: CpuTarget) -> bytes:
    """Object code of a small kernel, whose symbol table names the functions that it calls."""
    host()  # tells LLVM of this machine's targets
    closed = jax.make_jaxpr(lambda x: np.float32(2.0) * x + 1)(np.zeros(3, np.float32))
    return compiler.assemble(compiler.listing(closed, target).text, target)


def test_kernels_call_functions_that_the_system_has():
    """Windows has neither POSIX threads nor C11's aligned memory."""
    assert b"pthread_create" in object_code(LINUX)
    code = object_code(WINDOWS)
    assert b"_aligned_malloc" in code
    assert b"pthread_create" not in code
