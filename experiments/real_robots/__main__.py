"""Results of `truesim identify` on recorded robots, compared with required values.

`python -m experiments.real_robots [--out DIR]`. Held-out errors are medians over windows of 0.5 s, open loop, each
started from the 25 ms before it.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

from experiments.real_robots.command import DFKI, OFFSETS, TRAINING, free_options, run_identify
from experiments.recorded import folder, show

PUBLISHED = {"C1": (0.160, 0.230, 0.0509), "C0": (0.181, 0.241, 0.0539)}
"""m2 r2 [kg m], m1 r1 + m2 l1 [kg m], I2 about the elbow [kg m^2]."""
ALLOWED = {"C1": (0.018, 0.041), "C0": (0.030, 0.045)}
"""Held-out errors of shoulder and elbow [rad]."""
UPPER = 0.2
"""Length of the upper link [m]."""

Row = tuple[str, str, object]


def values(fit: Any) -> dict[str, float]:
    """Estimates by path."""
    return {parameter["path"]: parameter["value"] for parameter in fit["parameters"]}


def dfki(design: str, out: Path) -> list[Row]:
    """The torque-driven arm."""
    data = folder("dfki_double_pendulum")
    logs = sorted(data.glob(f"{design}_*.csv"))
    train, kept = logs[: TRAINING[design]], logs[TRAINING[design] :]
    options = [*free_options((*DFKI, OFFSETS)), "--window", "0.5"]
    fit = run_identify(data / "rig_C.xml", train, kept, options, out / design)
    found = values(fit)
    names = [path.split("/")[1].rpartition(".")[0] for path in found if path.endswith(".mass")]
    m1, m2 = (found[f"bodies/{name}.mass"] for name in names)
    r1, r2 = (-found[f"bodies/{name}.com[2]"] for name in names)
    base = (m2 * r2, m1 * r1 + m2 * UPPER, found[f"bodies/{names[1]}.inertia[1]"] + m2 * r2**2)
    rows: list[Row] = [
        (f"DFKI {design} {what}", f"{published:g} +-15 %", value)
        for what, published, value in zip(("m2 r2", "m1 r1 + m2 l1", "I2"), PUBLISHED[design], base, strict=True)
    ]
    errors = fit["errors"]["held_out"]
    return rows + [
        (f"DFKI {design} held out {channel} [rad]", f"<= {most:g}", errors[channel]["median"])
        for channel, most in zip(sorted(errors, reverse=True), ALLOWED[design], strict=True)
    ]


def qube(out: Path) -> list[Row]:
    """The rotary pendulum."""
    data = folder("qube")
    logs = sorted(data.glob("chirp*.csv"))
    free = ("bodies/*.mass", "joints/*.damping", "joints/*.frictionloss", "joints/*.armature", "actuators/*.delay")
    fit = run_identify(data / "rig.xml", logs[:3], logs[3:], free_options(free), out / "qube")
    delay = next(value for path, value in values(fit).items() if path.endswith(".delay"))
    rows: list[Row] = [("Qube delay [ms]", "2 to 8", 1e3 * delay)]
    for channel, error in fit["errors"]["held_out"].items():
        most = 0.006 if "pend" in channel or "pole" in channel else 0.025
        ratio = fit["errors"]["held_out_start"][channel]["median"] / error["median"]
        rows.append((f"Qube held out {channel} [rad]", f"<= {most:g}", error["median"]))
        rows.append((f"Qube {channel}, data sheet over fit", ">= 3", ratio))
    return rows


def emps(out: Path) -> list[Row]:
    """The linear drive."""
    data = folder("emps")
    free = ("bodies/*.mass", "joints/*.damping", "joints/*.frictionloss", OFFSETS)
    found = values(run_identify(data / "rig.xml", [data / "train.csv"], [], free_options(free), out / "emps"))
    wanted = {".mass": "95.11 +-2 %", ".damping": "203.5 +-4 %", ".frictionloss": "20.39 +-4 %"}
    return [(f"EMPS {path}", wanted[end], found[path]) for end in wanted for path in found if path.endswith(end)]


def main() -> None:
    """Identify all robots and print a table."""
    place = Path(sys.argv[sys.argv.index("--out") + 1]) if "--out" in sys.argv else Path(tempfile.mkdtemp())
    rows = [*dfki("C1", place), *dfki("C0", place), *qube(place), *emps(place)]
    show(f"Recorded robots; reports are in {place}", ("figure", "required", "reached"), rows)


if __name__ == "__main__":
    main()
