"""Runs a function through XLA, compiled for speed of compilation instead of speed of execution."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

QUICK = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
"""Compiler options that make compiling some five times faster: most tests run a function once."""


def compiled(f: Callable, *arguments: Any) -> Callable:
    """`f`, compiled for arguments with these shapes; numbers in any of them, models included, are inputs."""
    dynamic, static = eqx.partition(_arrays(arguments), eqx.is_array)
    quick = jax.jit(lambda dynamic: f(*eqx.combine(dynamic, static))).lower(dynamic).compile(compiler_options=QUICK)

    def run(*arguments: Any) -> Any:
        return quick(eqx.partition(_arrays(arguments), eqx.is_array)[0])

    return run


def evaluate(f: Callable, *arguments: Any) -> Any:
    """`f(*arguments)`, compiled."""
    return compiled(f, *arguments)(*arguments)


def _arrays(tree: Any) -> Any:
    return jax.tree.map(lambda x: jnp.asarray(x) if eqx.is_array_like(x) else x, tree)
