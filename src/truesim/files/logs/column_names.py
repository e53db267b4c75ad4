"""Recorded columns by their names: positions, commands and torques, and the joints that they belong to."""

import collections
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

COMMAND_WORDS = {
    *("cmd", "cmds", "qcmd", "command", "commands", "commanded", "ctrl", "control", "target", "targets", "qtarget"),
    *("goal", "goals", "desired", "des", "qdes", "dsr", "d", "action", "actions", "setpoint", "setpoints", "sp"),
    *("u", "ref", "qref", "reference", "references", "trajectory", "leader", "master"),
}
"""Words of commands; `q_d` is the desired position, and whom a leader arm moves follows it."""
RATE_WORDS = {
    *("vel", "vels", "velocity", "velocities", "qvel", "dq", "speed", "speeds", "qd", "qdot", "omega", "rpm"),
    *("acc", "acceleration", "accelerations", "ddq", "qdd", "qacc", "jerk"),
}
TORQUE_WORDS = {"effort", "efforts", "torque", "torques", "tau", "taus", "moment", "moments"}
EFFORT_WORDS = TORQUE_WORDS | {
    *("current", "currents", "load", "loads", "force", "forces", "pwm"),
    *("temperature", "temperatures", "temp", "voltage", "voltages", "power"),
}
OTHER_WORDS = {"error", "errors", "err", "status", "gain", "gains", "kp", "kd", "ki", "id", "ids"}
POSITION_WORDS = {
    "q",
    "qpos",
    "pos",
    "position",
    "positions",
    "angle",
    "angles",
    "actual",
    "measured",
    "state",
    "states",
}
"""Words of positions, where several numbered columns could be meant."""


class Assignment(NamedTuple):
    """Columns of some labels."""

    columns: dict[int, str]
    """Column of a label, by the label's index."""
    doubts: tuple[str, ...] = ()
    """Other columns that fit as well."""


class Roles(NamedTuple):
    """Columns of a log by what they hold."""

    positions: list[str]
    commands: list[str]
    """Commands of any kind, of torques too."""
    torques: list[str]


def split_words(name: str) -> list[str]:
    """Words and numbers of a name, in lower case: `leftElbow_pos2` is left, elbow, pos and 2."""
    separated = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return [word for word in re.split(r"[^a-z0-9]+|(?<=[a-z])(?=[0-9])", separated) if word]


def roles(names: Sequence[str], labels: Sequence[str]) -> Roles:
    """Roles of columns; words of the labels tell nothing about the role.

    Args:
        names: Recorded columns.
        labels: Names of joints.
    """
    own = {word for label in labels for word in split_words(label)}
    words = {name: set(split_words(name)) - own for name in names}
    measured = [n for n in names if not words[n] & (RATE_WORDS | OTHER_WORDS)]
    commands = [n for n in measured if words[n] & COMMAND_WORDS]
    positions = [n for n in measured if not words[n] & (COMMAND_WORDS | EFFORT_WORDS)]
    return Roles(positions, commands, [n for n in measured if words[n] & TORQUE_WORDS])


def is_torque(name: str, labels: Sequence[str]) -> bool:
    """True if a column holds a torque, force or current; labels as in `roles`."""
    own = {word for label in labels for word in split_words(label)}
    return bool((set(split_words(name)) - own) & EFFORT_WORDS)


def assign(labels: Sequence[str], columns: Sequence[str], like: Sequence[str] = ()) -> Assignment:
    """Find the column of each label: by the label in its name, without words that all labels share, or by number.

    Args:
        labels: Names of joints or actuators.
        columns: Columns of one role.
        like: Columns found for the same labels in another role; where several sets of columns fit, the one whose names
            are most like these is taken.
    """
    words = [split_words(label) for label in labels]
    shared = set.intersection(*map(set, words)) if len(words) > 1 else set()
    short = [[word for word in own if word not in shared] for own in words]
    for own in (words, short):
        if not all(any(word.isalpha() for word in each) for each in own) and own is short:
            continue
        fitting = {k: found for k, each in enumerate(own) if (found := _naming(each, columns))}
        if fitting:
            return _choose(fitting, own, _words_of(like))
    return _numbered(labels, columns, _words_of(like))


def _naming(label: list[str], columns: Sequence[str]) -> list[str]:
    """Columns that name a label with the fewest words."""
    named = [(split_words(c), c) for c in columns]
    named = [(words, c) for words, c in named if _place(words, label) is not None]
    fewest = min((len(words) for words, _ in named), default=0)
    return [c for words, c in named if len(words) == fewest]


def _choose(fitting: Mapping[int, list[str]], labels: Sequence[list[str]], like: set[str]) -> Assignment:
    """One column a label, all from the same set as far as possible: sets differ in their other words."""
    rest = {(k, c): _without(split_words(c), labels[k]) for k, found in fitting.items() for c in found}
    counts = collections.Counter(rest.values())
    order = list(counts)
    best = sorted(order, key=lambda r: (-counts[r], -len(like & set(r)), order.index(r)))
    chosen = {k: min(found, key=lambda c: best.index(rest[k, c])) for k, found in fitting.items()}
    others = dict.fromkeys(c for k, found in fitting.items() for c in found if rest[k, c] != rest[k, chosen[k]])
    return Assignment(chosen, _doubt(list(others)))


def _numbered(labels: Sequence[str], columns: Sequence[str], like: set[str]) -> Assignment:
    """Columns that are numbered like the labels: as many of them, fewer for the first labels, or twice as many.

    Twice as many are positions, then velocities, as in the state of a robot.
    """
    count = len(labels)
    sets: dict[tuple[str, ...], dict[int, str]] = collections.defaultdict(dict)
    for c in columns:
        numbers = list(re.finditer(r"\d+", c))
        if numbers:
            stem = c[: numbers[-1].start()], c[numbers[-1].end() :]
            sets[stem].setdefault(int(numbers[-1][0]), c)
    whole = [stem for stem, found in sets.items() if len(found) == count]
    part = [stem for stem, found in sets.items() if 1 < len(found) < count]
    double = [stem for stem, found in sets.items() if len(found) == 2 * count]
    stems = whole or double or part
    if not stems:
        return Assignment({})

    def fit(stem: tuple[str, ...]) -> tuple[int, int, int]:
        words = set(split_words(" ".join(stem)))
        return -len(sets[stem]), -len(like & words), -len(POSITION_WORDS & words)

    best, *others = sorted(stems, key=fit)
    chosen = dict(enumerate([c for _, c in sorted(sets[best].items())][:count]))
    doubts = _doubt([next(iter(sets[stem].values())) for stem in others if fit(stem) == fit(best)])
    if whole and count > 1 and not any(re.search(r"\d", label) for label in labels):
        doubts += ("numbers, not names: taken in the order of the robot's joints",)
    if not whole:
        rest = ", the others as velocities" if double else ""
        doubts += (f"{len(sets[best])} numbers for {count} names: taken as the first {len(chosen)}{rest}",)
    return Assignment(chosen, doubts)


def _doubt(others: list[str]) -> tuple[str, ...]:
    if not others:
        return ()
    shown = ", ".join(others[:3]) + (f" … ({len(others)} in all)" if len(others) > 3 else "")
    return (f"{shown} would fit as well: --columns PATTERN chooses",)


def _words_of(columns: Sequence[str]) -> set[str]:
    return {word for c in columns for word in split_words(c)}


def _place(words: list[str], part: list[str]) -> int | None:
    return next((k for k in range(len(words) - len(part) + 1) if words[k : k + len(part)] == part), None)


def _without(words: list[str], part: list[str]) -> tuple[str, ...]:
    k = _place(words, part)
    assert k is not None, "the column names the label"
    return (*words[:k], *words[k + len(part) :])
