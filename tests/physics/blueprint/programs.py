"""Programs of steps as text; run as a script, it prints them for whatever `truesim` is on the path."""

import re
import sys

import jax
import jax.numpy as jnp

from tests.physics.contact.scenes import CUBE, rigid, scene
from tests.robots import CONSTRAINED, ROTATING, SMOOTH, robot
from truesim.physics.contact import CompliantContact
from truesim.physics.simulation import ImplicitFast, ImplicitStiff, Simulator, SmoothJointModel, State
from truesim.physics.simulation.sensors import read_encoders, read_sensors


def simulators() -> dict[str, Simulator]:
    """One of each law."""
    smooth, rotating, cube = robot(SMOOTH), robot(ROTATING), scene(CUBE)
    return {
        "smooth": Simulator.of(smooth, joint_model=SmoothJointModel.of(smooth), integrator=ImplicitStiff()),
        "constrained": Simulator.of(robot(CONSTRAINED)),
        "rotating": Simulator.of(rotating, integrator=ImplicitFast()),
        "compliant": Simulator.of(cube, contact=CompliantContact.of(cube)),
        "rigid": rigid(cube),
    }


def program(simulator: Simulator) -> str:
    """The program of a step and of its readings, without addresses."""

    def step(q, v, command):
        state = State(q, v, jnp.zeros(()))
        read = read_sensors(simulator, state, command), read_encoders(simulator.model, q, v)
        return simulator.step(state, command)[0], read

    state = simulator.initial_state()
    return re.sub("0x[0-9a-f]+", "", str(jax.make_jaxpr(step)(state.q, state.v, jnp.zeros(simulator.model.nu))))


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    for simulator in simulators().values():
        sys.stdout.write(program(simulator) + "\n")
