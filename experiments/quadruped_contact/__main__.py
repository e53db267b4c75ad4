"""`python -m experiments.quadruped_contact SCENE`: contact parameters of a quadruped's feet from a log of MuJoCo."""

import argparse
import time
from pathlib import Path

from experiments.quadruped_contact.recording import FEET, FRICTION, TIME_CONSTANT, record
from truesim import Fit, identify
from truesim.identification.search.run import SearchOptions

FREE = {
    "friction": [f"geoms/{foot}.friction[0]" for foot in FEET],
    "solref": [f"geoms/{foot}.solref[0]" for foot in FEET],
}

SOLVES, WINDOW = 600, 0.2
"""Simulations of the search in MuJoCo, and the length of its windows [s]."""


def main() -> None:
    """Fit by the routines' exact derivatives, then by a black-box search in MuJoCo, and print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scene", type=Path, help="Scene of a quadruped with position actuators, such as Go1's.")
    parser.add_argument("--seconds", type=float, default=2.0, help="Duration of the log.")
    parser.add_argument("--without-search", action="store_true", help="Leave out the search in MuJoCo.")
    options = parser.parse_args()
    other = record(options.scene, 1.0, seed=1)
    print(f"planted: friction {FRICTION}, solref[0] {TIME_CONSTANT} s", flush=True)
    searches = {"truesim": None, "mujoco, cmaes": SearchOptions("cmaes", "mujoco", solves=SOLVES, window=WINDOW)}
    for name, search in list(searches.items())[: 1 if options.without_search else 2]:
        log = record(
            options.scene, options.seconds, velocities=search is not None
        )  # it holds initial states as measured
        begin = time.process_time()
        fit = identify(
            options.scene,
            [log],
            [name for names in FREE.values() for name in names],
            ties=list(FREE.values()),
            holdout=[other],
            contact="file",
            search=search,
        )
        print(_line(name, fit, time.process_time() - begin), flush=True)
        print(fit.summary(), flush=True)


def _line(name: str, fit: Fit, seconds: float) -> str:
    values = [fit.values[names[0]] for names in FREE.values()]
    return f"{name}: friction {values[0]:.4f}, solref[0] {values[1]:.5f} s, {fit.status}, {seconds:.1f} CPU s"


if __name__ == "__main__":
    main()
