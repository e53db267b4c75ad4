"""B9b: MAML and NoRML on a cart-pole whose angle sensor has a hidden bias, on a track of 0.2 m."""

from experiments.adaptation.families.cart_pole import cart_pole_bias
from experiments.adaptation.families.memory import with_memory
from experiments.adaptation.meta_training import MetaCase, adapted_rows, fixed_row
from experiments.adaptation.rows import Row, Setting
from truesim.policies.meta import MetaGradientOptions

NAME = "B9b cart-pole with angle bias"


def run(setting: Setting) -> list[Row]:
    """Rows of the benchmark."""
    family = cart_pole_bias(steps=100 if setting.quick else 500)
    options = MetaGradientOptions(tasks=20, episodes=10, discount=0.99, updates=10 if setting.quick else 500)
    fixed = MetaCase("fixed", 0.0, 5e-3, -1.3)
    return [
        fixed_row(NAME, "best memoryless network", family, fixed, options, setting._replace(seeds=1)),
        fixed_row(NAME, "one step of memory", with_memory(family), fixed, options, setting._replace(seeds=1)),
        *adapted_rows(NAME, family, MetaCase("maml", 0.01, 5e-3, -1.3), options, setting, 480.0),
        *adapted_rows(NAME, family, MetaCase("norml", 0.3, 5e-3, -1.3), options, setting, 480.0),
    ]
