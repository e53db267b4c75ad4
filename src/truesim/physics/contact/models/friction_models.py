"""Friction models: friction relative to full sliding friction, as a function of the slip speed.

Every model is zero at rest, rises over a transition speed, and may peak above sliding friction (`breakaway`). Sources:
Andersson, Soderberg, Bjorklund (2007); Hollars in Sherman, Seth, Delp (2011); Brown and McPhee (2016).
"""

import abc

import equinox as eqx
import jax.numpy as jnp

from truesim.core.typing import Array, Float

MIN_SLIP_SPEED = 1e-12
"""Slip speed below which friction is regularized [m/s]."""


class AbstractFrictionModel(eqx.Module):
    """Friction as a function of the slip speed."""

    @abc.abstractmethod
    def level(
        self, speed: Float[Array, " n"], transition: Float[Array, " n"], breakaway: Float[Array, " n"]
    ) -> Float[Array, " n"]:
        """Friction relative to full sliding friction.

        Args:
            speed: Slip speed [m/s], not negative.
            transition: Speed at which friction is developed [m/s].
            breakaway: Friction at the onset of motion, relative to sliding friction.
        """


class CoulombFriction(AbstractFrictionModel):
    """`tanh(s / s_t)`: a smoothed sign function, without breakaway."""

    def level(
        self, speed: Float[Array, " n"], transition: Float[Array, " n"], breakaway: Float[Array, " n"]
    ) -> Float[Array, " n"]:
        """Rises from zero to one."""
        return jnp.tanh(speed / transition)


class AnderssonFriction(AbstractFrictionModel):
    """`(1 + (b - 1) exp(-(s / s_t)^p)) tanh(k s / s_t)`."""

    power: Float[Array, ""]
    """Exponent of the decay of the breakaway (p); larger is more abrupt."""
    steepness: Float[Array, ""]
    """Rate at which friction rises, relative to the decay of the breakaway (k)."""

    @classmethod
    def of(cls, power: float = 2.0, steepness: float = 4.0) -> "AnderssonFriction":
        """Friction with these parameters."""
        return cls(jnp.asarray(power), jnp.asarray(steepness))

    def level(
        self, speed: Float[Array, " n"], transition: Float[Array, " n"], breakaway: Float[Array, " n"]
    ) -> Float[Array, " n"]:
        """Falls from the breakaway to one."""
        x = jnp.maximum(speed / transition, MIN_SLIP_SPEED)
        return (1 + (breakaway - 1) * jnp.exp(-(x**self.power))) * jnp.tanh(self.steepness * x)


class HollarsFriction(AbstractFrictionModel):
    """`min(x, 1) (1 + 2 (b - 1) / (1 + x^2))` with `x = s / s_t`."""

    def level(
        self, speed: Float[Array, " n"], transition: Float[Array, " n"], breakaway: Float[Array, " n"]
    ) -> Float[Array, " n"]:
        """Equals the breakaway at the transition speed."""
        x = speed / transition
        return jnp.minimum(x, 1.0) * (1 + 2 * (breakaway - 1) / (1 + x**2))


class BrownFriction(AbstractFrictionModel):
    """`tanh(4 x) + (b - 1) x / (x^2 / 4 + 3 / 4)^2` with `x = s / s_t`."""

    def level(
        self, speed: Float[Array, " n"], transition: Float[Array, " n"], breakaway: Float[Array, " n"]
    ) -> Float[Array, " n"]:
        """Equals the breakaway at the transition speed."""
        x = speed / transition
        return jnp.tanh(4 * x) + (breakaway - 1) * x / (x**2 / 4 + 0.75) ** 2
