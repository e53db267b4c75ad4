"""Friction by a network compared with analytic friction models, at equal cost, and a lower bound on the error.

All are optimized by basin hopping on short windows that start at states of the reference. The network starts at the
estimates of Brown's model, without breakaway. Errors are those on held-out throws.
"""

import dataclasses
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from rich.table import Table

from experiments.cube_throw.floor import FreeSteps
from experiments.cube_throw.models import Compliant, analytic, as_network, learned
from experiments.cube_throw.scene import THROW, other_throws, rigid_motion, scene, thrown
from experiments.cube_throw.windows import Follower, Shooting, Windows
from truesim import native
from truesim.core.typing import Float
from truesim.optimize import BasinHoppingOptions, LevenbergMarquardtOptions, basin_hopping
from truesim.physics.contact import AnderssonFriction, BrownFriction
from truesim.physics.model.model import Model


@dataclasses.dataclass(frozen=True)
class ComparisonOptions:
    """Options of the comparison."""

    trained: int = 6
    """Number of training throws; as many and two more are held out."""
    length: int = 15
    """Number of steps of a window."""
    begins: range = range(0, 121, 8)
    """Steps of a throw at which windows start; after 1.2 s all cubes are at rest."""
    chains: int = 2
    solves: int = 4
    """Number of solves of the network; friction models get more in proportion to their fewer parameters."""
    iterations: int = 25
    """Largest number of iterations of a solve."""
    floor: int = 25
    """Number of iterations on the friction that is free in every step."""


SMALL = ComparisonOptions(trained=2, length=10, begins=range(24, 96, 12), solves=2, iterations=6, floor=5)
"""A small problem for tests; its results are not meaningful."""


@dataclasses.dataclass(frozen=True)
class Contender:
    """Fit of one family of cubes."""

    name: str
    numbers: Float[np.ndarray, " size"]
    cost: float
    """Cost on the training windows."""
    steps: int
    """Number of simulated steps with derivatives."""
    windows: Float[np.ndarray, "windows steps 7"]
    """Motion over held-out windows."""
    throws: Float[np.ndarray, "throws steps 7"]
    """Motion over held-out throws."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Results of the comparison."""

    contenders: list[Contender]
    """Friction models, then the network."""
    windows: Windows
    """Held-out windows."""
    throws: Windows
    floors: dict[str, Float[np.ndarray, "windows steps 7"]]
    """Held-out windows with free friction, by the fit that gives the normal force."""

    @property
    def best_model(self) -> Contender:
        """The friction model with the lowest training cost."""
        return min(self.contenders[:-1], key=lambda c: c.cost)


def compared(options: ComparisonOptions) -> Comparison:
    """Run the comparison; call in 64-bit mode."""
    model = scene()
    (training, _), (windows, throws) = referred(model, options)
    models = {"Brown": analytic(model, BrownFriction()), "Andersson": analytic(model, AnderssonFriction.of())}
    network = learned(model)
    found = []
    for name, family in models.items():
        solves = round(options.solves * len(network.start) / len(family.start))
        found.append(_fitted(name, family, (training, windows, throws), dataclasses.replace(options, solves=solves)))
    best = min(found, key=lambda c: c.cost)
    starts = np.stack([as_network(model, found[0].numbers, seed) for seed in range(options.chains)])
    found.append(_fitted("network", network, (training, windows, throws), options, starts))
    free, n = FreeSteps(models["Brown"]), 3
    floors = {
        c.name: free.floor(np.concatenate([c.numbers[:n], found[0].numbers[n:]]), windows, options.floor)
        for c in (best, found[-1])
    }
    return Comparison(found, windows, throws, floors)


def referred(model: Model, options: ComparisonOptions) -> list[tuple[Windows, Windows]]:
    """Windows and whole throws of the rigid cube: training and held out."""
    first = thrown(*map(np.array, THROW))
    rigid = native.compile(lambda q, v: rigid_motion(model, q, v), *first)
    q, v = map(np.stack, zip(first, *other_throws(2 * options.trained + 1), strict=True))
    motion, velocities = rigid(q, v)
    parts = []
    for part in (slice(options.trained), slice(options.trained, None)):
        throws = Windows(q[part], v[part], motion[part])
        parts.append((Windows.of(throws, velocities[part], options.begins, options.length), throws))
    return parts


def _fitted(
    name: str,
    family: Compliant,
    references: tuple[Windows, Windows, Windows],
    options: ComparisonOptions,
    starts: Float[np.ndarray, "chains size"] | None = None,
) -> Contender:
    training, windows, throws = references
    objective = Shooting(family, training)
    tolerance = LevenbergMarquardtOptions(ftol=1e-4, xtol=1e-6, iterations=options.iterations)
    starts = np.tile(family.start, (options.chains, 1)) if starts is None else starts
    search = basin_hopping(
        objective, BasinHoppingOptions(options.chains, solve=tolerance, solves=options.solves), starts=starts
    )
    numbers, steps = search.best.theta, search.evaluations * objective.steps
    motions = [Follower(family, w.motion.shape[1])(numbers, w) for w in (windows, throws)]
    return Contender(name, numbers, search.best.cost, steps, *motions)


def distances(motion: Float[np.ndarray, "windows steps 7"], reference: Windows) -> Float[np.ndarray, " windows"]:
    """Mean distance of positions from the reference in each window [m]."""
    return np.linalg.norm((motion - reference.motion)[:, :, :3], axis=2).mean(axis=1)


def tables(found: Comparison) -> list[Table]:
    """Errors on held-out windows and throws."""
    seconds = f"{found.windows.motion.shape[1] / 100:g} s"
    table = Table(
        "friction", "million steps", f"{seconds}, mm", "along, mm", "height, mm", "3 s, mean, m", "3 s, median, m"
    )
    for c in found.contenders:
        whole = distances(c.throws, found.throws)
        table.add_row(
            c.name,
            f"{c.steps / 1e6:.1f}",
            *_split(c.windows, found.windows),
            f"{whole.mean():.4f}",
            f"{np.median(whole):.4f}",
        )
    for name, motion in found.floors.items():
        table.add_row(f"free in every step, normal force of {name}", "", *_split(motion, found.windows), "", "")
    table.title = (
        f"held-out throws ({len(found.throws.q)}, {len(found.windows.q)} windows): mean distance from the rigid cube"
    )
    best, network = found.best_model, found.contenders[-1]
    ratios = Table(
        "compared with the best model", "windows", "3 s", "any friction, windows", title="reduction of the error"
    )
    lowest = min(distances(m, found.windows).mean() for m in found.floors.values())
    of_best = distances(best.windows, found.windows).mean(), distances(best.throws, found.throws).mean()
    of_network = distances(network.windows, found.windows).mean(), distances(network.throws, found.throws).mean()
    ratios.add_row(
        best.name, *(f"{a / b:.2f}" for a, b in zip(of_best, of_network, strict=True)), f"{of_best[0] / lowest:.2f}"
    )
    return [table, ratios]


def _split(motion: Float[np.ndarray, "windows steps 7"], reference: Windows) -> list[str]:
    """Mean distance, along the floor and in height [mm]."""
    off = 1e3 * (motion - reference.motion)[:, :, :3]
    parts = np.linalg.norm(off, axis=2), np.linalg.norm(off[:, :, :2], axis=2), np.abs(off[:, :, 2])
    return [f"{part.mean():.3f}" for part in parts]


def picture(found: Comparison, path: Path) -> None:
    """Plot the errors along the floor and in height over the time since the start of a window."""
    best, network = found.best_model, found.contenders[-1]
    shown = {f"{best.name}'s model": best.windows, "network": network.windows, "free friction": found.floors[best.name]}
    time, figure = 10.0 * np.arange(1, found.windows.motion.shape[1] + 1), go.Figure()
    for (name, motion), color in zip(shown.items(), ("steelblue", "firebrick", "seagreen"), strict=True):
        off = 1e3 * (motion - found.windows.motion)[:, :, :3]
        along, height = np.linalg.norm(off[:, :, :2], axis=2).mean(0), np.abs(off[:, :, 2]).mean(0)
        figure.add_scatter(x=time, y=height, name=f"{name}, height", line={"color": color})
        figure.add_scatter(x=time, y=along, name=f"{name}, along the floor", line={"color": color, "dash": "dot"})
    figure.update_layout(
        template="simple_white",
        title="Thrown cube: distance from the rigid one, held-out windows",
        xaxis_title="time since the window began [ms]",
        yaxis_title="mean error [mm]",
    )
    figure.write_html(path, include_plotlyjs=True)
