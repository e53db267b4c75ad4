"""Experiments of the Real2Sim paper on simulated recordings with noise.

`python -m experiments.real2sim [--out FOLDER]` prints tables and writes a page of figures. Each experiment uses one
recording of ten samples at 25 Hz.
"""

import argparse
from pathlib import Path

import jax
import numpy as np

from experiments.real2sim.coupled import coupled
from experiments.real2sim.lengths import double_pendulum
from experiments.real2sim.online import triple_pendulum
from experiments.recorded import show
from truesim.report.figures import write_figures


def main() -> None:
    """Run all three experiments, print tables and write the page."""
    parser = argparse.ArgumentParser(description="Experiments of the Real2Sim paper.")
    parser.add_argument("--out", type=Path, default=Path("out/real2sim"), help="Folder for the figures.")
    parser.add_argument("--seed", type=int, default=0, help="Seed of recordings and samples.")
    given = parser.parse_args()
    figures = []
    for experiment in (double_pendulum, triple_pendulum, coupled):
        title, header, rows, drawn = experiment(given.seed)
        show(title, header, rows)
        figures += drawn
    lead = "Pendulums with spherical joints, one recording of ten samples at 25 Hz each, headings with 2 mrad of noise."
    print(f"\nFigures: {write_figures(given.out / 'index.html', 'Real2Sim', lead, figures)}")


if __name__ == "__main__":
    np.set_printoptions(precision=4, suppress=True)
    with jax.enable_x64(True):
        main()
