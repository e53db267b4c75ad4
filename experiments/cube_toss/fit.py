"""Contact parameters of both simulators by CMA-ES."""

from experiments.cube_toss import ours, peer
from experiments.cube_toss.search import Values, search
from experiments.cube_toss.tosses import Tosses


def fit_ours(simulator: ours.Ours, tosses: Tosses, evaluations: int, seed: int = 0) -> Values:
    """Our numbers."""
    losses = lambda candidates: [tosses.loss(s) for s in simulator(candidates, tosses)]  # noqa: E731
    return search(ours.NUMBERS, losses, evaluations, seed)[0]


def fit_peer(simulator: peer.MuJoCo, tosses: Tosses, evaluations: int, seed: int = 0) -> Values:
    """MuJoCo's numbers."""
    losses = lambda candidates: [tosses.loss(simulator(c, tosses)) for c in candidates]  # noqa: E731
    return search(peer.NUMBERS, losses, evaluations, seed)[0]
