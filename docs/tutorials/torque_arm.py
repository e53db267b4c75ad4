# %% [markdown]
# # An arm with joint torques
#
# Industrial and research arms (Panda, UR, Gen3, xArm) log joint positions and torques, or motor currents. Their torques are linear in masses, centers of mass, inertias
# and friction, so that no start values and no choice of parameters are needed: one word, `--preset arm`.
#
# This page is a script that the test-suite runs: `python -m docs.tutorials.torque_arm` in a clone. It records the desk arm of the
# [first tutorial](so101.md) with torques instead of servo commands. **With your own arm, begin at step 1.**

# %%
from pathlib import Path

import jax
import numpy as np

import truesim as ts
from docs.tutorials import real_machines

jax.config.update("jax_enable_x64", True)
servos = Path(real_machines.__file__).with_name("desk_arm.xml")
text = servos.read_text().replace('<position kp="17.8" forcerange="-3.3 3.3"/>', "").replace("<position ", "<motor ")
Path("arm.xml").write_text(text.replace('damping="0.6" frictionloss="0.052" armature="0.028"', ""))
logs = [real_machines.record_torques(servos, f"run{seed}.csv", seed) for seed in range(2)]

# %% [markdown]
# `arm.xml` has masses, but no friction and no armature, as makers' files usually do. The logs have `time`, `qpos/<joint>` and `ctrl/<joint>`, the torque.
#
# ## 1. Identify
#
# ```
# truesim identify arm.xml run0.csv --preset arm --holdout run1.csv --out fit
# ```

# %%
fit = ts.identify("arm.xml", logs[:1], preset="arm", holdout=logs[1:], out="fit", force=True)
print(fit.status)
for joint in ("shoulder_lift", "elbow_flex", "wrist_flex"):
    damping, dry = (float(fit.values[f"joints/{joint}.{field}"]) for field in ("damping", "frictionloss"))
    print(f"{joint:14s} damping {damping:.3f} N m s/rad (true 0.42), friction {dry:.3f} N m (true 0.11)")

# %% [markdown]
# *Not identifiable* is the usual status of an arm: of its inertial parameters only combinations show in the torques. Those decide how it moves, and they are found.
#
# ## 2. How good is it?
#
# ```
# truesim evaluate fit run1.csv
# ```

# %%
from truesim.identification.diagnose.diagnosis import Part

relative = {
    part: np.mean([error.relative for error in fit.torque_errors[part].values()])
    for part in (Part.HELD_OUT_START, Part.HELD_OUT)
}
print(f"relative torque error on the held-out run: {100 * relative[Part.HELD_OUT_START]:.0f} % with the file,")
print(f"{100 * relative[Part.HELD_OUT]:.1f} % after the fit")

# %%
from experiments.line_chart import Line, draw_lines

signals = fit.signals
row = [str(name) for name in signals["rows"]].index("qpos/elbow_flex")
key = "held_out/run1.csv"
part = signals[f"{key}/time"] < 6.0
curves = {"measured": "measured", "before": "start", "after": "fitted"}
lines = [Line(name, signals[f"{key}/time"][part], signals[f"{key}/{kind}"][part, row]) for name, kind in curves.items()]
Path("images").mkdir(exist_ok=True)
draw_lines(
    Path("images/torque_arm.svg"), "Elbow, simulated in windows from its torques", ("time [s]", "angle [rad]"), lines
)

# %% [markdown]
# ![Measured elbow and simulations from its torque, before and after the fit](images/torque_arm.svg)
#
# [Arms](../arms.md) explains what is estimated and how to read it, with a real Kinova Gen3.
