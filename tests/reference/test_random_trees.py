"""Dynamics of random trees against MuJoCo and Pinocchio, field by field."""

import numpy as np
from hypothesis import given, settings

from tests.evaluation import compiled
from tests.random_trees import random_configuration, seeds, skeletons, tree
from tests.reference.mujoco_fields import our_fields
from tests.reference.peers import assert_agrees_with_both

TREES_PER_SKELETON = 10
"""Trees with the same structure and other numbers, which share one compilation: 20 structures make 200 trees."""


@settings(max_examples=20)
@given(skeletons(largest=4), seeds)
def test_every_field_agrees(skeleton, seed):
    """Poses, Jacobians, velocities, momentum, energy, mass matrix, forces and accelerations are MuJoCo's.

    And Pinocchio's, where it can represent the tree.
    """
    ours = None
    for k in range(TREES_PER_SKELETON):
        m, model = tree(skeleton, seed + k)
        rng = np.random.default_rng(seed + k)
        state = (random_configuration(m, rng), rng.normal(size=m.nv), rng.normal(size=m.nv) * 5)
        inputs = (*state, rng.normal(size=(m.nbody - 1, 6)))
        ours = ours or compiled(our_fields, model, *inputs)
        assert_agrees_with_both(ours(model, *inputs), m, model, inputs)
