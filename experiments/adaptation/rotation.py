"""B9: MAML and NoRML on a point whose actions a hidden angle rotates."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.adaptation.families.memory import with_memory
from experiments.adaptation.families.point import point_rotation
from experiments.adaptation.meta_training import MetaCase, adapted_rows, fixed_row
from experiments.adaptation.rows import Row, Setting, make_row
from truesim.policies.meta import MetaGradientOptions, play

NAME = "B9 point that rotates"


def run(setting: Setting) -> list[Row]:
    """Rows of the benchmark."""
    quick = setting.quick
    family = point_rotation()
    options = MetaGradientOptions(tasks=20, episodes=25, discount=0.9, updates=30 if quick else 400)
    keys = jax.random.split(jax.random.key(0), 500)
    stay = jax.vmap(lambda k: play(family, lambda o, _: jnp.zeros(2), jnp.zeros(()), k).returns)(keys)
    longer = MetaGradientOptions(tasks=40, episodes=25, discount=0.9, updates=30 if quick else 1500)
    fixed, once = MetaCase("fixed", 0.0, 5e-3, -1.0), setting._replace(seeds=1)
    return [
        make_row(NAME, "stay", [np.asarray(stay)]),
        fixed_row(NAME, "best memoryless network", family, fixed, longer, once),
        fixed_row(NAME, "one step of memory", with_memory(family), fixed, longer, once),
        *adapted_rows(NAME, family, MetaCase("maml", 0.1, 3e-3, -1.0), options, setting, -2.5),
        *adapted_rows(NAME, family, MetaCase("norml", 1.0, 3e-3, -0.75), options, setting, -2.5),
    ]
