"""Inverse-dynamics regression of an arm: the recipe from samples to inertias, armature, friction and offsets."""

import dataclasses
import functools

import numpy as np

from truesim.core.typing import Bool, Float, Int
from truesim.identification.regression.entropic import EntropicProblem, minimize, physical_prior
from truesim.identification.regression.equations import (
    ARMATURE_TERM,
    DAMPING_TERM,
    FRICTION_TERM,
    LOAD_TERM,
    OFFSET_TERM,
    STRIBECK_TERM,
    TEN,
    TERMS,
    ArmBodies,
    Reduced,
)
from truesim.physics.dynamics.regressor import inertial_parameters
from truesim.physics.model.model import Model

TYPICAL_SHARE = 0.1
"""Typical size of a positive unknown: the part of a joint's torque that it makes. Larger is a weaker prior."""
REWEIGHTINGS = 3
"""Rounds in which joints are weighted by their residuals."""
BASIC_TERMS = (ARMATURE_TERM, DAMPING_TERM, FRICTION_TERM)
"""Terms that every joint has."""

Terms = Bool[np.ndarray, "joints terms"]
"""Terms of each joint, in the order of `TERMS`."""


@dataclasses.dataclass(frozen=True)
class ArmSystem:
    """Normal equations of all joints for a choice of terms."""

    reduced: Reduced
    prior: Float[np.ndarray, "bodies 10"]
    terms: Terms

    @classmethod
    def of(cls, model: Model, reduced: Reduced, terms: Terms) -> "ArmSystem":
        """System of a robot, with the prior at its file."""
        file = np.asarray(inertial_parameters(model))[list(ArmBodies.of(model).free)]
        return cls(reduced, physical_prior(file), terms)

    @functools.cached_property
    def places(self) -> Int[np.ndarray, "joints terms"]:
        """Place of each joint's terms among the unknowns; -1 where a joint does not have the term."""
        places = np.full(self.terms.shape, -1)
        places[self.terms] = self.shared + np.arange(int(self.terms.sum()))
        return places

    @property
    def shared(self) -> int:
        """Number of unknowns of all joints, which come first: inertial parameters, then those of coupled motors."""
        return self.reduced.gram.shape[-1] - len(TERMS) - 1

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return self.shared + int(self.terms.sum())

    def selection(self, j: int) -> Float[np.ndarray, "columns size_and_torque"]:
        """Map from all unknowns, and the torque, to the columns of a joint's Gram matrix.

        The unknowns of friction that changes with speed are its values in full motion and at the onset of motion: both
        are positive.
        """
        width, base = self.reduced.gram.shape[-1], self.shared
        out = np.zeros((width, self.size + 1))
        out[:base, :base] = np.eye(base)
        out[-1, -1] = 1.0
        for term in np.flatnonzero(self.terms[j]):
            out[base + term, self.places[j, term]] = 1.0
            if STRIBECK_TERM <= term < LOAD_TERM:
                out[base + term, self.places[j, FRICTION_TERM]] = -1.0
        return out

    @functools.cached_property
    def grams(self) -> Float[np.ndarray, "blocks joints columns columns"]:
        """Gram matrices in the unknowns and the torque."""
        maps = [self.selection(j) for j in range(len(self.terms))]
        return np.stack([[S.T @ G @ S for S, G in zip(maps, each, strict=True)] for each in self.reduced.gram])

    @functools.cached_property
    def positive(self) -> Bool[np.ndarray, " size"]:
        """Unknowns that must be positive: all but inertial parameters and offsets."""
        out = np.ones(self.size, bool)
        out[: self.prior.size] = False
        out[self.places[self.terms[:, OFFSET_TERM], OFFSET_TERM]] = False
        return out

    def squares(self, x: Float[np.ndarray, " size"], blocks: np.ndarray) -> Float[np.ndarray, " joints"]:
        """Sum of squared residuals of each joint in some blocks."""
        y = np.append(x, -1.0)
        return np.maximum(np.einsum("i,bjik,k->j", y, self.grams[blocks], y), 0.0)

    def torque_squares(self, blocks: np.ndarray) -> Float[np.ndarray, " joints"]:
        """Sum of squared torques of each joint in some blocks, without the part of known bodies."""
        return np.maximum(self.grams[blocks][..., -1, -1].sum(axis=0), 1e-300)

    def relative_errors(self, x: Float[np.ndarray, " size"], blocks: np.ndarray) -> Float[np.ndarray, " joints"]:
        """Residual relative to torque of each joint, root mean squares over some blocks."""
        return np.sqrt(self.squares(x, blocks) / self.torque_squares(blocks))


@dataclasses.dataclass(frozen=True)
class Regressed:
    """Estimate of a system: unknowns, curvature and residuals."""

    system: ArmSystem
    x: Float[np.ndarray, " size"]
    hessian: Float[np.ndarray, "size size"]
    """Half the second derivatives of the objective."""
    noise: Float[np.ndarray, " joints"]
    """Root-mean-square residual of each joint [N m or N]."""

    @property
    def theta(self) -> Float[np.ndarray, "bodies 10"]:
        """Inertial parameters of the free bodies."""
        return self.x[: self.system.prior.size].reshape(-1, TEN)

    def term(self, term: int) -> Float[np.ndarray, " joints"]:
        """Values of a term of `TERMS`; zero where a joint does not have it."""
        places = self.system.places[:, term]
        return np.where(places >= 0, self.x[places], 0.0)


def regress(
    system: ArmSystem, blocks: np.ndarray, weight: float, start: Regressed | None = None, rounds: int = REWEIGHTINGS
) -> Regressed:
    """Solve a system on some blocks of its samples.

    Args:
        system: The system.
        blocks: Blocks to fit to.
        weight: Weight of the prior.
        start: An earlier estimate of the same system, from which weights and unknowns start.
        rounds: Rounds of reweighting.
    """
    grams, count = system.grams[blocks].sum(axis=0), system.reduced.count[blocks].sum(axis=0)
    used = count > 0
    size = np.sqrt(system.torque_squares(blocks) / np.maximum(count, 1))
    noise = np.where(used, TYPICAL_SHARE * size, 1.0) if start is None else start.noise
    x = None if start is None else start.x
    typical = typical_sizes(system, grams, size * np.sqrt(np.maximum(count, 1)))
    hessian = np.eye(system.size)
    for _ in range(rounds):
        total = np.tensordot(np.where(used, noise**-2.0, 0.0), grams, axes=1)
        problem = EntropicProblem(total[:-1, :-1], total[:-1, -1], system.prior, system.positive, typical, weight)
        x, hessian = minimize(problem, x)
        noise = np.sqrt(system.squares(x, blocks) / np.maximum(count, 1))
        noise = np.where(used, np.maximum(noise, 1e-6 * size + 1e-300), 1.0)
    assert x is not None, "at least one round"
    return Regressed(system, x, hessian / 2, noise)


def basic_terms(joints: int, offsets: bool = True) -> Terms:
    """Armature, damping, friction and, if asked for, an offset for every joint."""
    terms = np.zeros((joints, len(TERMS)), bool)
    terms[:, [*BASIC_TERMS, *([OFFSET_TERM] if offsets else [])]] = True
    return terms


def typical_sizes(
    system: ArmSystem, grams: Float[np.ndarray, "joints columns columns"], torque: Float[np.ndarray, " joints"]
) -> Float[np.ndarray, " size"]:
    """Value of each positive unknown that makes a tenth of its joint's torque, the root of its sum of squares."""
    norms, out = np.sqrt(np.einsum("jii->ji", grams)[:, :-1]), np.ones(system.size)
    motors = slice(system.prior.size, system.shared)
    share = TYPICAL_SHARE * torque[:, None] / np.maximum(norms[:, motors], 1e-6 * torque[:, None] + 1e-300)
    out[motors] = np.min(share, axis=0, initial=np.inf)
    for j, places in enumerate(system.places):
        own = places[places >= 0]
        out[own] = TYPICAL_SHARE * torque[j] / np.maximum(norms[j, own], 1e-6 * torque[j] + 1e-300)
    return np.maximum(out, 1e-9)
