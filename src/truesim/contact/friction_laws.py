"""Friction as a function of the speed of slip: what part of the normal force it is, times the coefficient.

Every law is zero at rest, rises over a transition speed, and may start higher than it stays (`breakaway`). Sources:
Andersson, Soderberg, Bjorklund (2007); Hollars in Sherman, Seth, Delp (2011); Brown and McPhee (2016).
"""

import abc

import equinox as eqx
import jax.numpy as jnp

from truesim.core.typing import Array, Float

STILL = 1e-12
"""Speed below which bodies do not slip [m/s]."""


class AbstractFrictionLaw(eqx.Module):
    """How friction depends on the speed of slip."""

    @abc.abstractmethod
    def level(
        self, speed: Float[Array, "n"], transition: Float[Array, "n"], breakaway: Float[Array, "n"]
    ) -> Float[Array, "n"]:
        """Friction in parts of the full friction in motion.

        Args:
            speed: Speed of slip [m/s], not negative.
            transition: Speed at which friction is developed [m/s].
            breakaway: Friction at the onset of motion, in parts of the friction in motion.
        """


class CoulombFriction(AbstractFrictionLaw):
    """`tanh(s / s_t)`: the sign of the velocity, smoothed; knows no breakaway."""

    def level(
        self, speed: Float[Array, "n"], transition: Float[Array, "n"], breakaway: Float[Array, "n"]
    ) -> Float[Array, "n"]:
        """One at speed."""
        return jnp.tanh(speed / transition)


class AnderssonFriction(AbstractFrictionLaw):
    """`(1 + (b - 1) exp(-(s / s_t)^p)) tanh(k s / s_t)`."""

    power: Float[Array, ""]
    """How abruptly the breakaway fades (p)."""
    steepness: Float[Array, ""]
    """How much faster than the breakaway fades friction develops (k)."""

    @classmethod
    def of(cls, power: float = 2.0, steepness: float = 4.0) -> "AnderssonFriction":
        """The law with these numbers."""
        return cls(jnp.asarray(power), jnp.asarray(steepness))

    def level(
        self, speed: Float[Array, "n"], transition: Float[Array, "n"], breakaway: Float[Array, "n"]
    ) -> Float[Array, "n"]:
        """From the breakaway to one."""
        x = jnp.maximum(speed / transition, STILL)
        return (1 + (breakaway - 1) * jnp.exp(-(x**self.power))) * jnp.tanh(self.steepness * x)


class HollarsFriction(AbstractFrictionLaw):
    """`min(x, 1) (1 + 2 (b - 1) / (1 + x^2))` with `x = s / s_t`."""

    def level(
        self, speed: Float[Array, "n"], transition: Float[Array, "n"], breakaway: Float[Array, "n"]
    ) -> Float[Array, "n"]:
        """The breakaway at the transition speed."""
        x = speed / transition
        return jnp.minimum(x, 1.0) * (1 + 2 * (breakaway - 1) / (1 + x**2))


class BrownFriction(AbstractFrictionLaw):
    """`tanh(4 x) + (b - 1) x / (x^2 / 4 + 3 / 4)^2` with `x = s / s_t`."""

    def level(
        self, speed: Float[Array, "n"], transition: Float[Array, "n"], breakaway: Float[Array, "n"]
    ) -> Float[Array, "n"]:
        """The breakaway at the transition speed."""
        x = speed / transition
        return jnp.tanh(4 * x) + (breakaway - 1) * x / (x**2 / 4 + 0.75) ** 2


FRICTION_LAWS = (CoulombFriction, AnderssonFriction, HollarsFriction, BrownFriction)
