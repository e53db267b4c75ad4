"""Friction by a network against friction by laws, at the same budget; and what no friction could repair.

All are searched by basin hopping on short windows that begin at states of the reference. The network begins where
Brown's law came to, but for the breakaway. Errors are those on throws that none has seen.
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
from truesim.contact import AnderssonFriction, BrownFriction
from truesim.core.typing import Float
from truesim.identify.search import Hopping, Tolerance, hop
from truesim.model.model import Model


@dataclasses.dataclass(frozen=True)
class Settings:
    """How much is searched, on what."""

    trained: int = 6
    """Throws; as many more and two are held out."""
    length: int = 15
    """Steps of a window."""
    begins: range = range(0, 121, 8)
    """Steps of a throw after which windows begin; after 1.2 s all cubes lie."""
    chains: int = 2
    solves: int = 4
    """Of the network; a law has as many more as it has fewer numbers."""
    iterations: int = 25
    """Of a solve, at most."""
    floor: int = 25
    """Iterations on the friction that is free in every step."""


SMALL = Settings(trained=2, length=10, begins=range(24, 96, 12), solves=2, iterations=6, floor=5)
"""Shows that all parts run; its figures say little."""


@dataclasses.dataclass(frozen=True)
class Contender:
    """One family of cubes, fitted."""

    name: str
    numbers: Float[np.ndarray, "size"]
    cost: float
    """On the windows of training."""
    steps: int
    """Simulated steps, with a derivative each, that the search took."""
    windows: Float[np.ndarray, "windows steps 7"]
    """Motion over held-out windows."""
    throws: Float[np.ndarray, "throws steps 7"]
    """Motion over held-out throws."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What was found."""

    contenders: list[Contender]
    """Laws, then the network."""
    windows: Windows
    """Held out."""
    throws: Windows
    floors: dict[str, Float[np.ndarray, "windows steps 7"]]
    """Held-out windows with free friction, by whose normal force it is."""

    @property
    def best_law(self) -> Contender:
        """The law that fits windows of training best."""
        return min(self.contenders[:-1], key=lambda c: c.cost)


def compared(settings: Settings) -> Comparison:
    """Fits everything, in 64-bit mode."""
    model = scene()
    (training, _), (windows, throws) = referred(model, settings)
    laws = {"Brown": analytic(model, BrownFriction()), "Andersson": analytic(model, AnderssonFriction.of())}
    network = learned(model)
    found = []
    for name, family in laws.items():
        solves = round(settings.solves * len(network.start) / len(family.start))
        found.append(_fitted(name, family, (training, windows, throws), dataclasses.replace(settings, solves=solves)))
    best = min(found, key=lambda c: c.cost)
    starts = np.stack([as_network(model, found[0].numbers, seed) for seed in range(settings.chains)])
    found.append(_fitted("network", network, (training, windows, throws), settings, starts))
    free, n = FreeSteps(laws["Brown"]), 3
    floors = {
        c.name: free.floor(np.concatenate([c.numbers[:n], found[0].numbers[n:]]), windows, settings.floor)
        for c in (best, found[-1])
    }
    return Comparison(found, windows, throws, floors)


def referred(model: Model, settings: Settings) -> list[tuple[Windows, Windows]]:
    """Windows and whole throws of the rigid cube: to train on, and held out."""
    first = thrown(*map(np.array, THROW))
    rigid = native.compile(lambda q, v: rigid_motion(model, q, v), *first)
    q, v = map(np.stack, zip(first, *other_throws(2 * settings.trained + 1), strict=True))
    motion, velocities = rigid(q, v)
    parts = []
    for part in (slice(settings.trained), slice(settings.trained, None)):
        throws = Windows(q[part], v[part], motion[part])
        parts.append((Windows.of(throws, velocities[part], settings.begins, settings.length), throws))
    return parts


def _fitted(
    name: str,
    family: Compliant,
    references: tuple[Windows, Windows, Windows],
    settings: Settings,
    starts: Float[np.ndarray, "chains size"] | None = None,
) -> Contender:
    training, windows, throws = references
    objective = Shooting(family, training)
    tolerance = Tolerance(fall=1e-4, step=1e-6, iterations=settings.iterations)
    starts = np.tile(family.start, (settings.chains, 1)) if starts is None else starts
    search = hop(objective, Hopping(settings.chains, tolerance=tolerance, solves=settings.solves), starts=starts)
    numbers, steps = search.best.theta, search.evaluations * objective.steps
    motions = [Follower(family, w.motion.shape[1])(numbers, w) for w in (windows, throws)]
    return Contender(name, numbers, search.best.cost, steps, *motions)


def distances(motion: Float[np.ndarray, "windows steps 7"], reference: Windows) -> Float[np.ndarray, "windows"]:
    """Mean distance of places from the reference's in each window [m]."""
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
    law, network = found.best_law, found.contenders[-1]
    ratios = Table(
        "against the best law", "windows", "3 s", "any friction, windows", title="how many times smaller the error is"
    )
    lowest = min(distances(m, found.windows).mean() for m in found.floors.values())
    of_law = distances(law.windows, found.windows).mean(), distances(law.throws, found.throws).mean()
    of_network = distances(network.windows, found.windows).mean(), distances(network.throws, found.throws).mean()
    ratios.add_row(
        law.name, *(f"{a / b:.2f}" for a, b in zip(of_law, of_network, strict=True)), f"{of_law[0] / lowest:.2f}"
    )
    return [table, ratios]


def _split(motion: Float[np.ndarray, "windows steps 7"], reference: Windows) -> list[str]:
    """Mean distance, along the floor and in height [mm]."""
    off = 1e3 * (motion - reference.motion)[:, :, :3]
    parts = np.linalg.norm(off, axis=2), np.linalg.norm(off[:, :, :2], axis=2), np.abs(off[:, :, 2])
    return [f"{part.mean():.3f}" for part in parts]


def picture(found: Comparison, path: Path) -> None:
    """Error along the floor and in height over the time since a window began."""
    law, network = found.best_law, found.contenders[-1]
    shown = {f"{law.name}'s law": law.windows, "network": network.windows, "free friction": found.floors[law.name]}
    time, figure = 10.0 * np.arange(1, found.windows.motion.shape[1] + 1), go.Figure()
    for (name, motion), colour in zip(shown.items(), ("steelblue", "firebrick", "seagreen"), strict=True):
        off = 1e3 * (motion - found.windows.motion)[:, :, :3]
        along, height = np.linalg.norm(off[:, :, :2], axis=2).mean(0), np.abs(off[:, :, 2]).mean(0)
        figure.add_scatter(x=time, y=height, name=f"{name}, height", line={"color": colour})
        figure.add_scatter(x=time, y=along, name=f"{name}, along the floor", line={"color": colour, "dash": "dot"})
    figure.update_layout(
        template="simple_white",
        title="Thrown cube: distance from the rigid one, held-out windows",
        xaxis_title="time since the window began [ms]",
        yaxis_title="mean error [mm]",
    )
    figure.write_html(path, include_plotlyjs=True)
