# %% [markdown]
# # A desk arm, from LeRobot logs to MuJoCo
#
# You have an SO-101, or any arm that [LeRobot](https://github.com/huggingface/lerobot) records, and its MJCF file. The simulated arm moves differently from the
# real one, because the gains, the friction and the delay of the servos in the file are guesses. This tutorial replaces the guesses by measured values. It shows three ways
# to the same result: the command line, the studio in a browser, and Python. Each takes less than ten minutes, installation included: on two cores that were busy with
# other work, the installation took 165 s, and the commands from the data set to the report 41 s; the studio needed 107 s from its start to the fit.
#
# A page cannot ship a robot. The "real" arm here is therefore a second arm in MuJoCo with other gains, more friction, a delay, and a part in its jaw.
# **With your own arm, use your own robot file and data set in all commands below.**
#
# ## Install
#
# In a clone of the repository, with Python 3.11 or newer:
#
# ```
# python3 -m venv .venv
# . .venv/bin/activate                       # on Windows: .venv\Scripts\activate
# pip install -c constraints.txt '.[viewer]'
# python -m docs.tutorials.real_machines out/so101      # writes desk_arm.xml and desk_arm_dataset
# cd out/so101
# ```
#
# ## On the command line
#
# LeRobot does not record whether positions are degrees or percent. truesim guesses names, units and signs of the columns from the motion, and writes the guess into a
# mapping file with its doubts as comments. Read it, and correct it where it is wrong:
#
# ```
# truesim inspect desk_arm.xml desk_arm_dataset --write-mapping mapping.toml
# ```
#
# Then identify. All six servos are of one kind, so they share one gain, one damping, one friction and one delay (`--tie`); together with the mass in the jaw these are five
# unknowns. Episodes 0 and 1 are fitted; episode 2 is held out: it is only predicted, and its errors show how far the result can be trusted.
#
# ```
# truesim identify desk_arm.xml 'desk_arm_dataset#0-1' --holdout 'desk_arm_dataset#2' --mapping mapping.toml --out fit \
#   --free bodies/jaw.mass --tie 'joints/*.damping' 'joints/*.frictionloss' 'actuators/*.kp' 'actuators/*.delay'
# truesim report fit --open
# ```
#
# The folder `fit` holds the report and `desk_arm.xml`: your own robot file, in which only the identified numbers have changed.
#
# ## In the studio
#
# ```
# truesim studio desk_arm.xml desk_arm_dataset
# ```
#
# ![The studio with the fitted desk arm over the recorded one](../images/studio.png)
#
# 1. **Data.** The data set is in degrees, which the studio says, and its gripper in percent. It guesses the mapping, as above; check the table and press *Use this mapping*. The panel at the lower
#    left now plays the recording. Choose `qpos/elbow_flex`: the measured position follows its command, so unit and sign are right. Set *Held out* to 1.
# 2. **Parameters.** Set *damping*, *frictionloss*, *kp* and *delay* to *one value for all*, and write `bodies/jaw.mass` into *Further*.
# 3. **Check.** Press *Check*. The page shows what will be fitted, and the command that does the same.
# 4. **Solve.** Press *Run*, and watch the cost fall.
# 5. **Results.** Gray is the recorded arm, orange the simulation with the file's numbers, blue the one with the identified numbers. Move a slider of *What if* to see what
#    another value would do.
#
# ## In Python
#
# This page is a script that the test suite runs (`python -m docs.tutorials.so101` in a clone), with the output shown here.

# %%
from pathlib import Path

import jax
import mujoco
import numpy as np

import truesim as ts
from docs.tutorials import real_machines

jax.config.update("jax_enable_x64", True)
robot, dataset = real_machines.write_desk_arm(".")
print(sorted(str(path.relative_to(dataset)) for path in dataset.rglob("*.*")))

# %% [markdown]
# Guess the mapping:

# %%
from truesim.files.logs.guessed import guess_columns

model = ts.load(robot)
Path("mapping.toml").write_text(guess_columns(model, dataset).text)
print(Path("mapping.toml").read_text())

# %% [markdown]
# Identify:

# %%
episodes = ts.read_logs(dataset, mapping="mapping.toml")
tied = ["joints/*.damping", "joints/*.frictionloss", "actuators/*.kp", "actuators/*.delay"]
fit = ts.identify(robot, episodes[:2], ["bodies/jaw.mass"], ties=tied, holdout=episodes[2:], out="fit", force=True)
print(fit.summary())

# %% [markdown]
# The recorded arm has a jaw of 0.09 kg, damping 0.42 N m s/rad, friction 0.11 N m, a gain of 13.5 N m/rad and a delay of 24 ms.
#
# ## Back in MuJoCo
#
# The written robot file works in MuJoCo without truesim; the delay stands in it too, since MuJoCo's actuators have one. Here it replays the whole episode that was held
# out: eight seconds in open loop. The first half second is left out, because MuJoCo's delays start empty.

# %%
held_out = episodes[2]
command = np.stack([held_out.columns[f"ctrl/{name}"] for name in model.actuators.names], axis=1)
measured = np.stack([held_out.columns[f"qpos/{name}"] for name in model.joints.names], axis=1)
settled = held_out.time > 0.5


def replay(file: str | Path) -> np.ndarray:
    """Positions of the joints in plain MuJoCo [rad]."""
    return real_machines.follow(mujoco.MjModel.from_xml_path(str(file)), held_out.time, command)


motions = {"before": replay(robot), "after": replay("fit/desk_arm.xml")}
errors = {name: np.sqrt(np.mean((q - measured)[settled] ** 2, axis=0)) for name, q in motions.items()}
for k, joint in enumerate(model.joints.names):
    print(f"{joint:14s} {1000 * errors['before'][k]:5.1f} mrad before, {1000 * errors['after'][k]:4.1f} mrad after")

# %%
from experiments.line_chart import Line, draw_lines

lines = [Line(name, held_out.time, q[:, 2]) for name, q in {"measured": measured, **motions}.items()]
Path("images").mkdir(exist_ok=True)
draw_lines(Path("images/so101.svg"), "Elbow of the held-out episode, in MuJoCo", ("time [s]", "angle [rad]"), lines)

# %% [markdown]
# ![Measured elbow, and the replay before and after the fit](images/so101.svg)
#
# ## Next
#
# `truesim view fit` plays the recorded and the simulated arms in 3-D, and `truesim posterior fit --out possible` writes ranges for domain randomization. If the status
# is *model does not fit*, `truesim suggest` says which physics is missing ([Troubleshooting](../troubleshooting.md)).
