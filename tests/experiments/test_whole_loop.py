"""The whole loop with a few updates: every part runs, and logs decide the parameters."""

import numpy as np
import pytest

from experiments.whole_loop.__main__ import fitted, run
from truesim.identification.fit import Fit
from truesim.policies.gap import ROLES


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::RuntimeWarning:truesim.identification.regression", "ignore:overflow", "ignore:invalid"
)
def test_all_roles_are_played(tmp_path):
    found = run(tmp_path, seeds=1, steps=20_000, oracle_steps=4096, episodes=1)
    assert set(found.by_role) == set(ROLES)
    values = Fit.load(fitted(tmp_path)).values
    assert float(values["actuators/motor.gain"]) == pytest.approx(0.75, rel=0.08)
    assert float(values["bodies/pendulum.mass"]) == pytest.approx(1.4 * 0.024, rel=0.05)
    assert 0.012 < float(np.asarray(values["actuators/motor.delay"])) < 0.025
