"""Ranges of a posterior as source files of libraries that train policies: mjlab, Isaac Lab and MuJoCo Playground.

Every file is Python text in the words of its library, with absolute values in SI units. What a library has no term for
is listed in a comment, so that nothing is left out silently.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from truesim.core.errors import unknown_name
from truesim.identification.posterior.ranges import Range
from truesim.identification.problem.problem import Problem
from truesim.physics.model import paths
from truesim.physics.model.model import Model

Interval = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class TargetRange:
    """Range of one number of one element of a robot, in SI units."""

    group: str
    """`joints`, `bodies`, `actuators`, `geoms`, …"""
    name: str
    field: str
    element: int | None
    """Element of a vector."""
    low: float
    high: float

    def __str__(self) -> str:
        at = "" if self.element is None else f"[{self.element}]"
        return f"{self.group}/{self.name}.{self.field}{at}: {self.low:.6g} to {self.high:.6g}"


def target_ranges(problem: Problem, found: Sequence[Range]) -> list[TargetRange]:
    """Ranges of every number in the robot; a tied parameter has one for each of its targets.

    Args:
        problem: The problem of the posterior.
        found: Its ranges, from `ranges`.
    """
    rows, out = iter(found), []
    for parameter in problem.parameters:
        own = [next(rows) for _ in range(np.size(parameter.start))]
        if parameter.log is not None:
            continue
        for target in parameter.targets:
            group = target.path.group or "world"
            named = str(target.path).partition("/")[2].rpartition(".")[0]
            for k, row in enumerate(own):
                ends = sorted((target.sign * row.low, target.sign * row.high))
                element = target.element if target.element is not None else (k if len(own) > 1 else None)
                out.append(TargetRange(group, named, target.path.field, element, *ends))
    return out


def trainer_file(library: str, model: Model, found: Sequence[TargetRange], warnings: Sequence[str] = ()) -> str:
    """Text of a file for a library.

    Args:
        library: One of `TRAINER_LIBRARIES`.
        model: The fitted robot, which gives the numbers that have no range.
        found: The ranges.
        warnings: Reasons not to trust the ranges; they become comments at the top.
    """
    if library not in TRAINER_LIBRARIES:
        raise unknown_name("library", library, TRAINER_LIBRARIES)
    lines = TRAINER_LIBRARIES[library](model, found)
    head = [
        f'"""Ranges of {model.name or "a robot"} for {library}, written by truesim; absolute values in SI units."""'
    ]
    return "\n".join([*head, *(f"# Warning: {text}" for text in warnings), "", *lines, ""])


@dataclasses.dataclass(frozen=True)
class _ServoGains:
    """Ranges of the gains of one position servo."""

    actuator: str
    joint: str
    kp: Interval
    kv: Interval


def _servo_gains(model: Model, found: Sequence[TargetRange]) -> list[_ServoGains]:
    """Gains of the servos of which any gain has a range; the other one is the fitted value."""
    ranged = {(r.name, r.field): (r.low, r.high) for r in found if r.group == "actuators"}
    out = []
    for k, name in enumerate(model.actuators.names):
        if not {(name, "kp"), (name, "kv")} & set(ranged):
            continue
        joint = model.actuators.joints[k]
        kp, kv = (ranged.get((name, field), _fixed(model, name, field)) for field in ("kp", "kv"))
        out.append(_ServoGains(name, model.joints.names[joint] if joint >= 0 else name, kp, kv))
    return out


def _fixed(model: Model, actuator: str, field: str) -> Interval:
    value = float(paths.read(model, f"actuators/{actuator}.{field}"))
    return value, value


def _pair(low: float, high: float) -> str:
    return f"({low:.9g}, {high:.9g})"


def _variable(*words: str) -> str:
    """A name for a Python variable."""
    text = "_".join(words)
    return "".join(c if c.isalnum() else "_" for c in text)


def _left_out(found: Sequence[TargetRange], used: set[TargetRange], library: str) -> list[str]:
    rest = [r for r in found if r not in used]
    head = [f"# {library} has no term for these; robot files with sampled values (--variants) hold them:"]
    return [*head, *(f"#   {r}" for r in rest)] if rest else []


MJLAB_TERMS = {
    ("joints", "damping"): ("joint_damping", "joint_names"),
    ("joints", "frictionloss"): ("joint_friction", "joint_names"),
    ("joints", "armature"): ("joint_armature", "joint_names"),
    ("joints", "stiffness"): ("joint_stiffness", "joint_names"),
    ("bodies", "mass"): ("body_mass", "body_names"),
    ("geoms", "friction"): ("geom_friction", "geom_names"),
}
"""Function of `mjlab.envs.mdp.dr` and argument that names the element, by group and field."""


def _mjlab(model: Model, found: Sequence[TargetRange]) -> list[str]:
    lines = [
        "from mjlab.envs.mdp import dr",
        "from mjlab.managers.event_manager import EventTermCfg",
        "from mjlab.managers.scene_entity_config import SceneEntityCfg",
        "",
        "EVENTS = {",
    ]
    used = set()
    for r in found:
        term, argument = MJLAB_TERMS.get((r.group, r.field), (None, None))
        if term is None:
            continue
        used.add(r)
        axes = "" if r.element is None else f', "axes": [{r.element}]'
        lines += [
            f'    "{_variable(r.field, r.name)}{"" if r.element is None else f"_{r.element}"}": EventTermCfg(',
            f'        mode="startup", func=dr.{term},',
            f'        params={{"ranges": {_pair(r.low, r.high)}, "operation": "abs"{axes},',
            f'                "asset_cfg": SceneEntityCfg("robot", {argument}=("{r.name}",))}}),',
        ]
    for gains in _servo_gains(model, found):
        used |= {r for r in found if r.group == "actuators" and r.name == gains.actuator and r.field in ("kp", "kv")}
        lines += [
            f'    "{_variable("gains", gains.actuator)}": EventTermCfg(mode="startup", func=dr.pd_gains,',
            f'        params={{"kp_range": {_pair(*gains.kp)}, "kd_range": {_pair(*gains.kv)}, "operation": "abs",',
            f'                "asset_cfg": SceneEntityCfg("robot", actuator_names=["{gains.actuator}"])}}),',
        ]
    return [*lines, "}", *_left_out(found, used, "mjlab")]


ISAAC_JOINT_TERMS = {"frictionloss": "friction_distribution_params", "armature": "armature_distribution_params"}


def _isaaclab(model: Model, found: Sequence[TargetRange]) -> list[str]:
    lines = [
        "import isaaclab.envs.mdp as mdp",
        "from isaaclab.managers import EventTermCfg as EventTerm",
        "from isaaclab.managers import SceneEntityCfg",
        "from isaaclab.utils import configclass",
        "",
        "",
        "@configclass",
        "class EventCfg:",
        '    """Terms of the event manager; damping of a joint with a servo is part of the servo\'s damping."""',
        "",
    ]
    used: set[TargetRange] = set()

    def add(name: str, function: str, argument: str, element: str, values: dict[str, Interval]) -> None:
        inner = "".join(f'"{key}": {_pair(*ends)}, ' for key, ends in values.items())
        lines.extend(
            [
                f'    {name} = EventTerm(func=mdp.{function}, mode="startup", params={{',
                f'        "asset_cfg": SceneEntityCfg("robot", {argument}=["{element}"]), {inner}"operation": "abs"}})',
            ]
        )

    for r in found:
        if r.group == "joints" and r.field in ISAAC_JOINT_TERMS:
            values = {ISAAC_JOINT_TERMS[r.field]: (r.low, r.high)}
            add(_variable(r.field, r.name), "randomize_joint_parameters", "joint_names", r.name, values)
            used.add(r)
        elif (r.group, r.field) == ("bodies", "mass"):
            values = {"mass_distribution_params": (r.low, r.high)}
            add(_variable("mass", r.name), "randomize_rigid_body_mass", "body_names", r.name, values)
            used.add(r)
    damping = {r.name: r for r in found if (r.group, r.field) == ("joints", "damping")}
    for gains in _servo_gains(model, found):
        own = damping.get(gains.joint)
        fixed = float(paths.read(model, f"joints/{gains.joint}.damping"))
        low, high = (fixed, fixed) if own is None else (own.low, own.high)
        values = {
            "stiffness_distribution_params": gains.kp,
            "damping_distribution_params": (gains.kv[0] + low, gains.kv[1] + high),
        }
        add(_variable("gains", gains.joint), "randomize_actuator_gains", "joint_names", gains.joint, values)
        used |= {r for r in found if r.group == "actuators" and r.name == gains.actuator and r.field in ("kp", "kv")}
        used |= set() if own is None else {own}
    return [*lines, *(["    pass"] if not used else []), *_left_out(found, used, "Isaac Lab")]


PLAYGROUND_FIELDS = {
    ("joints", "damping"): "dof_damping",
    ("joints", "frictionloss"): "dof_frictionloss",
    ("joints", "armature"): "dof_armature",
    ("bodies", "mass"): "body_mass",
    ("geoms", "friction"): "geom_friction",
}
"""Field of MJX's model by group and field."""


def _playground(model: Model, found: Sequence[TargetRange]) -> list[str]:
    entries, used = [], set()
    for r in found:
        field = PLAYGROUND_FIELDS.get((r.group, r.field))
        if field is None:
            continue
        for at in _indices(model, r):
            entries.append((field, at, r.low, r.high))
        used.add(r)
    for gains in _servo_gains(model, found):
        k = model.actuators.names.index(gains.actuator)
        entries += [("kp", (k,), *gains.kp), ("kv", (k,), *gains.kv)]
        used |= {r for r in found if r.group == "actuators" and r.name == gains.actuator and r.field in ("kp", "kv")}
    rows = [f'    ("{field}", {at!r}, {low:.9g}, {high:.9g}),' for field, at, low, high in entries]
    return [
        "import jax",
        "import jax.numpy as jnp",
        "",
        "RANGES = (",
        *rows,
        ")",
        '"""Field of the model, index in it, low and high; `kp` and `kv` are gains of position servos."""',
        "FIELDS = sorted({field for field, *_ in RANGES if field not in ('kp', 'kv')})",
        "SERVOS = ['actuator_gainprm', 'actuator_biasprm'] if any(r[0] in ('kp', 'kv') for r in RANGES) else []",
        "",
        "",
        "def domain_randomize(model, rng):",
        '    """Randomization function of a Playground environment, for models compiled from the same robot file."""',
        "",
        "    @jax.vmap",
        "    def draw(key):",
        "        values = {field: jnp.asarray(getattr(model, field)) for field in (*FIELDS, *SERVOS)}",
        "        for (field, at, low, high), k in zip(RANGES, jax.random.split(key, len(RANGES))):",
        "            x = jax.random.uniform(k, minval=low, maxval=high)",
        "            if field == 'kp':",
        "                values['actuator_gainprm'] = values['actuator_gainprm'].at[at[0], 0].set(x)",
        "                values['actuator_biasprm'] = values['actuator_biasprm'].at[at[0], 1].set(-x)",
        "            elif field == 'kv':",
        "                values['actuator_biasprm'] = values['actuator_biasprm'].at[at[0], 2].set(-x)",
        "            else:",
        "                values[field] = values[field].at[at].set(x)",
        "        return values",
        "",
        "    drawn = draw(rng)",
        "    in_axes = jax.tree_util.tree_map(lambda x: None, model).tree_replace({name: 0 for name in drawn})",
        "    return model.tree_replace(drawn), in_axes",
        *_left_out(found, used, "Playground"),
    ]


def _indices(model: Model, r: TargetRange) -> list[tuple[int, ...]]:
    """Indices in MuJoCo's array; a joint with several degrees of freedom has several."""
    if r.group == "joints":
        joint = model.joints.names.index(r.name)
        first = sum(kind.nv for kind in model.joints.kinds[:joint])
        return [(first + k,) for k in range(model.joints.kinds[joint].nv)]
    if r.group == "bodies":
        return [(model.bodies.names.index(r.name) + 1,)]
    own = model.geoms.names.index(r.name)
    return [(own,) if r.element is None else (own, r.element)]


TRAINER_LIBRARIES: dict[str, Callable[[Model, Sequence[TargetRange]], list[str]]] = {
    "mjlab": _mjlab,
    "isaaclab": _isaaclab,
    "playground": _playground,
}
"""Writer of the file of each library."""
