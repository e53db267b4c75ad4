"""Another engine's whole step as a kernel. Compiling the reference takes half a minute: set TRUESIM_MJX=1 to run it."""

import os

import jax
import mujoco
import numpy as np
import pytest

from truesim import native
from truesim.bench.robots import cube_xml, quadruped_xml

pytestmark = pytest.mark.skipif("TRUESIM_MJX" not in os.environ, reason="set TRUESIM_MJX=1 to compile MJX")


@pytest.mark.parametrize("xml", [cube_xml(), quadruped_xml(contact=True)], ids=["cube", "quadruped"])
def test_mjx_step(xml):
    """Positions, velocities and accelerations after a step in contact are XLA's to 1e-5 of the largest entry."""
    mjx = pytest.importorskip("mujoco.mjx")
    model = mujoco.MjModel.from_xml_string(xml)
    rng = np.random.default_rng(0)
    with jax.enable_x64(False):
        device = mjx.put_model(model)
        data = mjx.make_data(device)
        q = np.tile(np.asarray(data.qpos), (16, 1))
        q[:, 2] -= rng.uniform(0, 0.03, 16).astype(q.dtype)
        v = 0.3 * rng.normal(size=(16, model.nv)).astype(q.dtype)

        def step(device, data, q, v):
            after = mjx.step(device, data.replace(qpos=q, qvel=v))
            return after.qpos, after.qvel, after.qacc

        got = native.compile(step, device, data, q[0], v[0])(device, data, q, v)
        want = jax.jit(jax.vmap(step, (None, None, 0, 0)))(device, data, q, v)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * (1 + np.abs(b).max()))
