"""Payload of an arm: mass, center of mass and inertia of a tool from logs with and without it.

The logs without the tool determine the arm; those with it determine both together in one regression. Torques are motor
currents times constants that are known to some percent only. An error of these constants is common to all logs, and
scales the mass; so it is part of the interval, unless a weighed load has calibrated it.
"""

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Float
from truesim.files.logs import Log
from truesim.identification.regression.arm import DIFFERENCE, body_of, unknowns_covariance
from truesim.identification.regression.choose import Chosen, choose
from truesim.identification.regression.entropic import physical_prior
from truesim.identification.regression.equations import TEN, ArmBodies, Reduced, reduce
from truesim.identification.regression.estimate import ArmSystem, Regressed, regress
from truesim.identification.regression.signals import JointSamples, band_limited
from truesim.identification.regression.torques import inapplicable
from truesim.physics.dynamics.regressor import inertial_parameters
from truesim.physics.model.model import Model

TORQUE_SCALE_STD = 0.05
"""Standard deviation of torque constants that no load has calibrated, as a fraction. Larger gives wider intervals."""
PAYLOAD_ROUNDS = 2
"""Rounds in which the load of load-dependent friction includes the payload."""
PRIOR_MASS, PRIOR_RADIUS = 1.0, 0.05
"""Mass [kg] and radius of gyration [m] of the prior of a payload, which holds what the logs do not show."""


@dataclasses.dataclass(frozen=True)
class Payload:
    """Inertial parameters of a payload in the frame of its body."""

    body: str
    mass: float
    """[kg]"""
    com: Float[np.ndarray, "3"]
    """Center of mass [m]."""
    inertia: Float[np.ndarray, "6"]
    """Inertia about the center of mass: xx, yy, zz, xy, xz, yz [kg m^2]."""
    mass_std: float
    """[kg], with the uncertainty of the torque constants."""
    com_std: Float[np.ndarray, "3"]
    """[m]"""
    inertia_std: Float[np.ndarray, "6"]
    """[kg m^2], with the uncertainty of the torque constants."""
    scale: float = 1.0
    """Factor of all torque constants that a weighed load asks for; one without a weighed load."""
    scale_std: float = TORQUE_SCALE_STD
    """Standard deviation of this factor, as a fraction."""

    def document(self) -> dict[str, object]:
        """The payload as plain numbers and lists, for JSON."""
        return {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}


def identify_payload(
    model: Model,
    logs: Sequence[Log],
    loaded: Sequence[Log],
    body: str,
    *,
    weighed: float | None = None,
    scale_std: float = TORQUE_SCALE_STD,
) -> Payload:
    """Estimate the payload of an arm.

    Args:
        model: The arm without the payload.
        logs: Prepared logs without the payload.
        loaded: Prepared logs with it.
        body: Name of the body that carries it.
        weighed: Mass of the payload if it is known [kg]: it calibrates the torque constants.
        scale_std: Standard deviation of the torque constants without a weighed load, as a fraction.
    """
    if body not in model.bodies.names:
        raise unknown_name("body", body, model.bodies.names)
    for log in (*logs, *loaded):
        if (reason := inapplicable(model, [log])) is not None:
            raise TruesimError(f"A payload needs a fixed arm and joint torques in its logs, but {reason}.")
    if weighed is not None and not weighed > 0:
        raise TruesimError(f"The weighed load is {weighed:g} kg; it must be positive.")
    chosen = choose(model, logs)
    samples = band_limited(model, loaded, chosen.samples.band)
    if len(samples) < TEN:
        raise TruesimError("The logs with the payload are too short: add logs in which the joints move.")
    found = _regress(model, chosen, samples, model.bodies.names.index(body))
    return _payload(model, chosen, found, samples, body, weighed, scale_std)


def _regress(model: Model, chosen: Chosen, samples: JointSamples, body: int) -> Regressed:
    """Arm and payload together; the payload's ten parameters follow those of the free bodies."""
    arm = ArmBodies.of(model)
    both = ArmBodies((*arm.free, body), arm.fixed)
    with jax.enable_x64(True):
        file = np.asarray(inertial_parameters(model))
    theta, tool = chosen.best.theta, _prior()
    for _ in range(PAYLOAD_ROUNDS):
        carrier = theta[arm.free.index(body)] if body in arm.free else file[body]
        empty = reduce(model, chosen.samples, np.zeros(len(chosen.samples), int), theta)
        full = reduce(model, samples, np.zeros(len(samples), int), np.vstack([theta, carrier + tool]), both)
        at = theta.size + np.arange(TEN)
        padded = np.zeros_like(full.gram)
        kept = np.delete(np.arange(full.gram.shape[-1]), at)
        padded[..., kept[:, None], kept] = empty.gram
        reduced = Reduced(np.concatenate([padded, full.gram]), np.concatenate([empty.count, full.count]), samples.band)
        system = ArmSystem(reduced, np.vstack([chosen.best.system.prior, _prior()]), chosen.best.system.terms)
        found = regress(system, np.arange(2), chosen.weight)
        theta, tool = found.theta[:-1], found.theta[-1]
    return found


def _prior() -> Float[np.ndarray, " 10"]:
    theta = np.zeros((1, TEN))
    theta[0, 0], theta[0, 4:7] = PRIOR_MASS, PRIOR_MASS * PRIOR_RADIUS**2
    return physical_prior(theta)[0]


def _payload(
    model: Model,
    chosen: Chosen,
    found: Regressed,
    samples: JointSamples,
    body: str,
    weighed: float | None,
    scale_std: float,
) -> Payload:
    covariance = unknowns_covariance(found, chosen.times, chosen.weight)
    at = found.system.prior.size - TEN + np.arange(TEN)
    own, theta = covariance[np.ix_(at, at)], found.theta[-1]
    steps = DIFFERENCE * np.maximum(np.abs(theta), np.sqrt(np.diag(own)))
    J = np.stack([(_numbers(theta + h) - _numbers(theta - h)) / (2 * h.max()) for h in np.diag(steps)], axis=1)
    std = np.sqrt(np.maximum(np.diag(J @ own @ J.T), 0.0))
    mass, com, inertia = body_of(theta)
    scale = 1.0 if weighed is None else weighed / float(mass)
    relative = scale_std if weighed is None else float(std[0] / mass)
    statistical = 1.0 if weighed is None else 0.0  # a weighed mass is known; what remains is in its factor
    return Payload(
        body=body,
        mass=float(scale * mass),
        com=com,
        inertia=scale * inertia,
        mass_std=float(np.hypot(statistical * std[0], statistical * relative * mass)),
        com_std=std[1:4],
        inertia_std=np.hypot(scale * std[4:], relative * np.abs(scale * inertia)),
        scale=scale,
        scale_std=relative,
    )


def _numbers(theta: Float[np.ndarray, " 10"]) -> Float[np.ndarray, " 10"]:
    """Mass, center of mass and inertia as one vector."""
    mass, com, inertia = body_of(theta)
    return np.concatenate([[float(mass)], com, inertia])


def _plain(value: object) -> object:
    return value.tolist() if isinstance(value, np.ndarray) else value
