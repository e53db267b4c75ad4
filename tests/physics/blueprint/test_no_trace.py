"""Without a blueprint taps leave no trace; with networks that say zero, no number changes."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.physics.blueprint.programs import program, simulators
from tests.physics.blueprint.untapped import cut
from tests.robots import start
from truesim import native
from truesim.native.codegen import instructions
from truesim.physics.blueprint import MLP, Blueprint, Rule, ports
from truesim.physics.simulation import rollout
from truesim.physics.simulation.sensors import read_encoders, read_sensors

ROOT = Path(__file__).resolve().parents[3]


def test_without_a_blueprint_taps_leave_no_trace(tmp_path):
    """The program of a step is, letter for letter, that of the source with all taps cut out."""
    assert cut(tmp_path) > 20
    script = "import tests.physics.blueprint.programs"
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-W", "ignore", "-m", script.removeprefix("import ")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(program(simulator) + "\n" for simulator in simulators().values())


def silent(simulator) -> Blueprint:
    """A network that says zero at every port that takes one, with every input that it may have."""
    rules = []
    known = ports.available(simulator)
    for output in known:
        if output.writable and output.name != "joint.inertia":
            inputs = [p.name for p in known if p.of == output.of and ports.precedes(simulator, p, output)]
            rules.append(Rule(output.name, inputs, MLP((3,))))
    return Blueprint(rules)


@pytest.fixture
def unfused(monkeypatch, tmp_path):
    """Kernels that round after every operation: where products and sums are fused, programs round differently."""
    monkeypatch.setenv("TRUESIM_CACHE", str(tmp_path))
    for name, text in instructions._FLOAT.items():
        monkeypatch.setitem(instructions._FLOAT, name, text.replace(" contract", ""))


def outcome(simulator, state, command):
    """Everything that a step and the sensors give."""
    read = read_sensors(simulator, state, command)
    encoders = read_encoders(simulator.model, state.q, state.v, simulator.tap(state, command))
    return simulator.step(state, command), read, encoders


@pytest.mark.parametrize("name", list(simulators()))
def test_networks_that_say_zero_change_no_number(name, unfused):
    """Bit for bit, with a network at every port."""
    simulator = simulators()[name]
    hybrid = simulator.augmented(silent(simulator))
    state, command = start(simulator.model), jnp.full(simulator.model.nu, 0.3)
    plain, learned = (native.compile(outcome, s, state, command)(s, state, command) for s in (simulator, hybrid))
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(learned), strict=True):
        np.testing.assert_array_equal(a, b)


def test_fused_kernels_differ_in_the_last_bit():
    """Over fifty steps."""
    simulator = simulators()["smooth"]
    state, commands = start(simulator.model), jnp.ones((50, simulator.model.nu))
    plain, learned = (rollout(s, state, commands)[1] for s in (simulator, simulator.augmented(silent(simulator))))
    np.testing.assert_allclose(learned.q, plain.q, rtol=0, atol=1e-15)
    np.testing.assert_allclose(learned.v, plain.v, rtol=0, atol=1e-14)
