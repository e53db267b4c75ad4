"""Networks of PyTorch within the physics."""

import numpy as np
import pytest

import truesim as ts
from tests.robots import SMOOTH, robot
from truesim.core.errors import TruesimError
from truesim.physics.blueprint import Rule, read_networks, write_networks

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'truesim[torch]'")
from torch import nn  # noqa: E402

import truesim.torch as tt  # noqa: E402


def network(inputs: int = 2, outputs: int = 1) -> nn.Sequential:
    """A small network in double precision."""
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(inputs, 5), nn.Softplus(), nn.Linear(5, 4), nn.Softplus(), nn.Linear(4, outputs)).to(
        torch.float64
    )


def blueprint(net: nn.Module) -> ts.Blueprint:
    """The network as a torque that depends on position and velocity."""
    return ts.Blueprint((Rule("joint.torque", ("joint.position", "joint.velocity"), tt.recipe(net), name="drag"),))


@pytest.mark.parametrize("activation", [nn.Tanh, nn.Softplus, nn.Sigmoid, nn.ReLU, nn.Softsign])
@pytest.mark.parametrize("bias", [True, False])
def test_recipes_and_weights(activation, bias):
    """A network made from the recipe with the module's weights computes what the module does."""
    net = nn.Sequential(nn.Linear(3, 4, bias=bias), activation(), nn.Linear(4, 2, bias=bias)).double()
    rule = Rule("joint.torque", ("joint.position",), tt.recipe(net), name="r")
    made = rule.network.make(3, 2, silent=False)
    x = np.array([0.3, -0.8, 1.2])
    numbers = tt.weights(net).detach().numpy()
    sizes = np.cumsum([w.size for w in (*made.weights, *made.biases)])[:-1]
    parts = [p.reshape(w.shape) for p, w in zip(np.split(numbers, sizes), (*made.weights, *made.biases), strict=True)]
    y = type(made)(tuple(parts[:2]), tuple(parts[2:]), made.activation)(x)
    np.testing.assert_allclose(y, net(torch.tensor(x)).detach(), rtol=1e-12)


def test_a_module_acts_in_the_physics(tmp_path):
    """The export moves the robot as the module in the layer does, also after a round trip through files."""
    net, model = network(), robot(SMOOTH)
    plan = blueprint(net)
    simulator = ts.Simulator.of(model, blueprint=plan)
    layer = tt.Simulate(simulator, ["joints/a.damping"], networks={"drag": net}, dtype=torch.float64)
    start = layer.initial_state(layer.reference + 0.2)
    commands = torch.full((5, model.nu), 0.3, dtype=torch.float64)
    q = layer(start, commands)[1].q.detach()

    write_networks(tt.trained(plan, {"drag": net}), tmp_path)
    for hybrid in (ts.Simulator.of(model, blueprint=read_networks(tmp_path)), layer.trained_simulator()):
        _, states = ts.rollout(hybrid, hybrid.initial_state(start.q.numpy()), commands.numpy())
        np.testing.assert_allclose(states.q, q, rtol=1e-12)
    _, without = ts.rollout(ts.Simulator.of(model), simulator.initial_state(start.q.numpy()), commands.numpy())
    assert np.abs(without.q - q.numpy()).max() > 1e-6


def test_a_module_is_trained_through_the_physics():
    """Gradients reach the weights, and agree with finite differences."""
    net, model = network(), robot(SMOOTH)
    simulator = ts.Simulator.of(model, blueprint=blueprint(net))
    layer = tt.Simulate(simulator, networks={"drag": net}, dtype=torch.float64)
    commands = torch.full((5, model.nu), 0.3, dtype=torch.float64)

    def loss() -> torch.Tensor:
        return 1e3 * layer(layer.initial_state(), commands)[1].q.square().sum()

    loss().backward()
    weight = net[0].weight
    assert dict(layer.named_parameters()).keys() == {f"networks.drag.{name}" for name, _ in net.named_parameters()}
    analytic, step = weight.grad[1, 0].item(), 1e-6
    values = []
    for sign in (1, -1):
        with torch.no_grad():
            weight[1, 0] += sign * step
            values.append(loss().item())
            weight[1, 0] -= sign * step
    assert analytic == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-5)


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (lambda: nn.Sequential(nn.Linear(2, 3), nn.GELU(), nn.Linear(3, 1)), "one kind of activation, not GELU. Valid"),
        (lambda: nn.Sequential(nn.Linear(2, 3), nn.Tanh()), "linear layers with activations between them"),
        (lambda: nn.GRU(2, 3), "the module has GRU"),
        (lambda: nn.Sequential(nn.Linear(2, 3, bias=False), nn.Tanh(), nn.Linear(3, 1)), "Either all linear layers"),
        (lambda: nn.Sequential(nn.Linear(2, 3), nn.Softplus(beta=2.0), nn.Linear(3, 1)), "Softplus must have"),
    ],
)
def test_other_modules_are_refused(net, message):
    """A module that a blueprint cannot describe is named."""
    with pytest.raises(TruesimError, match=message):
        tt.recipe(net())


def test_unknown_rules_are_named():
    """Rules without a module, and modules without a rule, are errors."""
    net = network()
    with pytest.raises(TruesimError, match="did you mean 'drag'"):
        tt.trained(blueprint(net), {"drug": net})
    with pytest.raises(TruesimError, match="The rule drag has no module"):
        tt.trained(blueprint(net), {})
    simulator = ts.Simulator.of(robot(SMOOTH), blueprint=blueprint(net))
    with pytest.raises(TruesimError, match="did you mean 'drag'"):
        tt.Simulate(simulator, networks={"drug": net})
