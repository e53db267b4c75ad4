"""Ranges as source files of libraries that train policies."""

import ast
import json
import types

import jax
import mujoco
import numpy as np
import pytest

from tests.identification.recorded import ARM_WRONG, arm_log
from truesim.core.errors import TruesimError
from truesim.files.robots import loads
from truesim.identification.posterior.inference_data import inference_dictionary, write_inference_json
from truesim.identification.posterior.laplace import laplace
from truesim.identification.posterior.parameters import ParameterPosterior
from truesim.identification.posterior.ranges import Range
from truesim.identification.posterior.trainer_files import TargetRange, target_ranges, trainer_file
from truesim.identification.problem.build import build
from truesim.identification.problem.options import ProblemOptions
from truesim.identification.solve.stages import solve_problem

SERVO = """<mujoco><worldbody><body name="base"><freejoint/><geom size=".1"/>
  <body name="arm"><joint name="turn" damping=".5"/><geom name="pad" size=".1"/></body></body></worldbody>
  <actuator><position name="motor" joint="turn" kp="30" kv="2"/></actuator></mujoco>"""
FOUND = [
    TargetRange("joints", "turn", "damping", None, 0.4, 0.6),
    TargetRange("joints", "turn", "frictionloss", None, 0.1, 0.2),
    TargetRange("bodies", "arm", "mass", None, 1.0, 1.5),
    TargetRange("actuators", "motor", "kp", None, 25.0, 35.0),
    TargetRange("geoms", "pad", "friction", 0, 0.5, 0.9),
    TargetRange("actuators", "motor", "delay", None, 0.01, 0.02),
]


def calls(text, name):
    """Keyword arguments of all calls of a function in a Python text, as source."""
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    own = [node for node in found if ast.unparse(node.func) == name]
    return [{keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords} for node in own]


def test_mjlab_gets_a_term_for_each_number():
    """Absolute ranges by name, both gains of a servo, and a comment for what it has no term for."""
    text = trainer_file("mjlab", loads(SERVO), FOUND, ["the model does not fit"])
    terms = {term["func"]: term["params"] for term in calls(text, "EventTermCfg")}
    assert set(terms) == {
        *("dr.joint_damping", "dr.joint_friction", "dr.body_mass", "dr.pd_gains", "dr.geom_friction"),
    }
    assert "(0.4, 0.6)" in terms["dr.joint_damping"]
    assert "joint_names=('turn',)" in terms["dr.joint_damping"]
    assert "'kp_range': (25, 35), 'kd_range': (2, 2)" in terms["dr.pd_gains"]
    assert "'axes': [0]" in terms["dr.geom_friction"]
    assert "# Warning: the model does not fit" in text
    assert "#   actuators/motor.delay: 0.01 to 0.02" in text


def test_isaac_lab_adds_joint_damping_to_the_servo():
    """PhysX has one damping for both."""
    text = trainer_file("isaaclab", loads(SERVO), FOUND)
    terms = {term["func"]: term["params"] for term in calls(text, "EventTerm")}
    assert "'damping_distribution_params': (2.4, 2.6)" in terms["mdp.randomize_actuator_gains"]
    assert "'friction_distribution_params': (0.1, 0.2)" in terms["mdp.randomize_joint_parameters"]
    assert "'mass_distribution_params': (1, 1.5)" in terms["mdp.randomize_rigid_body_mass"]
    assert "#   geoms/pad.friction[0]: 0.5 to 0.9" in text


def test_the_function_for_playground_randomizes_a_model():
    """It runs as written: values of each field lie within their ranges, others stay."""
    compiled = mujoco.MjModel.from_xml_string(SERVO)
    space: dict = {}
    exec(trainer_file("playground", loads(SERVO), FOUND), space)
    fields = ("dof_damping", "dof_frictionloss", "body_mass", "geom_friction", "actuator_gainprm", "actuator_biasprm")
    model = _Model({name: np.array(getattr(compiled, name)) for name in fields})
    drawn, axes = space["domain_randomize"](model, jax.random.split(jax.random.key(0), 50))
    damping = np.asarray(drawn.dof_damping)
    assert damping.shape == (50, compiled.nv)
    assert (damping[:, :6] == 0).all()
    assert ((damping[:, 6] > 0.4) & (damping[:, 6] < 0.6)).all()
    np.testing.assert_allclose(drawn.body_mass[:, 1], compiled.body_mass[1], rtol=1e-6)
    kp, bias = np.asarray(drawn.actuator_gainprm)[:, 0, 0], np.asarray(drawn.actuator_biasprm)[:, 0]
    assert kp.min() > 25
    assert kp.std() > 1
    np.testing.assert_array_equal(bias[:, 1], -kp)
    np.testing.assert_array_equal(bias[:, 2], -2)
    assert ((np.asarray(drawn.geom_friction)[:, 1, 0] - 0.7).round(1) <= 0.2).all()
    assert axes.dof_damping == 0


class _Model(types.SimpleNamespace):
    """What the written function needs of MJX's model."""

    def __init__(self, values):
        super().__init__(**values)

    def tree_replace(self, values):
        return _Model({**self.__dict__, **values})


jax.tree_util.register_pytree_node(
    _Model,
    lambda model: (tuple(model.__dict__.values()), tuple(model.__dict__)),
    lambda names, values: _Model(dict(zip(names, values, strict=True))),
)


def test_unknown_libraries_are_told():
    """With the nearest name."""
    with pytest.raises(TruesimError, match="mjlab"):
        trainer_file("mjlap", loads(SERVO), FOUND)


def test_a_tied_parameter_has_a_range_for_each_target(tmp_path):
    """One number, two joints; samples for ArviZ have the axes (chain, draw)."""
    tied = ProblemOptions(ties=["joints/*.damping"])
    problem = build(loads(ARM_WRONG), [arm_log()], ["joints/*.damping", "bodies/*.mass"], tied)
    solution = solve_problem(problem)
    posterior = ParameterPosterior(problem, laplace(solution))
    rows = [Range(name, "N", 1.0, 0.1, 0.8, 1.2) for name in problem.parameters.names]
    found = [str(r).partition(":")[0] for r in target_ranges(problem, rows)]
    assert found == [str(target) for parameter in problem.parameters for target in parameter.targets]
    assert len(found) > len(rows)
    content = inference_dictionary(posterior, 7)
    assert {x.shape for x in content["posterior"].values()} == {(1, 7)}
    write_inference_json(tmp_path / "p.json", posterior, 7)
    again = json.loads((tmp_path / "p.json").read_text())
    for name, x in content["posterior"].items():
        np.testing.assert_array_equal(again["posterior"][name], x)
