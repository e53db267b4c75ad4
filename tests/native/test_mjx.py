"""Another engine's whole step as a kernel. Compiling the reference takes half a minute: set TRUESIM_MJX=1 to run it."""

import os

import jax
import numpy as np
import pytest

from benchmarks.robots import cube_xml, quadruped_xml
from truesim import native

pytestmark = pytest.mark.skipif("TRUESIM_MJX" not in os.environ, reason="set TRUESIM_MJX=1 to compile MJX")

ROBOTS = pytest.mark.parametrize("xml", [cube_xml(), quadruped_xml(contact=True)], ids=["cube", "quadruped"])


@ROBOTS
def test_step_in_contact(xml):
    """Positions, velocities and accelerations after a step are XLA's to 1e-5 of 1 + the largest entry."""
    pytest.importorskip("mujoco.mjx")
    from benchmarks.peers.mjx import arguments, step

    with jax.enable_x64(False):
        args = arguments(xml)
        got = native.compile(step, *args[:2], args[2][0], args[3][0])(*args)
        want = jax.jit(jax.vmap(step, (None, None, 0, 0)))(*args)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * (1 + np.abs(b).max()))


@ROBOTS
def test_whole_state_of_a_step(xml):
    """The whole state, batched, goes in and out, and gives what positions and velocities alone give."""
    pytest.importorskip("mujoco.mjx")
    from mujoco import mjx

    from benchmarks.peers.mjx import arguments, step

    with jax.enable_x64(False):
        device, data, q, v = arguments(xml, batch=9)
        batched = jax.tree.map(lambda x: np.repeat(x[None], 9, 0), data).replace(qpos=q, qvel=v)
        after = native.compile(mjx.step, device, data)(device, batched)
        want = native.compile(step, device, data, q[0], v[0])(device, data, q, v)
    for a, b in zip((after.qpos, after.qvel, after.qacc), want, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * (1 + np.abs(b).max()))
    assert np.all(after.time == batched.time + np.float32(0.002))
