"""One case solved by MuJoCo's identification toolbox: `python peer.py FOLDER CASE` prints JSON.

Needs `pip install "mujoco[sysid]"` and nothing of this library, so that any environment can run it.
"""

import contextlib
import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from mujoco import sysid


def setter(path: str) -> Any:
    """Function that writes a parameter into the peer's model."""
    group, rest = path.split("/")
    name, _, field = rest.rpartition(".")

    def write(spec: mujoco.MjSpec, parameter: Any) -> None:
        value = float(parameter.value[0])
        if group == "bodies":
            spec.body(name).mass = value
        elif field == "damping":
            spec.joint(name).damping[0] = value
        else:
            setattr(spec.joint(name), field, value)

    return write


def solve(folder: Path, case: str) -> dict[str, Any]:
    """Estimates, half widths of their 95 % intervals, and CPU seconds of the fit."""
    known = json.loads((folder / f"{case}.json").read_text(encoding="utf-8"))
    spec = mujoco.MjSpec.from_file(str(folder / f"{case}.xml"))
    model = spec.compile()
    table = np.genfromtxt(folder / f"{case}.csv", delimiter=",", names=True, deletechars="")
    names = table.dtype.names
    columns = {kind: np.stack([table[n] for n in names if n.startswith(kind)], axis=1) for kind in ("ctrl", "sensor")}
    clock = table["time"]
    late = clock + model.opt.timestep  # its measurements have the stamp of the end of the step
    sequences = sysid.ModelSequences(
        case,
        spec,
        case,
        sysid.create_initial_state(model, np.array(known["initial_qpos"]), np.array(known["initial_qvel"])),
        sysid.TimeSeries.from_control_names(clock, columns["ctrl"], model),
        sysid.TimeSeries.from_names(late, columns["sensor"], model),
    )
    rows = zip(known["parameters"], known["start"], known["lower"], known["upper"], strict=True)
    parameters = sysid.ParameterDict(
        {p: sysid.Parameter(p, start, low, high, modifier=setter(p)) for p, start, low, high in rows}
    )
    residual = sysid.build_residual_fn(models_sequences=[sequences], n_threads=1)
    begin = time.process_time()
    _, result = sysid.optimize(parameters, residual, verbose=False)
    seconds = time.process_time() - begin
    _, half = sysid.calculate_intervals(residual(result.x, parameters)[0], result.jac)
    return {"values": list(map(float, result.x)), "half_widths": list(map(float, half)), "cpu_seconds": seconds}


if __name__ == "__main__":
    with contextlib.redirect_stdout(io.StringIO()):
        answer = solve(Path(sys.argv[1]), sys.argv[2])
    json.dump(answer, sys.stdout)
