"""Plausibility of estimates: far from the robot file's values, or close to what an actuator can exert."""

from collections.abc import Sequence

import numpy as np

from truesim.identification.diagnose.estimates import Estimate
from truesim.identification.diagnose.options import DiagnoseOptions
from truesim.identification.diagnose.status import Code, Diagnostic
from truesim.physics.model import paths
from truesim.physics.model.model import Model

POSITIVE_FIELDS = ("mass", "damping", "frictionloss", "armature", "stiffness", "gain", "kp", "kv", "inertia")
"""Fields whose ratio to the file's value is checked."""
FORCE_FRACTION = 0.3
"""Fraction of an actuator's force above which joint friction is reported. Larger reports less."""


def implausible(found: Sequence[Estimate], model: Model, options: DiagnoseOptions) -> tuple[Diagnostic, ...]:
    """Estimates that differ from the robot file by a large factor, and friction near the limit of an actuator.

    Args:
        found: The estimates.
        model: The robot with its start values.
        options: Thresholds.
    """
    diagnostics = []
    for e in found:
        path = e.path.partition("@")[0].partition("[")[0]
        field = path.rpartition(".")[2]
        if e.value.size != 1 or not e.identifiable:
            continue
        value, start = float(e.value.item()), float(e.start.item())
        ratio = max(value, 1e-300) / start if start > 0 else np.nan
        limit = _force_limit(model, path) if field == "frictionloss" else np.inf
        if value > FORCE_FRACTION * limit:
            diagnostics.append(Diagnostic(Code.NEAR_FORCE_LIMIT, (e.path,), value, value / limit))
        elif field in POSITIVE_FIELDS and abs(np.log(ratio)) > np.log(options.implausible_ratio):
            diagnostics.append(Diagnostic(Code.IMPLAUSIBLE, (e.path,), value, ratio))
    return tuple(diagnostics)


def _force_limit(model: Model, path: str) -> float:
    """Largest force that the actuators of a joint can exert [N m or N]; infinite without a limit."""
    joint = paths.parse(model, path).index
    actuators = model.actuators
    own = [i for i, j in enumerate(actuators.joints) if j == joint and actuators.force_limited[i]]
    forces = [float(np.max(np.abs(actuators.force_range[i])) * np.abs(actuators.gear[i][0])) for i in own]
    return max(forces, default=np.inf) or np.inf
