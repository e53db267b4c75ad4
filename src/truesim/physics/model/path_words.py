"""Parameters that are meant by other words: synonyms, words in any order, and patterns that stay patterns.

`friction` means `joints/*.frictionloss`, `mass of hand` means `bodies/hand.mass`, and `joint/*.dampng` means
`joints/*.damping`, not the damping of one joint.
"""

import difflib
import fnmatch
import re
from collections.abc import Collection, Iterable, Sequence

GROUP_SYNONYMS = {
    "body": "bodies", "link": "bodies", "links": "bodies", "joint": "joints", "dof": "joints", "dofs": "joints",
    "axis": "joints", "axes": "joints", "actuator": "actuators", "motor": "actuators", "motors": "actuators",
    "servo": "actuators", "servos": "actuators", "drive": "actuators", "geom": "geoms", "contact": "geoms",
    "collision": "geoms", "sensor": "sensors", "imu": "sensors", "site": "sites",
}  # fmt: skip
"""Other words for the groups of a model."""
FIELD_SYNONYMS = {
    "friction": ("joints", "frictionloss"), "coulomb": ("joints", "frictionloss"), "dry": ("joints", "frictionloss"),
    "viscous": ("joints", "damping"), "viscosity": ("joints", "damping"), "damper": ("joints", "damping"),
    "rotor": ("joints", "armature"), "reflected": ("joints", "armature"), "spring": ("joints", "stiffness"),
    "limits": ("joints", "range"), "weight": ("bodies", "mass"), "masses": ("bodies", "mass"),
    "payload": ("bodies", "mass"), "center": ("bodies", "com"), "centre": ("bodies", "com"), "cog": ("bodies", "com"),
    "moment": ("bodies", "inertia"), "length": ("bodies", "position"), "latency": ("actuators", "delay"),
    "lag": ("actuators", "delay"), "deadtime": ("actuators", "delay"), "proportional": ("actuators", "kp"),
    "kd": ("actuators", "kv"), "derivative": ("actuators", "kv"), "gains": ("actuators", "gain"),
    "constant": ("actuators", "gain"), "bounce": ("geoms", "restitution"), "elasticity": ("geoms", "restitution"),
}  # fmt: skip
"""Other words for quantities, with the group that they usually belong to."""
SMALL_WORDS = frozenset({"of", "the", "a", "an", "in", "for", "all", "every", "and", "at"})
CUTOFF = 0.6
"""Similarity from which on a word is taken for another; smaller guesses more, and more wrongly."""


def meant_group(word: str, groups: Collection[str]) -> str | None:
    """The group that is meant by another word for it."""
    synonym = GROUP_SYNONYMS.get(word.lower())
    return synonym if synonym in groups else None


def meant_field(group: str, word: str, fields: Collection[str]) -> str | None:
    """The quantity of a group that is meant by another word for it."""
    synonym = FIELD_SYNONYMS.get(word.lower(), ("", ""))
    return synonym[1] if synonym[0] == group and synonym[1] in fields else None


def meant_path(text: str, paths: Sequence[str]) -> str | None:
    """The path or pattern that is probably meant by a text, or None.

    Args:
        text: What was given.
        paths: All paths of the model.
    """
    group, slash, rest = text.partition("/")
    name, dot, field = rest.rpartition(".")
    if slash and dot:
        found = _corrected(group, name, field, paths)
    else:
        is_field = {path.rpartition(".")[2] for path in paths}.__contains__
        parts = " ".join(w if is_field(w.lower()) else w.replace("_", " ") for w in text.split())  # `hand_mass`
        found = _from_words(parts, paths) or _from_words(text, paths)
    return found if found is not None and any(fnmatch.fnmatchcase(path, found) for path in paths) else None


def _corrected(group: str, name: str, field: str, paths: Sequence[str]) -> str | None:
    """The same form with the nearest group, name and quantity; a pattern stays one."""
    groups = {path.partition("/")[0] for path in paths if "/" in path}
    group = group if group in groups else meant_group(group, groups) or _nearest(group, groups) or group
    own = [path.partition("/")[2].rpartition(".") for path in paths if path.startswith(f"{group}/")]
    fields = {field for _, _, field in own}
    if field not in fields and not set(field) & set("*?"):
        field = meant_field(group, field, fields) or _nearest(field, fields) or field
    names = {name for name, _, _ in own}
    if not any(fnmatch.fnmatchcase(each, name) for each in names):
        name = _nearest(name, names) or ("*" if set(name) & set("*?") else name)
    return f"{group}/{name}.{field}"


def _from_words(text: str, paths: Sequence[str]) -> str | None:
    """The path that words in any order name: a quantity, and perhaps one part of the robot or a group."""
    words = [word for word in re.split(r"[^A-Za-z0-9_]+", text) if word and word.lower() not in SMALL_WORDS]
    split = [(path.partition("/")[0], *path.partition("/")[2].rpartition(".")[::2]) for path in paths if "/" in path]
    lower = [word.lower() for word in words]
    said = next((GROUP_SYNONYMS.get(w, w) for w in lower if GROUP_SYNONYMS.get(w, w) in {g for g, _, _ in split}), None)
    quantities = [((g, f), w) for w in lower for g, _, f in split if f == w and g == said]
    quantities += [(FIELD_SYNONYMS[w], w) for w in lower if w in FIELD_SYNONYMS]
    quantities += [((g, f), w) for w in lower for g, _, f in split if f == w]
    quantities += [((g, f), w) for w in lower for g, _, f in split if _nearest(w, [f])]
    for (group, field), word in quantities:
        group = said if said in {g for g, _, f in split if f == field} else group
        names = {name for g, name, f in split if (g, f) == (group, field)}
        others = [w for w in words if w.lower() != word]
        name = next((n for w in others for n in names if n.lower() == w.lower()), None)
        name = name or next((n for w in others if (n := _nearest(w, names)) and w.lower() not in GROUP_SYNONYMS), None)
        if names:
            return f"{group}/{name or '*'}.{field}"
    return None


def _nearest(word: str, names: Iterable[str]) -> str | None:
    match = difflib.get_close_matches(word, sorted(names), n=1, cutoff=CUTOFF)
    return match[0] if match else None
