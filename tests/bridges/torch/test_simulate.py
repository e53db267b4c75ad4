"""Rollouts and steps on tensors against truesim's own, and their gradients."""

import copy
import gc
import pickle
import resource

import jax
import numpy as np
import pytest

import truesim as ts
from tests.robots import SMOOTH, SPINNING, robot
from truesim.core.errors import TruesimError
from truesim.physics.simulation import Simulator

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'truesim[torch]'")
import truesim.torch as tt  # noqa: E402

EXACT = {"rtol": 1e-12, "atol": 1e-12}
"""Kernels with and without batch axes round alike up to a few units in the last place."""


def test_a_rollout_is_the_simulators(layer, batch):
    """States after each step, the last state and its time are those of `truesim.rollout`, element by element."""
    state, commands = batch(3)
    end, path = layer(state, commands)
    assert path.q.shape == (3, 4, layer.simulator.model.nq)
    for k in range(3):
        own = layer.simulator.initial_state(state.q[k].detach().numpy(), state.v[k].detach().numpy())
        last, states = ts.rollout(layer.simulator, own, commands[k].detach().numpy())
        np.testing.assert_allclose(path.q[k].detach(), states.q, **EXACT)
        np.testing.assert_allclose(path.v[k].detach(), states.v, **EXACT)
        np.testing.assert_allclose(end.q[k].detach(), last.q, **EXACT)
        np.testing.assert_allclose(end.time[k].detach(), last.time, **EXACT)


def test_steps_make_a_rollout(layer, batch):
    """Steps one after the other give the states of a rollout, and the same gradient by the first state."""
    state, commands = batch(2)
    first, stepped = state, []
    for k in range(commands.shape[-2]):
        state = layer.step(state, commands[:, k])
        stepped.append(state.q)
    _, path = layer(first, commands)
    torch.testing.assert_close(torch.stack(stepped, dim=1), path.q, **EXACT)
    one, other = (torch.autograd.grad(q.square().sum(), first.v)[0] for q in (stepped[-1], path.q[:, -1]))
    torch.testing.assert_close(one, other, **EXACT)


def test_gradients_are_exact(simulator, batch):
    """Finite differences confirm gradients by parameters, state and commands, shared or for each batch element."""
    state, commands = batch(2, steps=3)
    shared = torch.tensor(1.7, dtype=torch.float64, requires_grad=True)
    own = torch.tensor([0.4, 0.6], dtype=torch.float64, requires_grad=True)
    paths = [f"bodies/{simulator.model.bodies.names[0]}.mass", "joints/a.damping"]

    def motion(mass, damping, q, v, u):
        parameters = dict(zip(paths, (mass, damping), strict=True))
        start = tt.TensorState(q, v, torch.zeros((), dtype=q.dtype))
        end, path = tt.rollout(simulator, start, u, parameters)
        return path.q, end.v

    assert torch.autograd.gradcheck(motion, (shared, own, state.q, state.v, commands))

    def moved(mass, damping, q, v, u):
        parameters = dict(zip(paths, (mass, damping), strict=True))
        return tt.step(simulator, tt.TensorState(q, v, torch.zeros((), dtype=q.dtype)), u, parameters)[:2]

    assert torch.autograd.gradcheck(moved, (shared, own, state.q, state.v, commands[:, 0]))


def test_batch_axes_broadcast(layer, batch):
    """Commands without batch axes are shared, and axes of length one stretch; gradients have the shapes of inputs."""
    state, commands = batch(2, 3)
    alone = commands[0, 0].detach().requires_grad_()
    _, path = layer(state, alone)
    torch.testing.assert_close(path.q, layer(state, alone.expand(2, 3, -1, -1))[1].q, **EXACT)
    wide = layer(tt.TensorState(state.q[:1], state.v[:, :1], state.time), alone)[1].q
    assert wide.shape == path.q.shape
    assert torch.autograd.grad(path.q.sum(), alone)[0].shape == alone.shape


def test_single_precision(simulator, layer, batch):
    """In float32 states and gradients are float32, and close to those of float64."""
    state, commands = batch(2)
    single = tt.Simulate(simulator, ["bodies/*.mass"])
    assert single.reference.dtype == torch.float32
    state32 = single.initial_state(state.q.detach().float(), state.v.detach().float())
    u32 = commands.detach().float().requires_grad_()
    _, path = single(state32, u32)
    assert path.q.dtype == torch.float32
    torch.testing.assert_close(path.q.double(), layer(state, commands)[1].q, rtol=1e-5, atol=1e-5)
    (gradient,) = torch.autograd.grad(path.q.sum(), u32)
    (reference,) = torch.autograd.grad(layer(state, commands)[1].q.sum(), commands)
    torch.testing.assert_close(gradient.double(), reference, rtol=1e-4, atol=1e-5)
    assert single.double().initial_state().q.dtype == torch.float64


def test_parameters_have_their_paths(layer, simulator):
    """Each match of a pattern is a parameter; `trained_simulator` has the present values."""
    names = [f"bodies/{name}.mass" for name in simulator.model.bodies.names]
    assert layer.paths == (*names, "joints/a.damping")
    assert list(layer.state_dict()) == [f"physical.{path.replace('.', ':')}" for path in layer.paths]
    other = copy.deepcopy(layer)
    with torch.no_grad():
        other.value("joints/a.damping").fill_(0.75)
    assert float(other.trained_simulator().read("joints/a.damping")) == 0.75
    assert float(layer.value("joints/a.damping").detach()) == 0.5
    with pytest.raises(TruesimError, match=r"did you mean 'joints/a\.damping'"):
        layer.value("joints/a.dampin")
    with pytest.raises(TruesimError, match="named twice"):
        tt.Simulate(simulator, ["joints/a.damping", "joints/*.damping"])


def test_a_module_can_be_saved(layer, batch):
    """A pickled module simulates as before."""
    state, commands = batch(2)
    again = pickle.loads(pickle.dumps(layer))
    torch.testing.assert_close(again(state, commands)[1].q, layer(state, commands)[1].q, rtol=0, atol=0)


def same_motion(simulator, state, commands):
    """Check two rollouts, one from the end of the other, against the simulator's own."""
    layer = tt.Simulate(simulator, dtype=torch.float64)
    end, _ = layer(state, commands)
    assert len(end.rest) > 0
    more, path = layer(end, commands)
    own = simulator.initial_state(state.q.detach().numpy(), state.v.detach().numpy(), commands[0].numpy())
    last, _ = ts.rollout(simulator, own, commands.numpy())
    _, states = ts.rollout(simulator, last, commands.numpy())
    np.testing.assert_allclose(path.q.detach(), states.q, **EXACT)
    return more


def test_delays_are_part_of_the_state(batch):
    """The history of commands goes from state to state, and gradients flow through it."""
    simulator = Simulator.of(robot(SMOOTH), max_delay=0.02)
    names = simulator.model.actuators.names
    simulator = simulator.replace({f"actuators/{name}.delay": 0.015 for name in names})
    state, commands = batch(steps=3)
    more = same_motion(simulator, state, commands.detach())
    assert torch.autograd.grad(more.q.sum(), state.v)[0].isfinite().all()


def test_impulses_are_part_of_the_state():
    """A falling ball meets a rigid floor; its impulses go from state to state."""
    floor = '<geom type="plane" size="5 5 .1"/>'
    ball = SPINNING.replace("<worldbody>", f"<worldbody>{floor}").replace("</body>", '<geom size=".1"/></body>')
    model = robot(ball)
    simulator = Simulator.of(model, contact=ts.RigidContact.of(model))
    q = torch.tensor(np.array(simulator.initial_state().q.at[2].set(0.1001)))
    v, commands = torch.tensor([0.1, 0, -0.5, 0, 0, 0], dtype=torch.float64), torch.zeros(3, 0, dtype=torch.float64)
    more = same_motion(simulator, tt.TensorState(q, v, torch.zeros((), dtype=torch.float64)), commands)
    assert more.q[2] > 0.09  # it has not fallen through


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, u: (s, u.float()), r"commands has the dtype torch.float32, but bodies/.* has torch.float64"),
        (lambda s, u: (s, u.to("meta")), r"commands is on the device meta; simulations run on the CPU"),
        (lambda s, u: (s._replace(v=s.v.int()), u), r"state\.v has the dtype torch.int32; valid are"),
        (lambda s, u: (s, u[..., :1]), r"commands has the shape \(2, 4, 1\); it must be \(\.\.\., steps, 3\)"),
        (lambda s, u: (s, u[:, 0, 0]), r"commands has the shape \(2,\)"),
        (lambda s, u: (s, u.detach().numpy()), r"commands must be a tensor, not ndarray"),
        (lambda s, u: (s, u[:1].expand(3, -1, -1)), r"batch axes .* do not go together"),
    ],
)
def test_mistakes_get_one_sentence(layer, batch, change, message):
    """A tensor of another device, dtype or shape is named, with what is valid."""
    state, commands = batch(2)
    with pytest.raises(TruesimError, match=message) as error:
        layer(*change(state, commands))
    assert "\n" not in str(error.value)


def test_training_leaks_nothing(simulator):
    """Of 1,000 steps of Adam, the last 800 leave no tensors and no memory behind."""
    layer = tt.Simulate(simulator, ["bodies/*.mass", "joints/a.damping"], dtype=torch.float64)
    optimizer = torch.optim.Adam(layer.parameters(), lr=1e-4)
    commands = torch.ones(64, 4, simulator.model.nu, dtype=torch.float64)

    def train(steps: int) -> tuple[int, int]:
        for _ in range(steps):
            optimizer.zero_grad()
            layer(layer.initial_state(), commands)[1].q.square().sum().backward()
            optimizer.step()
        gc.collect()
        return len(gc.get_objects()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    objects, kilobytes = train(200)
    more_objects, more_kilobytes = train(800)
    assert more_objects - objects < 50
    assert more_kilobytes - kilobytes < 2000  # one result kept per step would be 64 * 4 * 4 * 8 bytes * 800 = 6.5 MB


def test_jax_settings_do_not_matter(layer, batch):
    """Without 64-bit numbers in JAX, float64 tensors are still simulated in float64."""
    state, commands = batch(2, steps=5)
    with jax.enable_x64(False):
        found = layer(state, commands)[1].q
    again = pickle.loads(pickle.dumps(layer))(state, commands)[1].q
    torch.testing.assert_close(found, again, rtol=0, atol=0)
