"""Compilation of Jacobian kernels of long arms with joint limits: CPU time, peak memory, number of operations.

`python -m benchmarks.jacobians [joints ...]` prints a table. Each arm is compiled in a fresh process without the cache.
The kernel is that of `compile_jacobian`: derivatives of two steps by all masses and by the initial state.
"""

import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.robots import serial_arm_xml
from truesim.files.robots.load import loads
from truesim.native.codegen.compiler import assemble, listing, load
from truesim.native.codegen.target import host
from truesim.native.runtime.program import Program
from truesim.physics.simulation import Simulator, State
from truesim.physics.simulation.backend import plain_jax
from truesim.physics.simulation.kernels import sensitivities

JOINTS = (12, 18, 24)
STEPS, BATCH = 2, 64


@dataclass(frozen=True)
class Compilation:
    """Cost of one kernel, by stage."""

    joints: int
    trace: float
    """[CPU s], as the next two."""
    lower: float
    llvm: float
    operations: int
    call: float
    """Time of one step of one batch element [us of CPU]."""
    memory: float = 0.0
    """Largest memory of the process [MB]."""


def limited_arm_xml(joints: int) -> str:
    """The serial arm with a limit at every joint, as MJCF."""
    return serial_arm_xml(joints).replace("<joint ", '<joint limited="true" range="-100 100" ')


def compile_arm(joints: int) -> Compilation:
    """Compile the Jacobian kernel of an arm in this process."""
    simulator = Simulator.of(loads(limited_arm_xml(joints)))
    mass = simulator.model.bodies.mass

    def run(mass: jax.Array, q: jax.Array, v: jax.Array, commands: jax.Array) -> tuple[jax.Array, jax.Array]:
        def simulator_of(mass: jax.Array) -> Simulator:
            return eqx.tree_at(lambda s: s.model.bodies.mass, simulator, mass)

        return sensitivities(simulator_of, mass, State(q, v, jnp.zeros(())), commands)

    begin = time.process_time()
    shapes = [jax.ShapeDtypeStruct(s, np.float64) for s in (mass.shape, (joints,), (joints,), (STEPS, joints))]
    with plain_jax():
        closed = jax.make_jaxpr(run)(*shapes)
    traced = time.process_time()
    made = listing(closed, host())
    lowered = time.process_time()
    code = assemble(made.text, host())
    compiled = time.process_time()
    program = Program(closed, b"", host())
    call = _call_seconds(program, code, (mass, joints))
    times = traced - begin, lowered - traced, compiled - lowered
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Compilation(joints, *times, made.operations, 1e6 * call, peak)


def _call_seconds(program: Program, code: bytes, arm: tuple[np.ndarray, int]) -> float:
    """CPU time per step and batch element, the best of several calls [s]."""
    mass, joints = arm
    program.adopt(*load(code, program.target))
    q = np.linspace(0, 2, BATCH * joints).reshape(BATCH, joints)  # some joints are beyond their limits
    args, best = (mass, q, np.zeros((BATCH, joints)), np.zeros((STEPS, joints))), np.inf
    for _ in range(5):
        begin = time.process_time()
        program.run(args, 1, str)
        best = min(best, time.process_time() - begin)
    return best / (BATCH * STEPS)


def main() -> None:
    """Compile all arms, each in a process of its own, and print the table."""
    if sys.argv[1:2] == ["--one"]:
        with jax.enable_x64(True):
            print(json.dumps(asdict(compile_arm(int(sys.argv[2])))))
        return
    table = Table("joints", "trace, s", "lower, s", "LLVM, s", "sum, CPU s", "operations", "peak, MB", "step, us")
    for joints in tuple(map(int, sys.argv[1:])) or JOINTS:
        command = [sys.executable, "-m", "benchmarks.jacobians", "--one", str(joints)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = Compilation(**json.loads(done.stdout.splitlines()[-1]))
        stages = found.trace, found.lower, found.llvm
        row = [*stages, sum(stages)]
        table.add_row(
            str(joints), *(f"{x:.1f}" for x in row), str(found.operations), f"{found.memory:.0f}", f"{found.call:.0f}"
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
