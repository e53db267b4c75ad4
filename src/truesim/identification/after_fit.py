"""Jobs that start from a fit: suggestions of networks, and designs of the next experiment."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from truesim.identification.excitation import Design, Designer, DesignOptions, FittedCovariance, Limits
from truesim.identification.excitation.designer import designer_after_fit
from truesim.identification.fit import Fit
from truesim.identification.fit_document import number_names
from truesim.identification.suggestion import Suggestions
from truesim.identification.suggestion import suggest as suggest_for_problem
from truesim.physics.model.model import Model

Pair = tuple[float, float]


def suggest(fit: Fit, *, callback: Callable[[str], None] | None = None) -> Suggestions:
    """Suggest networks: for each port, the fraction of a fit's remaining error that a network could explain.

    Args:
        fit: The fit; its parameters may readjust under every candidate.
        callback: Called with a description of the current step.
    """
    found = suggest_for_problem(fit.problem, fit.solution.theta, callback)
    return dataclasses.replace(found, alternatives=fit.diagnosis.alternatives)


def design(
    fit: Fit | Model,
    free: Sequence[str] = (),
    *,
    seconds: float = DesignOptions.seconds,
    positions: Mapping[str, Pair] | None = None,
    speeds: Mapping[str, float] | None = None,
    forces: Mapping[str, float] | None = None,
    noise: Mapping[str, float] | None = None,
    channels: Sequence[str] = (),
    rate: float = DesignOptions.rate,
    criterion: str = DesignOptions.criterion,
    starts: int = DesignOptions.starts,
    iterations: int = DesignOptions.iterations,
    seed: int = 0,
    threads: int = 1,
    callback: Callable[[int, float], None] | None = None,
) -> Design:
    """Design the motion that determines parameters best, within the limits of the robot.

    Args:
        fit: A fit, whose values, covariance and noise are the prior knowledge, or a model.
        free: Paths of the unknown parameters; those of the fit by default.
        seconds: Duration [s].
        positions: Ranges of joint positions by pattern, within those of the file [rad or m].
        speeds: Limits of joint speeds by pattern [rad/s or m/s].
        forces: Limits of actuator forces by pattern [N m or N].
        noise: Standard deviation of measurements by channel pattern [SI units]; that of the fit by default.
        channels: Patterns of measured channels; those of the fit, or all joint positions, by default.
        rate: Sampling rate [Hz].
        criterion: `intervals` (mean logarithm of standard deviations) or `volume` (D-optimality).
        starts: Number of random starts.
        iterations: Maximum iterations of each stage.
        seed: Seed of the random starts.
        threads: Threads that share the parameters.
        callback: Called with the number of the stage and the cost after every evaluation.
    """
    options = DesignOptions(
        seconds=seconds,
        rate=rate,
        noise=dict(noise or {}),
        channels=tuple(channels) or compared_channels(fit),
        criterion=criterion,
        starts=starts,
        iterations=iterations,
        seed=seed,
        threads=threads,
    )
    limits = Limits.of(
        fit.model if isinstance(fit, Fit) else fit,
        positions=dict(positions or {}),
        speeds=dict(speeds or {}),
        forces=dict(forces or {}),
    )
    return designer_for(fit, free, limits, options).optimize(callback)


def designer_for(fit: Fit | Model, free: Sequence[str], limits: Limits, options: DesignOptions) -> Designer:
    """The designer for a fit or a model; arguments as those of `design`."""
    if isinstance(fit, Model):
        return Designer(fit, free, limits, options)
    solved = number_names(fit.problem)[: len(fit.uncertainty.values)]
    return designer_after_fit(
        fit.model,
        free or fit.request.free,
        limits,
        options,
        values=fit.values,
        covariance=FittedCovariance(solved, fit.uncertainty.values),
        noise=dict(zip(fit.problem.rows, map(float, np.asarray(fit.solution.weights.noise)), strict=True)),
    )


def compared_channels(fit: Fit | Model) -> tuple[str, ...]:
    """Channels that a fit compared, rotations aside; all joint positions of a model."""
    if isinstance(fit, Model):
        return tuple(DesignOptions().channels)
    return tuple(channel.name for channel in fit.problem.channels if not channel.has_quaternion)
