"""A PyTorch encoder and the two lengths of a double pendulum, trained together through the simulator.

Three frames of a film go into the encoder; it returns angles and velocities at the third. From there truesim predicts
the headings of both links over the next ten frames (25 Hz), and the error trains the encoder and the lengths, which
start wrong. `python examples/torch_encoder.py [FIGURE.svg]`, ten seconds; the figure shows the lengths over the epochs.
"""

import sys
from pathlib import Path

import jax
import torch
from torch import nn

import truesim as ts
import truesim.torch as tt
from truesim.files.robots import loads

jax.config.update("jax_enable_x64", True)
torch.manual_seed(0)
torch.set_num_threads(1)
TRUTH, START = (0.5, 0.35), (0.35, 0.5)  # lengths of the links [m]
FILM, GIVEN, AHEAD, SUBSTEPS, PIXELS, EPOCHS = 512, 3, 10, 4, 16, 100
INERTIA = '<inertial pos="0 0 -1" mass="1" diaginertia="4e-4 4e-4 4e-4"/>'
LINK = '<body name="{0}" pos="0 0 {1}"><joint axis="0 1 0"/>' + INERTIA
BODIES = LINK.format("upper", 0) + LINK.format("lower", -1) + "</body></body>"
simulator = ts.Simulator.of(loads(f'<mujoco><option timestep="0.01"/><worldbody>{BODIES}</worldbody></mujoco>'))


def motion(lengths: torch.Tensor, q: torch.Tensor, v: torch.Tensor, frames: int) -> torch.Tensor:
    """Absolute angles of both links in the frames that follow [rad], shape (..., frames, 2)."""
    upper, lower = -lengths
    values = {"bodies/upper.com[2]": upper, "bodies/lower.position[2]": upper, "bodies/lower.com[2]": lower}
    state = tt.TensorState(q, v, torch.zeros((), dtype=q.dtype))
    _, path = tt.rollout(simulator, state, torch.zeros(frames * SUBSTEPS, 0, dtype=q.dtype), values)
    return path.q[..., SUBSTEPS - 1 :: SUBSTEPS, :].cumsum(-1)


def headings(angles: torch.Tensor) -> torch.Tensor:
    """Unit vectors along the links."""
    return torch.stack([angles.sin(), angles.cos()], dim=-1)


def film(angles: torch.Tensor) -> torch.Tensor:
    """Images of both masses as bright spots, with noise of the camera."""
    places = (headings(angles) * torch.tensor(TRUTH)[:, None]).cumsum(-2)
    axis = torch.linspace(-0.9, 0.9, PIXELS)
    x, y = (torch.exp(-(((places[..., k, None] - axis) / 0.12) ** 2)) for k in (0, 1))
    images = x[..., None, :] * y[..., :, None]
    return images + 0.02 * torch.randn_like(images)


with torch.no_grad():  # the real pendulum, released in different ways
    q, v = 1.6 * torch.rand(FILM, 2) - 0.8, 3 * torch.rand(FILM, 2) - 1.5
    angles = motion(torch.tensor(TRUTH), q, v, GIVEN + AHEAD)
    frames, seen = film(angles[:, :GIVEN]).flatten(1), headings(angles[:, GIVEN:])
encoder = nn.Sequential(nn.Linear(frames.shape[1], 128), nn.Tanh(), nn.Linear(128, 64), nn.Tanh(), nn.Linear(64, 4))
lengths = nn.Parameter(torch.tensor(START))
optimizer = torch.optim.Adam([{"params": encoder.parameters(), "lr": 4e-3}, {"params": lengths, "lr": 2e-2}])
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS, eta_min=1e-4)
history = [START]
for epoch in range(1, EPOCHS + 1):
    for batch in torch.randperm(FILM).split(64):
        q, v = encoder(frames[batch]).split(2, dim=-1)
        loss = (headings(motion(lengths, q, v, AHEAD)) - seen[batch]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    schedule.step()
    history.append(tuple(lengths.tolist()))
    if epoch % 20 == 0:
        print(f"epoch {epoch}: error of headings {loss.sqrt():.4f}, lengths {lengths[0]:.3f} and {lengths[1]:.3f} m")
if sys.argv[1:2] and sys.argv[1].endswith(".svg"):
    lines = [[(k / EPOCHS, x[j]) for k, x in enumerate(history)] for j in (0, 1)] + [[(0, x), (1, x)] for x in TRUTH]
    paths = [" ".join(f"{20 + 560 * x:.1f},{270 - 450 * y:.1f}" for x, y in line) for line in lines]
    colors = ("#0072b2", "#d55e00", "#999", "#999")
    drawn = [f'<polyline points="{p}" fill="none" stroke="{c}"/>' for p, c in zip(paths, colors, strict=True)]
    label = f'<text x="20" y="295" font-size="14">lengths over {EPOCHS} epochs; gray: truth, {TRUTH} m</text>'
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 300" width="600">'
    Path(sys.argv[1]).write_text("\n".join([head, *drawn, label, "</svg>"]) + "\n")
