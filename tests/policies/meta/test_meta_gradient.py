"""Policy gradients of first and second order against closed forms."""

import jax
import jax.numpy as jnp
import pytest

from tests.policies.meta.bandit import constant_policy, only_mean, quadratic_bandit, with_mean
from truesim.policies.meta import (
    Experience,
    MetaGradientOptions,
    collect,
    evaluate_adaptation,
    init_maml,
    init_norml,
    init_policy,
    log_density,
    maml,
    meta_gradient,
    norml,
)
from truesim.policies.meta.advantages import dice_surrogate, discounted_returns, score_surrogate

GOAL, MEAN, STD, RATE = 0.8, 0.2, 0.5, 0.2
MANY = 200_000


@pytest.fixture(scope="module")
def samples() -> Experience:
    """Many episodes of the bandit."""
    return collect(quadratic_bandit(GOAL), constant_policy(MEAN, STD), jnp.array(GOAL), jax.random.key(0), MANY)


def derivatives(surrogate, experience):
    """First and second derivative of a surrogate by the mean action."""

    def objective(mean):
        policy = with_mean(constant_policy(MEAN, STD), mean)
        return surrogate(log_density(policy, experience.observations, experience.actions))

    return jax.grad(objective)(MEAN), jax.grad(jax.grad(objective))(MEAN)


def test_dice_is_right_in_both_orders(samples):
    """J(m) = -(m - goal)^2 - std^2 has gradient -2 (m - goal) and second derivative -2."""
    baseline = jnp.full_like(samples.rewards, jnp.mean(samples.rewards))
    first, second = derivatives(lambda logs: dice_surrogate(logs, samples, baseline, 1.0), samples)
    assert first == pytest.approx(-2 * (MEAN - GOAL), abs=0.01)
    assert second == pytest.approx(-2, abs=0.1)


def test_the_score_alone_has_a_wrong_second_derivative(samples):
    """The surrogate `log pi * R` has the right gradient, but a second derivative of -E[R] / std^2: the wrong sign."""
    first, second = derivatives(lambda logs: score_surrogate(logs, samples.rewards), samples)
    assert first == pytest.approx(-2 * (MEAN - GOAL), abs=0.02)
    assert second == pytest.approx(((MEAN - GOAL) ** 2 + STD**2) / STD**2, abs=0.1)


def test_meta_gradient_passes_through_the_adaptation(samples):
    """d/dm of the adapted mean m - 2 rate (m - goal) is 1 - 2 rate."""
    adapt = maml(1.0)

    def adapted_mean(mean):
        policy = with_mean(constant_policy(MEAN, STD), mean)
        return adapt({"policy": policy, "rates": only_mean(policy, RATE)}, samples)["mean"][0][1][0]

    value, derivative = jax.value_and_grad(adapted_mean)(MEAN)
    assert value == pytest.approx(MEAN - 2 * RATE * (MEAN - GOAL), abs=0.01)
    assert derivative == pytest.approx(1 - 2 * RATE, abs=0.03)


def test_discounted_returns():
    """Rewards of later steps count less."""
    assert discounted_returns(jnp.array([[1.0, 2.0, 4.0]]), 0.5).tolist() == [[3.0, 4.0, 4.0]]


def test_norml_uses_no_rewards(samples):
    """Other rewards lead to the same adapted policy; other transitions do not."""
    policy = init_policy(jax.random.key(1), (1, 4, 1))
    parameters = init_norml(jax.random.key(2), policy, (3, 8, 1), 0.5)
    few = jax.tree.map(lambda x: x[:100], samples)
    adapted = norml(parameters, few)
    others = norml(parameters, few._replace(rewards=few.rewards + jax.random.normal(jax.random.key(3), (100, 1))))
    moved = norml(parameters, few._replace(following=few.following + 1.0))
    assert jax.tree.all(jax.tree.map(jnp.array_equal, adapted, others))
    assert not jax.tree.all(jax.tree.map(jnp.array_equal, adapted, moved))


@pytest.mark.parametrize("method", ["maml", "norml"])
def test_training_improves_the_adapted_policy(method):
    """Goals of either sign cannot be reached by one policy: only an adapted one gets near them."""
    family = quadratic_bandit(0.0)._replace(
        draw=lambda key: jnp.sign(jax.random.normal(key)),
        observe=lambda state, hidden: state,
        step=lambda state, action, hidden: (
            state + hidden * action,
            -jnp.sum((state + hidden * action - 2.0) ** 2),
            jnp.array(False),
        ),
    )
    policy = init_policy(jax.random.key(1), (1, 1), 0.0)
    options = MetaGradientOptions(tasks=10, episodes=20, updates=150, outer_rate=0.05, inner_rate=0.1)
    if method == "maml":
        parameters, adapt = init_maml(policy, options.inner_rate), maml(options.discount)
    else:
        parameters, adapt = init_norml(jax.random.key(2), policy, (3, 8, 1), options.inner_rate), norml
    learner = meta_gradient(family, adapt, options)
    state, update = learner.init(parameters), jax.jit(learner.update)
    with jax.numpy_dtype_promotion("standard"):  # optax counts steps in integers
        for k in range(options.updates):
            state, _ = update(state, jax.random.key(k))
    returns = evaluate_adaptation(family, adapt, state.parameters, jax.random.key(9), tasks=40, episodes=20)
    assert jnp.mean(returns.before) < -0.8
    assert jnp.mean(returns.after) > -0.3
