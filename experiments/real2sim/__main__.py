"""Repeats the experiments of the Real2Sim paper on simulated recordings with noise, prints a table and draws them.

`python -m experiments.real2sim [--out FOLDER]`. Everything is one recording of ten samples at 25 Hz.
"""

import argparse
from pathlib import Path

import jax
import numpy as np

from experiments.real2sim.coupled import coupled
from experiments.real2sim.lengths import double_pendulum
from experiments.real2sim.online import triple_pendulum
from experiments.recorded import show
from truesim.report.pictures import write_pictures


def main() -> None:
    """Runs all three, prints and draws."""
    parser = argparse.ArgumentParser(description="Experiments of the Real2Sim paper.")
    parser.add_argument("--out", type=Path, default=Path("out/real2sim"), help="Folder for the pictures.")
    parser.add_argument("--seed", type=int, default=0, help="Of recordings and samples.")
    given = parser.parse_args()
    pictures = []
    for experiment in (double_pendulum, triple_pendulum, coupled):
        title, header, rows, drawn = experiment(given.seed)
        show(title, header, rows)
        pictures += drawn
    lead = "Pendulums with spherical joints, one recording of ten samples at 25 Hz each, headings with 2 mrad of noise."
    print(f"\nPictures: {write_pictures(given.out / 'index.html', 'Real2Sim', lead, pictures)}")


if __name__ == "__main__":
    np.set_printoptions(precision=4, suppress=True)
    with jax.enable_x64(True):
        main()
