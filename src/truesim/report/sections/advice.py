"""What to measure next: simple rules from flags, from what the logs do not show, and from the residuals."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from truesim.identify.verdict import ROUGH
from truesim.report import numbers

NAMED = 4
"""Names in a sentence at most."""
WORSE = 2.0
"""Held-out errors larger than those on the logs of the fit by this factor are worth a sentence."""
PLACE = re.compile(r"^-?(?P<owner>.*?)\.?(?P<field>[a-z_]+)(\[\d+\])?(@(?P<log>.*))?$")

DRY = (
    "Move {names} slowly back and forth with many reversals, one joint at a time: dry friction shows where the speed "
    "passes zero."
)
WEIGHT = (
    "Let gravity and acceleration act on {names} in more poses, or repeat a motion with a known payload; a part that "
    "can be weighed needs no fit: give its mass with --prior."
)
SCALE = (
    "Forces need a scale: repeat a motion with a known payload, or keep a mass that you know, so that {names} cannot "
    "be traded for inertia."
)
REST = "Hold {names} still in several poses that are known from elsewhere, such as a mechanical stop."
POSES = "Visit poses that are far apart, so that {names} shows in where the robot ends up."
RULES = {
    **dict.fromkeys(("frictionloss", "stiction", "stribeck_velocity"), DRY),
    "damping": (
        "Move {names} at several speeds, up to the fastest that will be used: at one speed, viscous and dry friction "
        "look alike."
    ),
    "armature": (
        "Accelerate {names} quickly, in poses that differ in the inertia that the joint carries: only then can rotor "
        "inertia be told from that of the links."
    ),
    "inertia": "Turn {names} quickly about every axis that it will turn about in use; what never turns never shows.",
    **dict.fromkeys(("mass", "com"), WEIGHT),
    "delay": "Command quick changes to {names}, steps or a fast chirp: delays show in fast motion.",
    **dict.fromkeys(
        ("gain", "kp", "kd", "error_gain", "torque_constant", "resistance", "volts", "strength", "max_duty"), SCALE
    ),
    **dict.fromkeys(("bias", "offset", "ref", "springref"), REST),
    "stiffness": "Move {names} slowly through its whole range: a spring shows in what holds it away from rest.",
    "scale": "Move {names} over a distance that is known from elsewhere.",
    "gravity": "Hold the robot still in several poses: the direction of gravity shows in the forces that hold it.",
    **dict.fromkeys(("position", "orientation", "axis"), POSES),
}
OTHERWISE = "Record a motion in which {names} matters more, or keep its value: leave it out of --free."


def advice(document: Mapping[str, Any]) -> list[str]:
    """What to do next, the most useful first."""
    return [
        *_unexplained(document["noise"]),
        *_hidden(document["parameters"]),
        *_combined(document["unseen"]),
        *_at_bounds(document["parameters"]),
        *_held_out(document["errors"]),
    ]


def place(path: str) -> tuple[str, str]:
    """What a path's number belongs to, and its field: `joints/elbow` and `damping`."""
    match = PLACE.match(path)
    return (match["owner"], match["field"]) if match else (path, "")


def _hidden(parameters: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Motions that would show what these logs do not; one sentence for all parameters with the same remedy."""
    owners: dict[str, list[str]] = {}
    for entry in parameters:
        if any("not identifiable" in flag for flag in entry["flags"]):
            owner, field = place(entry["path"])
            owners.setdefault(RULES.get(field, OTHERWISE), []).append(owner or field)
    for rule, names in owners.items():
        yield rule.format(names=listed(names))


def _combined(unseen: Sequence[str]) -> Iterator[str]:
    if any("only a combination" in sentence for sentence in unseen):
        yield (
            "Where only a combination shows, it is all that motions like these need. To separate its members, keep one "
            "at a known value (leave it out of --free, or give --prior), or record motions that load them differently."
        )


def _at_bounds(parameters: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    at_zero = [p["path"] for p in parameters if "at lower bound" in p["flags"] and _starts_at_zero(p["bounds"][0])]
    others = [
        p["path"] for p in parameters if any(f.startswith("at ") for f in p["flags"]) and p["path"] not in at_zero
    ]
    if at_zero:
        yield f"{listed(at_zero)} went to zero: the robot has none, or the model lacks an effect of the opposite sign."
    if others:
        yield (
            f"{listed(others)} ended at a bound: widen it with --bounds if the value could be real; otherwise the "
            "number stands in for something that the model lacks."
        )


def _starts_at_zero(bound: Any) -> bool:
    return bound == 0 or (isinstance(bound, list) and all(element == 0 for element in bound))


def _unexplained(noise: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Channels in which something is left over that no sensor's noise explains."""
    ratios = {channel: n["residual"] / n["sensor"] for channel, n in noise.items() if n["sensor"] > 0}
    rough = sorted((c for c, ratio in ratios.items() if ratio > ROUGH), key=lambda c: -ratios[c])
    if rough:
        shown = listed([f"{channel} ({numbers.times(ratios[channel])} times)" for channel in rough])
        yield (
            f"The model lacks something: residuals are far above the sensor's noise in {shown}. Look at them below: "
            "peaks at reversals point to friction or play, an offset that follows the pose to gravity or a spring, one "
            "that follows the speed to damping, a delay, or a filter in the recording."
        )


def _held_out(errors: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    train, held_out = errors["train"], errors.get("held_out")
    if not held_out:
        yield "Keep a log of another motion out of the fit (--holdout LOG), to see whether the values hold there."
        return
    medians = {c: (train[c]["median"], e["median"]) for c, e in held_out.items() if c in train}
    worse = [c for c, (seen, new) in medians.items() if seen and new and new > WORSE * seen]
    if worse:
        yield (
            f"Held-out logs are predicted less well than those of the fit in {listed(worse)}: add logs with motions "
            "like those that matter in use."
        )


def listed(names: Sequence[str]) -> str:
    """`a, b and c`; long lists are cut."""
    unique = list(dict.fromkeys(names))
    if len(unique) > NAMED:
        unique = [*unique[: NAMED - 1], f"{len(unique) - NAMED + 1} more"]
    return unique[0] if len(unique) == 1 else ", ".join(unique[:-1]) + f" and {unique[-1]}"
