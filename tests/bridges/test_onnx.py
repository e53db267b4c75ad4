"""A policy as ONNX computes the same actions."""

import numpy as np
import pytest

from truesim.policies import load_policy, make_task
from truesim.policies.actors import PolicyNetwork
from truesim.policies.networks import Normalizer
from truesim.policies.policy import TrainedPolicy, describe


def saved(folder, network):
    weights = network.make(np.random.default_rng(0), 4, 1, last=1.0)
    normalizer = Normalizer(np.full(4, 0.1, np.float32), np.full(4, 2.0, np.float32), np.float32(1))
    layers, cell = (weights["layers"], weights["cell"]) if network.is_recurrent else (weights, [])
    description = describe(make_task("cart-pole-balance"), network.activation, layers, {}, network)
    TrainedPolicy(layers, normalizer, network.activation, description, network.kind, cell).save(folder)
    return load_policy(folder)


def evaluator(folder, policy):
    reference = pytest.importorskip("onnx.reference", reason="ONNX is not installed: pip install 'truesim[onnx]'")
    from truesim.bridges.onnx import write_onnx

    write_onnx(policy, folder / "policy.onnx")
    return reference.ReferenceEvaluator(str(folder / "policy.onnx"))


@pytest.mark.parametrize("activation", ["tanh", "elu", "relu"])
def test_actions_are_equal(tmp_path, activation):
    policy = saved(tmp_path, PolicyNetwork(hidden=(8, 8), activation=activation))
    x = np.random.default_rng(1).standard_normal((64, 4)).astype(np.float32)
    (action,) = evaluator(tmp_path, policy).run(None, {"observation": x})
    np.testing.assert_allclose(action, policy.act(x), atol=1e-6)
    assert np.ptp(action) > 0.1


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_recurrent_actions_are_equal(tmp_path, kind):
    """Memories go from one control step to the next, in the graph as in the runner."""
    policy = saved(tmp_path, PolicyNetwork(kind, hidden=(8,), units=5))
    graph = evaluator(tmp_path, policy)
    memory, actions = np.zeros((16, policy.description["network"]["memory"]), np.float32), []
    for x in np.random.default_rng(1).standard_normal((6, 16, 4)).astype(np.float32):
        action, memory = graph.run(None, {"observation": x, "memory": memory})
        np.testing.assert_allclose(action, policy.act(x), atol=1e-6)
        actions.append(action)
    assert np.ptp(actions) > 0.1
