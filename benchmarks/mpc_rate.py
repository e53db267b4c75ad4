"""Rate of predictive control: `python -m benchmarks.mpc_rate`.

A cart-pole and the Panda of `example-robot-data`, horizons of 50 steps, one iteration a tick in closed loop with a
simulated plant, with delayed actuators where `--delay` says so. CPU time of one thread of the controller.
"""

import argparse
import tempfile
import time
from pathlib import Path

import jax
import numpy as np

from benchmarks.control import START, panda, reach
from benchmarks.swing_up import PROBLEMS, task_of
from truesim.control import PredictiveController, SimulatedPlant, Task
from truesim.physics.simulation import Simulator

HORIZON, TICKS = 50, 200


def rate(task: Task) -> tuple[float, float, np.ndarray]:
    """Median and 95th percentile of the CPU time of a tick [s], and the last configuration."""
    controller = PredictiveController(task)
    plant, seconds = SimulatedPlant(task.simulator, task.initial_state()), []
    for _ in range(TICKS):
        q, v, now = plant.observe()
        begun = time.process_time()
        command = controller(q, v, now)
        seconds.append(time.process_time() - begun)
        plant.apply(command)
    return float(np.median(seconds)), float(np.percentile(seconds, 95)), plant.observe()[0]


def delayed(task: Task, steps: int) -> Task:
    """The same task with actuators that act some steps late."""
    if not steps:
        return task
    old = task.simulator
    late = steps * float(old.timestep)
    simulator = Simulator.of(
        old.model, timestep=old.timestep, joint_model=old.joint_model, contact=None, max_delay=1.5 * late
    )
    simulator = simulator.replace({f"actuators/{name}.delay": late for name in old.model.actuators.names})
    return task.replace(simulator=simulator, start=simulator.initial_state(q=task.initial_state().q))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--delay", type=int, default=0, help="delay of the actuators [steps]")
    parser.add_argument("--only", choices=("cart-pole", "panda"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tasks = {}
        if options.only != "panda":
            tasks["cart-pole"] = task_of(PROBLEMS["cart-pole"], folder)
        if options.only != "cart-pole":
            tasks["panda"] = reach(panda(folder))
        for key, task in tasks.items():
            middle, most, q = rate(delayed(task.replace(steps=HORIZON), options.delay))
            end = np.round(q, 2) if key == "cart-pole" else f"{np.abs(q - START).max():.2f} rad from its start"
            print(
                f"{key}: {1e3 * middle:.2f} ms a tick, {1e3 * most:.2f} ms at 95 %, {1 / middle:.0f} Hz; ends at {end}"
            )


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
