"""Problems: sharing of kernels, and fitted models."""

import numpy as np

from tests.identification.recorded import ARM_FREE, arm_log
from truesim.identification.problem.fitted import fitted_model
from truesim.identification.solve.normal_equations import point


def test_kernels_serve_other_logs(arm_of):
    """But not another scale of a parameter, another sampling or other channels: a kernel holds those."""
    usual = arm_of(arm_log())
    assert arm_of(arm_log(seed=1), arm_log(0.7, seed=2, name="second")).kernel is usual.kernel
    assert arm_of(arm_log(), bounds={"bodies/lower.mass": (0.1, 2.0)})._twin is not None
    assert arm_of(arm_log(), bounds={"bodies/lower.mass": (0.0, 2.0)})._twin is None
    assert arm_of(arm_log(), channels=["qpos/elbow"])._twin is None
    assert arm_of(arm_log().rows(slice(None, None, 2)))._twin is None


def test_a_shared_kernel_computes_with_its_own_logs(arm_of):
    """Residuals at measured states are those of the log at hand."""
    one, other = arm_of(arm_log()), arm_of(arm_log(seed=1))
    residuals = [point(p, p.parameters.start, p.initial_nodes()).simulated.residual for p in (one, other)]
    assert one.kernel is other.kernel
    assert not np.allclose(residuals[0], residuals[1])


def test_values_of_single_logs_stay_out_of_the_robot(arm_of):
    """The robot file holds what all logs share."""
    problem = arm_of(arm_log(name="a"), per_log={"a": {"joints/elbow.damping": "free"}})
    assert problem.parameters.names[-1] == "joints/elbow.damping@a"
    model = fitted_model(problem, problem.parameters.start + 0.3)
    start = problem.simulator.model
    np.testing.assert_allclose(model.joints.damping[1], start.joints.damping[1], rtol=1e-12)
    np.testing.assert_allclose(model.bodies.mass, np.exp(0.3) * np.asarray(start.bodies.mass))
    assert len(ARM_FREE) == 2
