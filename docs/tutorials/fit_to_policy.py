# %% [markdown]
# # From a fit to a policy
#
# A policy that is trained in a wrong simulator fails on the machine. Here a machine is recorded, identified, and the policy is trained over what the logs leave possible.
# The page runs with a cart-pole, which takes seconds; the quadruped at the end has the same commands.
#
# This page is a script that the test-suite runs: `python -m docs.tutorials.fit_to_policy` in a clone.

# %%
from pathlib import Path

import jax
import numpy as np

import truesim as ts
from docs.tutorials import real_machines
from truesim.policies import TrainOptions, load_policy, play, train
from truesim.policies.randomization import from_posterior
from truesim.policies.tasks import find_task, make_task

task = make_task("cart-pole-balance")
ts.save(task.simulator.model, "cart_pole.xml")
with jax.enable_x64(True):
    real = task.simulator.replace({"bodies/pole.mass": 0.3, "joints/hinge.damping": 0.02, "joints/rail.damping": 0.6})
ts.save(real.model, "real.xml")  # the machine, which nobody knows
logs = [real_machines.record_cart_pole("real.xml", f"run{seed}.csv", seed) for seed in range(2)]
print(task.simulator.model.joints.names, task.simulator.model.bodies.names)

# %% [markdown]
# ## 1. Identify the machine
#
# ```
# truesim identify cart_pole.xml run0.csv --holdout run1.csv --free bodies/pole.mass 'joints/*.damping' --out fit
# ```

# %%
with jax.enable_x64(True):
    free = ["bodies/pole.mass", "joints/*.damping"]
    fit = ts.identify("cart_pole.xml", logs[:1], free, holdout=logs[1:], out="fit", force=True)
    randomization = from_posterior(fit)
print(fit.summary())

# %% [markdown]
# ## 2. Train over what the logs leave possible
#
# ```
# truesim train cart-pole-balance --robot fit --randomize fit --out balance --live
# ```
#
# Every episode has another robot, drawn from the posterior of the fit.

# %%
entry = find_task("cart-pole-balance")
task = make_task("cart-pole-balance", "fit", randomization)
found = train(task, "balance", learner=entry.learner, options=TrainOptions(steps=1_000_000, stop_at_goal=False))
print(f"{found.steps} control steps in {found.cpu_seconds:.1f} s of CPU time, return {found.evaluated_return:.3g}")

# %% [markdown]
# ## 3. On the machine
#
# ```
# truesim play balance --robot real.xml --in mujoco
# ```

# %%
played = play(load_policy("balance"), make_task("cart-pole-balance", "real.xml"), engine="mujoco")
print(f"{len(played.returns)} episodes on the machine: return {played.returns.mean():.3g}")
print(f"{played.terminated.sum()} of them ended early")

# %%
from experiments.line_chart import Line, draw_lines

progress = np.genfromtxt("balance/progress.csv", delimiter=",", names=True)
Path("images").mkdir(exist_ok=True)
draw_lines(
    Path("images/fit_to_policy.svg"),
    "Training over the posterior of the fit",
    ("control steps", "return of an episode"),
    [Line("return", progress["steps"], progress["return_"])],
)

# %% [markdown]
# ![Return over control steps](images/fit_to_policy.svg)
#
# ## The quadruped
#
# The same commands walk. They need a robot file of [MuJoCo Menagerie](https://github.com/google-deepmind/mujoco_menagerie) and a minute of CPU time, which is why the test-suite does
# not run them here; [Policies](../policies.md) has the figures.
#
# ```
# truesim identify unitree_go2/scene.xml stand*.csv --preset quadruped --out go2
# truesim train go2-joystick --robot unitree_go2/scene.xml --randomize go2 --out walk --live
# truesim play walk --in mujoco
# truesim view walk
# ```
#
# ![A quadruped that follows a joystick](../policies-joystick.svg)
