"""`python -m experiments.mujoco_parity.speed MENAGERIE`: time of a step by the routines and by `mujoco.rollout`."""

import argparse
import re
import time
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
from mujoco import rollout

from benchmarks.ratios import Ratio, ratio_chart
from experiments.mujoco_parity.parity import random_walk
from truesim.physics.routines.engine import Engine
from truesim.physics.routines.from_mujoco import from_mujoco

ROBOTS = {
    "Go2": "unitree_go2/scene.xml",
    "ANYmal C": "anybotics_anymal_c/scene.xml",
    "Go1": "unitree_go1/scene.xml",
    "Barkour vB": "google_barkour_vb/scene.xml",
    "H1": "unitree_h1/scene.xml",
    "T1": "booster_t1/scene.xml",
    "G1": "unitree_g1/scene.xml",
    "Shadow hand": "shadow_hand/scene_right.xml",
    "Panda": "franka_emika_panda/scene.xml",
}
GOALS = {
    **{"Go2": (7, 10), "ANYmal C": (6, 8), "Go1": (6, 8), "Barkour vB": (4, 4), "H1": (5, 4), "T1": (5, 4)},
    **{"G1": (4.5, 2.5), "Shadow hand": (4, 3.5), "Panda": (3, 3)},
}
"""Ratios to reach, standing and moving."""
KINDS = ((np.float64, 4), (np.float64, None), (np.float32, None))
"""Number type and vector width of the routines; None is that of a register."""
STEPS, SETTLING, REPEATS, EARLY = 100, 300, 3, 50
"""Timed steps, steps before them, repeats of which the fastest counts, and the step at which errors are taken."""
HEAD = "| robot | motion | MuJoCo us | AVX2 us | full width us | float32 us, error | one instance us, MuJoCo us |"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="Folder of MuJoCo Menagerie.")
    parser.add_argument("--instances", type=int, default=64)
    parser.add_argument("--figure", type=Path, help="Chart of the ratios to write, as SVG.")
    options = parser.parse_args()
    print(HEAD + "\n" + "|---" * 7 + "|")
    table = []
    for name, path in ROBOTS.items():
        for line in rows(name, options.folder / path, options.instances):
            print(line, flush=True)
            table.append(line)
    if options.figure is not None:
        options.figure.write_text(figure(table))


def figure(table: list[str]) -> str:
    """Chart of the ratios in the lines of a table, with vectors as wide as those of AVX2."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    ratios = [
        Ratio(f"{robot} {motion}", f"{theirs} us by MuJoCo, {ours.split()[0]} us by the routines", _times(ours), goal)
        for robot, motion, theirs, ours, *_ in cells
        for goal in (GOALS[robot][motion == "moves"],)
    ]
    return ratio_chart("A step of a batch with MuJoCo's contact, AVX2, one thread", ratios)


def _times(cell: str) -> float:
    """Ratio in a cell such as `1.28 (9.2 times)`."""
    found = re.search(r"\(([\d.]+) times\)", cell)
    assert found, f"{cell!r} has no ratio"
    return float(found[1])


def rows(name: str, scene: Path, instances: int) -> list[str]:
    """Lines of a robot, standing and moving."""
    m = mujoco.MjModel.from_xml_path(str(scene))
    d = mujoco.MjData(m)
    mujoco.mj_resetDataKeyframe(m, d, 0)
    if not m.actuator_biastype.any():
        _make_servos(m, d)
    held = np.tile(d.ctrl, (1, SETTLING, 1))
    settled = Engine(from_mujoco(m), m).rollout(d.qpos[None], d.qvel[None], np.zeros((1, m.nv)), held)
    state = [np.repeat(x[:, -1], instances, axis=0) for x in (settled.qpos, settled.qvel, settled.warmstart)]
    still, moving = np.tile(d.ctrl, (instances, STEPS, 1)), random_walk(d.ctrl, instances, 0)[:, :STEPS]
    return [f"| {name} | {motion} | {_numbers(m, state, c)} |" for motion, c in (("stands", still), ("moves", moving))]


def _numbers(m: mujoco.MjModel, state: list[np.ndarray], controls: np.ndarray) -> str:
    """Times and errors of a motion, as cells of the table."""
    engines = [Engine(from_mujoco(m), m, dtype, lanes) for dtype, lanes in KINDS]
    ours = [_microseconds(lambda e=e: e.rollout(*state, controls), len(controls)) for e in engines]
    theirs = _their_time(m, state, controls)
    early = [engines[k].rollout(*state, controls).qpos[:, EARLY - 1] for k in (1, 2)]
    error = np.median(np.abs(early[0] - early[1]).max(axis=1))
    alone = [x[:1] for x in state]
    one = _microseconds(lambda: engines[1].rollout(*alone, controls[:1]), 1)
    one_of_theirs = _their_time(m, alone, controls[:1])
    cells = [f"{theirs:.1f}", *(f"{t:.2f} ({theirs / t:.1f} times)" for t in ours[:2]), f"{ours[2]:.2f}, {error:.0e}"]
    return " | ".join([*cells, f"{one:.1f}, {one_of_theirs:.1f} ({one_of_theirs / one:.1f} times)"])


def _make_servos(m: mujoco.MjModel, d: mujoco.MjData) -> None:
    """Make torque motors PD controllers of the joints, which hold the keyframe."""
    m.actuator_biastype[:], m.actuator_ctrllimited[:] = 1, 0
    m.actuator_gainprm[:, 0], m.actuator_biasprm[:, 1], m.actuator_biasprm[:, 2] = 60, -60, -2
    d.ctrl[:] = d.qpos[m.jnt_qposadr[m.actuator_trnid[:, 0]]]


def _microseconds(run: Callable[[], object], instances: int) -> float:
    """Smallest CPU time of a step of one instance [us]."""
    found = []
    for _ in range(REPEATS):
        begin = time.thread_time()
        run()
        found.append(time.thread_time() - begin)
    return min(found) / (instances * STEPS) * 1e6


def _their_time(m: mujoco.MjModel, state: list[np.ndarray], controls: np.ndarray) -> float:
    """CPU time of a step of `mujoco.rollout` [us]."""
    (q, v, start), d = state, mujoco.MjData(m)
    full = np.zeros((len(q), mujoco.mj_stateSize(m, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    full[:, 1 : 1 + m.nq + m.nv] = np.concatenate([q, v], axis=1)
    return _microseconds(lambda: rollout.rollout(m, d, full, controls, initial_warmstart=start), len(q))


if __name__ == "__main__":
    main()
