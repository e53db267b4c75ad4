"""Benchmarks of adaptation: figures from returns, settling of estimates, and rollouts that are simulated in pieces."""

import dataclasses
import re

import numpy as np
import pytest

from experiments.adaptation import furuta, hopper
from experiments.adaptation.online import LateTruth, settling_steps, unknown_cart_pole
from experiments.adaptation.rows import Setting, make_row
from experiments.line_chart import BOTTOM, HEIGHT, TOP, Line, draw_lines
from truesim.core.precision import float32
from truesim.policies import Environment, TrainedPolicy
from truesim.policies.adaptation import ConditionedPolicy, TaskBench, held_out_task
from truesim.policies.networks import Normalizer, make_layers


def test_rows_have_the_interval_of_trainings_and_tasks():
    """The mean of trainings, and an interval that holds it and shrinks with more of them."""
    rng = np.random.default_rng(0)
    few, many = (make_row("b", "m", [rng.normal(3.0, 1.0, 20) for _ in range(count)]) for count in (3, 12))
    assert few.low < few.value < few.high
    assert many.high - many.low < 0.8 * (few.high - few.low)
    assert (many.seeds, few.seeds) == (12, 3)


def test_seeds_are_computed_in_order():
    assert Setting(seeds=3).over_seeds(lambda shared, seed: shared + seed, 10) == [10, 11, 12]
    assert Setting(quick=True, seeds=3).over_seeds(lambda shared, seed: seed) == [0]


def test_estimates_settle_when_their_error_has_fallen():
    """An error that falls by a tenth in 20 steps settles there; what the motion does not show does not count."""
    steps = np.arange(100)
    shown = 0.1 + 0.9 * np.exp(-steps / (20 / np.log(10)))
    errors = np.stack([shown, np.full(100, 0.5)], axis=1)
    assert settling_steps(errors) == pytest.approx(20, abs=1)
    assert np.isnan(settling_steps(errors[:, 1:]))


@pytest.mark.slow
def test_late_truth_is_that_of_some_steps_before():
    """Told parameters follow a change by as many control steps; at the start they are told at once."""
    task, rng = unknown_cart_pole(0.1), np.random.default_rng(0)
    ends = -np.ones(4), np.ones(4)
    fields = (task, make_layers(rng, (9, 8, 1), 0.1), "tanh", None, None, *ends)
    now, late = (
        Environment(policy.told_task, 2) for policy in (ConditionedPolicy(*fields), LateTruth(*fields, delay=3))
    )
    with float32():
        told = []
        for environment in (now, late):
            episodes, outcome = environment.reset(0)
            rows = [outcome.observation[:, 5:]]
            for _ in range(12):
                episodes, outcome = environment.step(episodes, np.zeros((2, 1), np.float32))
                rows.append(outcome.observation[:, 5:])
            told.append(np.array(rows))
    assert np.abs(np.diff(told[0], axis=0)).max() > 0.1
    np.testing.assert_array_equal(told[1][0], told[0][0])
    np.testing.assert_array_equal(told[1][4:], told[0][1:-3])


@pytest.fixture(scope="module")
def swinger():
    """The Furuta task with a delay of one time step, and an untrained policy."""
    task = dataclasses.replace(furuta.furuta_task(), latency=(0.005, 0.005))
    layers = make_layers(np.random.default_rng(0), (5, 8, 1), 0.05)
    return task, TrainedPolicy(layers, Normalizer.identity(5), "tanh", {"actions": {"limit": 1.0}})


@pytest.mark.slow
def test_pieces_repeat_under_the_true_parameters(swinger):
    """From measured instants the simulator does what it did, late actions included; with other masses it does not."""
    task, policy = swinger
    mean = furuta.prior(task).mean
    real = held_out_task(task, dict(zip(furuta.PRIOR, mean.tolist(), strict=True)), latency=task.latency)
    pieces = furuta.recorded(real, policy, seed=3)
    assert pieces.measured.shape == (18, furuta.PIECE, 4)
    cost = furuta.PieceCost(task, 3)(policy, pieces, np.stack([mean, 1.1 * mean, 1.3 * mean]))
    assert pieces.counts.sum() > 9
    assert cost[0] < 1e-3 * cost[1]
    assert cost[1] < cost[2]


@pytest.mark.slow
def test_the_real_hopper_is_another_one():
    """Contact, friction, payload and latency differ from every hopper of training."""
    task, real = hopper.compliant_hopper(), hopper.real_hopper()
    assert type(task.simulator.contact) is not type(real.simulator.contact)
    assert (
        float(real.simulator.read("geoms/foot.friction[0]"))
        < task.randomization.distributions[hopper.FRICTION].numbers[0]
    )
    assert real.latency[1] > task.latency[1]
    layers = make_layers(np.random.default_rng(0), (12, 8, 3), 1.0)
    policy = TrainedPolicy(layers, Normalizer.identity(12), "tanh", {"actions": {"limit": 1.0}})
    assert np.all(np.isfinite(TaskBench(real, evaluated=2).evaluate(policy)))


def test_charts_shade_intervals(tmp_path):
    """A line with an interval has a band, one without has none, and axes reach to the ends of intervals."""
    x, y = np.arange(3.0), np.array([0.0, 0.5, 0.6])
    draw_lines(tmp_path / "c.svg", "t", ("x", "y"), [Line("a", x, y, y - 0.1, y + 0.3), Line("b", x, y)])
    text = (tmp_path / "c.svg").read_text()
    assert text.count("<polygon") == 1
    assert text.count("<polyline") == 2
    band = re.search(r'polygon points="([^"]*)"', text)[1]
    heights = [float(point.partition(",")[2]) for point in band.split()]
    assert (min(heights), max(heights)) == (TOP, HEIGHT - BOTTOM)
    assert [tick for tick in ("-0.1", "0", "0.2", "0.8", "1") if f">{tick}<" in text] == ["0", "0.2", "0.8", "1"]
