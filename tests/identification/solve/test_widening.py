"""Default bounds that an estimate reaches are widened, and those of the user are kept."""

import numpy as np
import pytest

import truesim as ts
from truesim.identification.solve.widening import sizes_at_bounds
from truesim.physics.parameters import free
from truesim.physics.parameters.value_map import ValueMap

XML = """<mujoco><worldbody><body name="rod"><joint name="hinge" axis="0 1 0" damping="0"/>
<inertial pos="0 0 -0.2" mass="1" diaginertia="0.02 0.02 0.002"/></body></worldbody></mujoco>"""


@pytest.fixture
def parameters(tmp_path):
    (tmp_path / "rig.xml").write_text(XML)
    return free(ts.load(tmp_path / "rig.xml"), ("joints/hinge.damping", "bodies/rod.mass"))


def test_values_at_default_bounds_are_named_with_their_sizes(parameters):
    high = parameters.bounds[1]
    sizes = sizes_at_bounds(parameters, ValueMap(parameters).values(high))
    assert sizes == {"joints/hinge.damping": pytest.approx(5.0), "bodies/rod.mass": pytest.approx(50.0)}
    wider = parameters.reaching(sizes)
    assert [float(np.max(p.high)) for p in wider] == pytest.approx([50.0, 500.0])


def test_zero_and_bounds_of_the_user_are_kept(parameters):
    low, high = parameters.bounds
    assert sizes_at_bounds(parameters, ValueMap(parameters).values(low)) == {"bodies/rod.mass": pytest.approx(0.02)}
    assert sizes_at_bounds(parameters, ValueMap(parameters).values(high), ("joints/*.damping", "bodies/*")) == {}
