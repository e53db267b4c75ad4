"""Kernels for Windows, as far as another system can tell: they ask the system only for what it has."""

import re

import jax
import numpy as np

from truesim.native.codegen import compiler
from truesim.native.codegen.target import CpuTarget, host

WINDOWS = CpuTarget("x86_64-pc-windows-msvc", "x86-64", "")
LINUX = CpuTarget("x86_64-unknown-linux-gnu", "x86-64", "")


def called(target: CpuTarget) -> set[str]:
    """Functions of the system that a small kernel calls; it compiles to object code."""
    host()  # tells LLVM of this machine's targets
    closed = jax.make_jaxpr(lambda x: np.float32(2.0) * x + 1)(np.zeros(3, np.float32))
    text = compiler.listing(closed, target).text
    assert compiler.assemble(text, target)
    return set(re.findall(r"^declare .*@(\w+)\(", text, flags=re.MULTILINE))


def test_kernels_call_functions_that_the_system_has():
    """Windows has neither POSIX threads nor C11's aligned memory."""
    assert {"pthread_create", "aligned_alloc"} <= called(LINUX)
    on_windows = called(WINDOWS)
    assert {"_aligned_malloc", "_aligned_free"} <= on_windows
    assert not on_windows & {"pthread_create", "pthread_join", "aligned_alloc", "free"}
