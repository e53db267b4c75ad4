"""Advice on what to record next, from the flags and diagnostics of the fit."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from truesim.identification.diagnose.status import Code
from truesim.report import numbers
from truesim.report.document import (
    ReportedDiagnostic,
    diagnostics,
    is_flagged,
    not_identifiable,
)

MAX_NAMES_LISTED = 4
"""Largest number of names in a sentence."""
PATH_PARTS = re.compile(r"^-?(?P<owner>.*?)\.?(?P<field>[a-z_]+)(\[\d+\])?(@(?P<log>.*))?$")

FRICTION_ADVICE = (
    "Move {names} slowly back and forth with many reversals, one joint at a time: Coulomb friction shows where the "
    "velocity changes sign."
)
MASS_ADVICE = (
    "Let gravity and acceleration act on {names} in more poses, or repeat a motion with a known payload. A part that "
    "can be weighed needs no fit: give its mass with --prior."
)
SCALE_ADVICE = (
    "Forces need a scale: repeat a motion with a known payload, or keep a known mass fixed, so that {names} can be "
    "separated from inertia."
)
OFFSET_ADVICE = "Hold {names} still in several poses that are known from elsewhere, such as a mechanical stop."
POSE_ADVICE = "Visit poses that are far apart, so that {names} affects the measured positions."
FIELD_ADVICE = {
    **dict.fromkeys(("frictionloss", "stiction", "stribeck_velocity", "load_friction"), FRICTION_ADVICE),
    "damping": (
        "Move {names} at several speeds, up to the highest that will be used: at one speed, viscous and Coulomb "
        "friction cannot be separated."
    ),
    "armature": (
        "Accelerate {names} quickly, in poses that differ in the inertia that the joint carries: this separates rotor "
        "inertia from link inertia."
    ),
    "inertia": "Rotate {names} quickly about every axis about which it will rotate in use.",
    **dict.fromkeys(("mass", "com"), MASS_ADVICE),
    "delay": "Command quick changes to {names}, steps or a fast chirp: delays show in fast motion.",
    **dict.fromkeys(
        ("gain", "kp", "kd", "error_gain", "torque_constant", "resistance", "volts", "strength", "max_duty"),
        SCALE_ADVICE,
    ),
    **dict.fromkeys(("bias", "offset", "ref", "springref"), OFFSET_ADVICE),
    "stiffness": "Move {names} slowly through its whole range, so that the spring force varies.",
    "scale": "Move {names} over a distance that is known from elsewhere.",
    "gravity": "Hold the robot still in several poses: the direction of gravity shows in the forces that hold it.",
    **dict.fromkeys(("position", "orientation", "axis"), POSE_ADVICE),
}
OTHER_ADVICE = "Record a motion in which {names} has a larger effect, or keep its value fixed: leave it out of --free."


def advice(document: Mapping[str, Any]) -> list[str]:
    """Sentences on what to do next, the most useful first."""
    found = diagnostics(document)
    return [
        *_misfit(found),
        *_flagged(document["parameters"]),
        *_combinations(not_identifiable(document)),
        *_at_bounds(document["parameters"]),
        *_held_out(found, document["errors"]),
    ]


def split_path(path: str) -> tuple[str, str]:
    """Owner and field of a path: `joints/elbow` and `damping`."""
    match = PATH_PARTS.match(path)
    return (match["owner"], match["field"]) if match else (path, "")


def _flagged(parameters: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Motions that would identify flagged parameters; one sentence for all parameters with the same remedy."""
    owners: dict[str, list[str]] = {}
    for entry in parameters:
        if is_flagged(entry):
            owner, field = split_path(entry["path"])
            owners.setdefault(FIELD_ADVICE.get(field, OTHER_ADVICE), []).append(owner or field)
    for rule, names in owners.items():
        yield rule.format(names=listed(names))


def _combinations(sentences: Sequence[str]) -> Iterator[str]:
    if any("only a combination" in sentence for sentence in sentences):
        yield (
            "Where only a combination is identifiable, motions like these need no more than it. To separate its "
            "members, keep one at a known value (leave it out of --free, or give --prior), or record motions that load "
            "them differently."
        )


def _at_bounds(parameters: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    at_zero = [p["path"] for p in parameters if "at lower bound" in p["flags"] and _is_zero(p["bounds"][0])]
    others = [
        p["path"] for p in parameters if any(f.startswith("at ") for f in p["flags"]) and p["path"] not in at_zero
    ]
    if at_zero:
        yield f"{listed(at_zero)} went to zero: the robot has none, or the model lacks an effect of the opposite sign."
    if others:
        yield (
            f"{listed(others)} ended at a bound: widen it with --bounds if the value could be real. Otherwise the "
            "value compensates for something that the model lacks."
        )


def _is_zero(bound: Any) -> bool:
    return bound == 0 or (isinstance(bound, list) and all(element == 0 for element in bound))


def _misfit(found: Sequence[ReportedDiagnostic]) -> Iterator[str]:
    """Rows that the fit reports as not explained by the model."""
    rows = {d.row: d for d in found if d.row and d.code in (Code.RESIDUAL_ABOVE_NOISE, Code.UNEXPLAINED_MOTION)}
    if rows:
        shown = listed([_with_ratio(d) for d in sorted(rows.values(), key=lambda d: -(d.value or 0.0))])
        yield (
            f"The model lacks something: residuals are large in {shown}. Look at them below: peaks at reversals point "
            "to friction or backlash, an offset that follows the pose to gravity or a spring, one that follows the "
            "speed to damping, a delay, or a filter in the recording."
        )


def _with_ratio(found: ReportedDiagnostic) -> str:
    if found.code == Code.RESIDUAL_ABOVE_NOISE and found.value is not None:
        return f"{found.row} ({numbers.times(found.value)} times the noise)"
    return str(found.row)


def _held_out(found: Sequence[ReportedDiagnostic], errors: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    if not errors.get("held_out"):
        yield "Keep a log of another motion out of the fit (--holdout LOG) to test the values on it."
        return
    worse = [d.row for d in found if d.code == Code.HELD_OUT_WORSE and d.row]
    if worse:
        yield (
            f"Held-out logs are predicted less well than those of the fit in {listed(worse)}: add logs with motions "
            "like those that matter in use."
        )


def listed(names: Sequence[str]) -> str:
    """Names as `a, b and c`, each once; long lists are cut."""
    unique = list(dict.fromkeys(names))
    if len(unique) > MAX_NAMES_LISTED:
        unique = [*unique[: MAX_NAMES_LISTED - 1], f"{len(unique) - MAX_NAMES_LISTED + 1} more"]
    return unique[0] if len(unique) == 1 else ", ".join(unique[:-1]) + f" and {unique[-1]}"
