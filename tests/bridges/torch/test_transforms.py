"""`torch.compile`, `torch.func` and the rules of the operators."""

import pytest

from truesim.core.errors import TruesimError

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'truesim[torch]'")
import truesim.torch as tt  # noqa: E402
from truesim.bridges.torch import operators  # noqa: E402

EXACT = {"rtol": 1e-12, "atol": 1e-12}
WARNINGS = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.filterwarnings("ignore::UserWarning")]
pytestmark = WARNINGS  # of the compiler of PyTorch itself


def heights(layer):
    """Loss of a motion, as a function of its start and commands."""
    return lambda q, v, u: layer(layer.initial_state(q, v), u)[1].q.square().sum(dim=(-1, -2))


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_compiled_graphs(layer, batch, backend):
    """One graph without breaks has the values and gradients of eager mode, for several batch sizes."""
    loss = heights(layer)
    compiled = torch.compile(loss, fullgraph=True, backend=backend)
    for size in (2, 5):
        state, commands = batch(size)
        leaves = [*layer.parameters(), state.q, commands]
        values = [f(state.q, state.v, commands) for f in (loss, compiled)]
        torch.testing.assert_close(*values, **EXACT)
        gradients = [torch.autograd.grad(value.sum(), leaves) for value in values]
        torch.testing.assert_close(*gradients, **EXACT)


def test_compiled_functions(simulator, batch):
    """`rollout` and `step` compile to one graph too, and so does their vmap."""
    state, commands = batch(3)
    damping = torch.tensor(0.3, dtype=torch.float64)

    def end(q, v, u):
        start = tt.TensorState(q, v, torch.zeros((), dtype=q.dtype))
        middle = tt.step(simulator, start, u[..., 0, :], {"joints/a.damping": damping})
        return tt.rollout(simulator, middle, u, {"joints/a.damping": damping})[0].q

    arguments = state.q, state.v, commands
    expected = end(*arguments)
    for f in (end, torch.func.vmap(end)):
        compiled = torch.compile(f, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(*arguments), expected, **EXACT)


def test_mapped_axes(layer, batch):
    """Vmap over any arguments, with batch axes of their own or without, equals a loop."""
    state, commands = batch(3, 2)
    loss = heights(layer)
    q, v, u = state.q.detach(), state.v.detach(), commands.detach()
    cases = [((0, 0, 0), (q, v, u)), ((None, 0, None), (q[0, 0], v, u[0, 0]))]
    for dims, arguments in cases:
        found = torch.func.vmap(loss, in_dims=dims)(*arguments)
        pick = lambda x, dim, k: x if dim is None else x.select(dim, k)  # noqa: E731
        each = [loss(*(pick(x, dim, k) for x, dim in zip(arguments, dims, strict=True))) for k in range(3)]
        torch.testing.assert_close(found, torch.stack(each), **EXACT)


def test_a_mapped_axis_anywhere(layer, batch):
    """The mapped axis may be any axis."""
    state, commands = batch(2, 3)
    loss = heights(layer)
    found = torch.func.vmap(loss, in_dims=(0, 1, None))(state.q, state.v.transpose(0, 1), commands[0])
    expected = torch.stack([loss(state.q[k], state.v.transpose(0, 1)[:, k], commands[0]) for k in range(2)])
    torch.testing.assert_close(found, expected, **EXACT)


def test_gradients_of_each_batch_element(layer, batch):
    """Gradients by shared parameters, one for each batch element, add up to the gradient of the batch."""
    state, commands = batch(3)
    parameters = {name: p.detach() for name, p in layer.named_parameters()}

    def loss(parameters, q, u):
        _, path = torch.func.functional_call(layer, parameters, (layer.initial_state(q), u))
        return path.q.square().sum()

    arguments = state.q.detach(), commands.detach()
    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(parameters, *arguments)
    total = torch.func.grad(loss)(parameters, *arguments)
    for name, gradient in total.items():
        assert each[name].shape == (3,)
        torch.testing.assert_close(each[name].sum(), gradient, **EXACT)


def test_mapped_gradients_with_a_batch_inside(layer, batch):
    """Gradients under vmap sum over the batch axes that an argument does not have, and over no others."""
    state, commands = batch(3, 2)
    shared = commands[0, 0].detach()

    def loss(q, u):
        return layer(layer.initial_state(q), u)[1].q.square().sum()

    found = torch.func.vmap(torch.func.grad(loss, argnums=1), in_dims=(0, None))(state.q.detach(), shared)
    each = torch.stack([torch.func.grad(loss, argnums=1)(q, shared) for q in state.q.detach()])
    torch.testing.assert_close(found, each, **EXACT)


def test_operator_rules(layer, batch):
    """PyTorch's own checks of schema, fake rule and autograd registration."""
    state, commands = batch(2)
    f = layer._simulation._rollouts[False]
    inputs = [*(p.detach() for p in layer.parameters()), state.q.detach(), state.v.detach(), state.time, commands]
    torch.library.opcheck(operators.call, (f.key, inputs))


def test_second_derivatives_are_refused(layer, batch):
    """Twice in reverse, compiled or not, and in forward mode: one sentence each."""
    state, commands = batch(2)

    def gradient(f):
        value = f(state.q, state.v, commands).sum()
        return torch.autograd.grad(value, commands, create_graph=True)[0]

    first = gradient(heights(layer))
    assert first.isfinite().all()
    with pytest.raises(TruesimError, match="Second derivatives of a simulation"):
        first.sum().backward()
    with pytest.raises(TruesimError, match="no forward-mode derivatives"):
        torch.func.jacfwd(lambda u: heights(layer)(state.q, state.v, u))(commands)
