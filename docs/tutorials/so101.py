# %% [markdown]
# # A desk arm, from LeRobot logs to MuJoCo
#
# You have an SO-101 (or any arm that [LeRobot](https://github.com/huggingface/lerobot) records) and its MJCF. In simulation it moves
# differently: the gains, the friction and the delay of the servos in the file are guesses. Ten minutes later they are not.
#
# This page is a script that the test-suite runs: `python -m docs.tutorials.so101` in a clone. A page cannot ship a robot, so an arm of the same kind is recorded
# in MuJoCo with other gains, friction, a delay and something in its jaw. **With your own arm, begin at step 1 with your own files.**

# %%
from pathlib import Path

import jax
import mujoco
import numpy as np

import truesim as ts
from docs.tutorials import real_machines

jax.config.update("jax_enable_x64", True)
robot = Path(real_machines.__file__).with_name("desk_arm.xml")
dataset = real_machines.record_lerobot(robot, "desk_arm_dataset")
print(sorted(str(path.relative_to(dataset)) for path in dataset.rglob("*.*")))

# %% [markdown]
# ## 1. What do the columns mean?
#
# LeRobot does not say whether positions are degrees or percent. truesim guesses names, units and signs from the motion, and writes the guess down:
#
# ```
# truesim inspect desk_arm.xml desk_arm_dataset --write-mapping mapping.toml
# ```

# %%
from truesim.files.logs import read_episodes
from truesim.files.logs.guess import guess_mapping, mapping_text
from truesim.files.logs.read import read_columns

model = ts.load(robot)
guesses = guess_mapping(read_columns(dataset), model)
Path("mapping.toml").write_text(mapping_text(guesses, dataset.name))
print(Path("mapping.toml").read_text())

# %% [markdown]
# ## 2. Identify
#
# Servos of one kind share their values, so that gain, damping, friction and delay are tied: five numbers are enough. Two episodes are fitted, the
# third is only predicted.
#
# ```
# truesim identify desk_arm.xml desk_arm_dataset --mapping mapping.toml --out fit \
#   --free bodies/jaw.mass --tie 'joints/*.damping' 'joints/*.frictionloss' 'actuators/*.kp' 'actuators/*.delay'
# ```

# %%
episodes = read_episodes(dataset, mapping="mapping.toml")
tied = ["joints/*.damping", "joints/*.frictionloss", "actuators/*.kp", "actuators/*.delay"]
fit = ts.identify(robot, episodes[:2], ["bodies/jaw.mass"], ties=tied, holdout=episodes[2:], out="fit", force=True)
print(fit.summary())

# %% [markdown]
# ## 3. Back in MuJoCo
#
# The folder holds your own robot file with only the identified numbers changed; the delay stands in it too, since MuJoCo's actuators have one. It is
# replayed over the whole episode that was held out, eight seconds in open loop. The first half second is left out: MuJoCo's delays start empty.

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
# `truesim view fit` plays both robots in 3-D, `truesim studio` does all of this step by step in a browser, and `truesim posterior fit --out possible`
# writes ranges for domain randomization. If the status were *model does not fit*, `truesim suggest` would say which physics is missing.
