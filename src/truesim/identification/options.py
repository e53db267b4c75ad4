"""All options of an identification, as one record that a fit keeps."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from truesim.identification.diagnose.options import DiagnoseOptions
from truesim.identification.problem.options import ProblemOptions
from truesim.identification.search.run import SearchOptions
from truesim.identification.solve.options import SolveOptions
from truesim.physics.blueprint import Trained
from truesim.physics.blueprint.file import blueprint_of, description_of


@dataclasses.dataclass(frozen=True)
class IdentifyOptions:
    """Options of an identification beyond robot, logs and free parameters."""

    problem: ProblemOptions = dataclasses.field(default_factory=ProblemOptions)
    solve: SolveOptions = dataclasses.field(default_factory=SolveOptions)
    diagnose: DiagnoseOptions = dataclasses.field(default_factory=DiagnoseOptions)
    search: SearchOptions | None = None
    """Global search for the start; none starts at the robot's own values."""
    preset: str | None = None
    """Kind of robot that decides what is free: `arm`, `servo`, `quadruped` or `free-body`."""
    floating_base: bool = False
    """True if the root of a URDF moves freely."""
    held: tuple[str, ...] = ()
    """Joints of a URDF of which the logs know nothing: they are fixed at zero."""
    mapping: str | None = None
    """File that renames and scales the logs' own columns."""
    actuator_models: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Actuator model by actuator, instead of the file's."""
    servos: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)
    """Gains `kp` and `kv` of motors that are servos, by pattern of actuators or joints."""
    gears: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)
    """Stiffness, damping, backlash and armature of gears that give, by joint [SI units]."""
    values: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Start values by path, instead of the file's [SI units]."""

    def document(self) -> dict[str, Any]:
        """The options as plain values, for JSON; infinite numbers as text."""
        problem = {f.name: getattr(self.problem, f.name) for f in dataclasses.fields(ProblemOptions)}
        blueprint = problem.pop("blueprint")
        plan = blueprint.blueprint if isinstance(blueprint, Trained) else blueprint
        problem["blueprint"] = None if plan is None else description_of(plan)
        return plain_values(
            {
                "problem": problem,
                "solve": dataclasses.asdict(self.solve),
                "diagnose": dataclasses.asdict(self.diagnose),
                "search": None if self.search is None else dataclasses.asdict(self.search),
                "preset": self.preset,
                "floating_base": self.floating_base,
                "held": self.held,
                "mapping": self.mapping,
                "actuator_models": self.actuator_models,
                "servos": self.servos,
                "gears": self.gears,
                "values": self.values,
            }
        )


def read_options(document: Mapping[str, Any]) -> IdentifyOptions:
    """The options that a document from `IdentifyOptions.document` describes; unknown names are left out."""
    problem = dict(document["problem"])
    blueprint = problem.pop("blueprint", None)
    problem["blueprint"] = None if blueprint is None else blueprint_of(blueprint)
    for name in ("bounds", "priors"):
        problem[name] = {path: tuple(pair) for path, pair in problem.get(name, {}).items()}
    search = document.get("search")
    return IdentifyOptions(
        problem=_record(ProblemOptions, problem),
        solve=_record(SolveOptions, document["solve"]),
        diagnose=_record(DiagnoseOptions, document["diagnose"]),
        search=None if search is None else _record(SearchOptions, search),
        preset=document.get("preset"),
        floating_base=bool(document.get("floating_base")),
        held=tuple(document.get("held", ())),
        mapping=document.get("mapping"),
        actuator_models=document.get("actuator_models", {}),
        servos=document.get("servos", {}),
        gears=document.get("gears", {}),
        values=document.get("values", {}),
    )


def _record(kind: type, values: Mapping[str, Any]) -> Any:
    known = {field.name for field in dataclasses.fields(kind)}
    return kind(**{name: _value(value) for name, value in values.items() if name in known})


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_value, value))
    return float(value) if value in ("inf", "-inf") else value


def plain_values(value: Any) -> Any:
    """The same value of lists, mappings and numbers for JSON; infinite numbers as text."""
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else str(float(value))
    if isinstance(value, Mapping):
        return {str(k): plain_values(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain_values(v) for v in value]
    return value
