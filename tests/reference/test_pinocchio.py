"""What only Pinocchio can check: the regressor, and the derivatives of forward dynamics."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from tests.comparison import assert_fields_agree
from tests.evaluation import evaluate
from tests.random_trees import Skeleton, random_configuration, tree
from tests.reference.pinocchio_model import PinocchioModel
from truesim.physics.dynamics import forward_dynamics, integrate, regressor

FIXED_BASE = {
    "chain": Skeleton((-1, 0, 1), (("hinge",), ("slide",), ("hinge",))),
    "branches": Skeleton((-1, 0, 0, 1), (("hinge", "hinge"), ("ball",), ("slide", "hinge"), ())),
}
FLOATING = {"floating": Skeleton((-1, 0, 0), (("free",), ("hinge", "ball"), ()))}


@pytest.mark.parametrize("name", [*FIXED_BASE, *FLOATING])
def test_regressor_agrees(name):
    """Every column of the regressor is Pinocchio's, moved from its joints' frames to our bodies'."""
    m, model = tree({**FIXED_BASE, **FLOATING}[name], 1)
    rng = np.random.default_rng(0)
    q, v, a = random_configuration(m, rng), rng.normal(size=m.nv), rng.normal(size=m.nv)
    ours = evaluate(regressor, model, q, v, a)
    assert_fields_agree({"regressor": ours}, {"regressor": PinocchioModel(model).regressor(q, v, a)})


@pytest.mark.parametrize("name", FIXED_BASE)
def test_derivatives_of_forward_dynamics_agree(name):
    """Derivatives in configuration, velocity and force are Pinocchio's analytic ones."""
    m, model = tree(FIXED_BASE[name], 2)
    rng = np.random.default_rng(0)
    q, v, tau = random_configuration(m, rng), rng.normal(size=m.nv), rng.normal(size=m.nv) * 5

    def acceleration(model, q, dq, v, tau):
        return forward_dynamics(model, integrate(model, q, dq), v, tau)

    by_q, by_v, by_tau = evaluate(jax.jacfwd(acceleration, argnums=(2, 3, 4)), model, q, jnp.zeros(m.nv), v, tau)
    peer = PinocchioModel(model)
    by_q_pin, by_v_pin, by_tau_pin = pin.computeABADerivatives(peer.model, peer.data, peer.configuration(q), v, tau)
    upper = np.triu(by_tau_pin)
    assert_fields_agree(
        {"by q": by_q, "by v": by_v, "by tau": by_tau},
        {"by q": by_q_pin, "by v": by_v_pin, "by tau": upper + np.triu(upper, 1).T},
    )
