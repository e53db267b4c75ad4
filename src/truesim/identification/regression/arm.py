"""Result of a regression in the units of a robot model: values by path, with their covariance."""

import dataclasses
import functools

import numpy as np

from truesim.core.typing import Float
from truesim.identification.regression.choose import correlation_times, stribeck_speed
from truesim.identification.regression.equations import (
    ARMATURE_TERM,
    COUPLED_TERMS,
    DAMPING_TERM,
    FRICTION_TERM,
    LOAD_TERM,
    OFFSET_TERM,
    STRIBECK_TERM,
    TEN,
    ArmBodies,
)
from truesim.identification.regression.estimate import Regressed, Terms
from truesim.identification.regression.signals import JointSamples
from truesim.identification.regression.torques import TorqueMap
from truesim.math.spatial.inertia import INERTIA_ENTRIES
from truesim.physics.model import paths
from truesim.physics.model.model import Model
from truesim.physics.model.tendons import couplings

DIFFERENCE = 1e-6
"""Relative step of central differences of values by inertial parameters."""


@dataclasses.dataclass(frozen=True)
class ArmEstimate:
    """Values of an arm's parameters by path, and their covariance."""

    model: Model
    """The robot that was regressed."""
    found: Regressed
    samples: JointSamples
    """Motion and torque of the regression."""
    weight: float
    """Weight of its prior."""

    @functools.cached_property
    def values(self) -> dict[str, Float[np.ndarray, "..."]]:
        """Values of all parameters that were estimated [SI units]."""
        return _values(self.model, self.found.system.terms, self.found)

    @functools.cached_property
    def covariance(self) -> Float[np.ndarray, "numbers numbers"]:
        """Covariance of all values, one after the other [SI units]."""
        found = self.found
        covariance = unknowns_covariance(found, self.times, self.weight)
        flat = functools.partial(_flat, self.model, found)
        steps = DIFFERENCE * np.maximum(np.abs(found.x), np.sqrt(np.maximum(np.diag(covariance), 1e-300)))
        columns = [
            (flat(found.x + step) - flat(found.x - step)) / (2 * size)
            for size, step in zip(steps, np.diag(steps), strict=True)
        ]
        J = np.stack(columns, axis=1)
        return J @ covariance @ J.T

    @functools.cached_property
    def times(self) -> Float[np.ndarray, " joints"]:
        """Integrated autocorrelation of each joint's residual, in samples."""
        return correlation_times(self.model, self.samples, self.found)

    def written(self, model: Model) -> Model:
        """The model with these values."""
        for path, value in self.values.items():
            model = paths.write(model, path, value)
        return with_stribeck_velocities(model, self.found.system.terms)


def with_stribeck_velocities(model: Model, terms: Terms) -> Model:
    """The model with the Stribeck velocities of the chosen terms, which are chosen and not estimated."""
    for j, link in enumerate(link for link in model.topology.links if link.joint >= 0):
        if (speed := stribeck_speed(terms, j)) is not None:
            path = f"joints/{model.joints.names[link.joint]}.stribeck_velocity"
            model = paths.write(model, path, np.asarray(speed))
    return model


def unknowns_covariance(
    found: Regressed, times: Float[np.ndarray, " joints"], weight: float
) -> Float[np.ndarray, "size size"]:
    """Covariance of the unknowns: each joint's information counts as that of its independent samples.

    H^-1 (sum_j times_j H_j + weight H_prior) H^-1, with H the curvature of the objective, H_j the part of a joint's
    rows and H_prior that of the prior, which is `weight` times stronger than its own covariance says.

    Args:
        found: The estimate.
        times: Integrated autocorrelation of each joint's residual, in samples.
        weight: Weight of the prior.
    """
    grams = found.system.grams.sum(axis=0)[:, :-1, :-1] / found.noise[:, None, None] ** 2
    total = found.hessian
    prior = total - grams.sum(axis=0)
    middle = np.tensordot(times, grams, axes=1) + weight * prior
    scale = 1 / np.sqrt(np.maximum(np.diag(total), 1e-300))
    inverse = np.linalg.inv(total * np.outer(scale, scale) + 1e-13 * np.eye(len(scale))) * np.outer(scale, scale)
    covariance = inverse @ middle @ inverse
    return (covariance + covariance.T) / 2


def _flat(model: Model, found: Regressed, x: Float[np.ndarray, " size"]) -> Float[np.ndarray, " numbers"]:
    values = _values(model, found.system.terms, dataclasses.replace(found, x=x))
    return np.concatenate([np.ravel(value) for value in values.values()])


def _values(model: Model, terms: np.ndarray, found: Regressed) -> dict[str, Float[np.ndarray, "..."]]:
    values: dict[str, Float[np.ndarray, ...]] = {}
    for body, theta in zip(ArmBodies.of(model).free, found.theta, strict=True):
        mass, com, inertia = body_of(theta)
        name = f"bodies/{model.bodies.names[body]}"
        values |= {f"{name}.mass": mass, f"{name}.com": com, f"{name}.inertia": inertia}
    joints = [model.joints.names[link.joint] for link in model.topology.links if link.joint >= 0]
    onset = found.x[np.maximum(found.system.places[:, STRIBECK_TERM:LOAD_TERM], 0)]
    for j, name in enumerate(joints):
        for field, term in (("armature", ARMATURE_TERM), ("damping", DAMPING_TERM), ("frictionloss", FRICTION_TERM)):
            values[f"joints/{name}.{field}"] = np.asarray(found.term(term)[j])
        if stribeck_speed(terms, j) is not None:
            at = int(np.flatnonzero(terms[j, STRIBECK_TERM:LOAD_TERM])[0])
            values[f"joints/{name}.stiction"] = np.asarray(onset[j, at] - found.term(FRICTION_TERM)[j])
        if terms[j, LOAD_TERM]:
            values[f"joints/{name}.load_friction"] = np.asarray(found.term(LOAD_TERM)[j])
    motors = found.x[found.system.prior.size : found.system.shared].reshape(-1, len(COUPLED_TERMS))
    for name, own in zip(couplings(model), motors, strict=True):
        values |= {f"tendons/{name}.{field}": np.asarray(x) for field, x in zip(COUPLED_TERMS, own, strict=True)}
    return values | _offsets(model, terms, found)


def _offsets(model: Model, terms: np.ndarray, found: Regressed) -> dict[str, Float[np.ndarray, "..."]]:
    """Offsets of the actuators, in units of their controls: one for each joint that a single actuator drives."""
    gain, out = TorqueMap.of(model).gain, {}
    for j in np.flatnonzero(terms[:, OFFSET_TERM]):
        own = np.flatnonzero(gain[j])
        if len(own) == 1:
            i = int(own[0])
            out[f"actuators/{model.actuators.names[i]}.offset"] = np.asarray(-found.term(OFFSET_TERM)[j] / gain[j, i])
    return out


def body_of(
    theta: Float[np.ndarray, " 10"],
) -> tuple[Float[np.ndarray, ""], Float[np.ndarray, "3"], Float[np.ndarray, "6"]]:
    """Mass [kg], center of mass [m] and inertia about it [kg m^2] of ten inertial parameters."""
    assert len(theta) == TEN, "ten inertial parameters"
    com = theta[1:4] / theta[0]
    J = np.empty((3, 3))
    for value, (i, j) in zip(theta[4:], INERTIA_ENTRIES, strict=True):
        J[i, j] = J[j, i] = value
    J -= theta[0] * (com @ com * np.eye(3) - np.outer(com, com))
    return np.asarray(theta[0]), com, np.array([J[i, j] for i, j in INERTIA_ENTRIES])
