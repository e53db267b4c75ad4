"""Savings by the derivative rule of forward dynamics, compared with differentiation through the recursion.

Operations are scalar results of arithmetic in the jaxpr. Times are the best of several calls of compiled code.
"""

import math
import time
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table

from benchmarks.robots import serial_arm_xml
from truesim.files.robots.load import loads
from truesim.physics.dynamics import forward_dynamics
from truesim.physics.dynamics.forward import _articulated_body

MOVES = {
    "slice",
    "squeeze",
    "reshape",
    "broadcast_in_dim",
    "concatenate",
    "stack",
    "transpose",
    "scatter",
    "gather",
    "pad",
}


def operations(f: Callable, *args: object) -> int:
    """Number of scalar arithmetic operations in the jaxpr of f; copies do not count."""
    return _count(jax.make_jaxpr(f)(*args).jaxpr)


def _count(jaxpr) -> int:
    total = 0
    for equation in jaxpr.eqns:
        inner = [p.jaxpr for p in equation.params.values() if hasattr(p, "jaxpr")]
        if inner:
            total += sum(_count(j) for j in inner)
        elif equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            length = math.prod(equation.invars[0].aval.shape[d] for d in contracted)
            total += 2 * length * math.prod(equation.outvars[0].aval.shape)
        elif equation.primitive.name not in MOVES:
            total += sum(math.prod(v.aval.shape) for v in equation.outvars)
    return total


def seconds(f: Callable, *args: object, repeats: int = 20) -> float:
    """Best time of one call of the compiled function [s]."""
    compiled = jax.jit(f)
    jax.block_until_ready(compiled(*args))
    best = math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(compiled(*args))
        best = min(best, time.perf_counter() - start)
    return best


def measure(joints: int = 7) -> Table:
    """Table of both methods in forward and reverse mode, with respect to all inertial parameters and the state."""
    model = loads(serial_arm_xml(joints))
    q, v, tau = jax.random.normal(jax.random.key(0), (3, joints))
    numbers, structure = eqx.partition(model.bodies, eqx.is_array)

    def ruled(numbers, q, v, tau):
        return forward_dynamics(eqx.tree_at(lambda m: m.bodies, model, eqx.combine(numbers, structure)), q, v, tau)

    def plain(numbers, q, v, tau):
        changed = eqx.tree_at(lambda m: m.bodies, model, eqx.combine(numbers, structure))
        return _articulated_body(changed, q, v, tau, None, None)[0]

    args = (jax.tree.map(jnp.asarray, numbers), q, v, tau)
    tangents = jax.tree.map(jnp.ones_like, args)
    table = Table("derivative", "rule, operations", "plain, operations", "ratio", "rule, us", "plain, us", "ratio")
    ways = {
        "one tangent": lambda f: lambda *a: jax.jvp(f, a, tangents)[1],
        "reverse": lambda f: jax.grad(lambda *a: jnp.sum(f(*a)), argnums=(0, 1, 2, 3)),
    }
    for name, way in ways.items():
        counts = [operations(way(f), *args) for f in (ruled, plain)]
        times = [1e6 * seconds(way(f), *args) for f in (ruled, plain)]
        table.add_row(
            name,
            *map(str, counts),
            f"{counts[1] / counts[0]:.2f}",
            *(f"{t:.0f}" for t in times),
            f"{times[1] / times[0]:.2f}",
        )
    return table


if __name__ == "__main__":
    with jax.enable_x64(True):
        Console(width=120).print(measure())
