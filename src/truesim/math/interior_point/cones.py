"""Friction cones: forces that oppose slip, within a bound, as complementarity conditions.

With `bound` the largest friction force and u the slip velocity, the force f is the point of the cone that dissipates
the most power: `min f.u`. Both cones are pairs of a force and a speed whose products equal the barrier `kappa`: a
positive `kappa` smooths friction, `kappa -> 0` gives Coulomb friction.

All functions are batched over the first axis.
"""

import abc
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float

WARM_START_FRACTION = 0.99
"""Largest force at a warm start, relative to the boundary of the cone; larger is closer to the boundary."""


class Slip(NamedTuple):
    """State, residual or step of the cones."""

    force: Float[Array, "cones m"]
    """Coordinates of the force."""
    speed: Float[Array, " cones"]
    """Multiplier of the bound: the slip speed."""


class Elimination(NamedTuple):
    """Newton step of the force: `constant + by_bound dbound - by_slip du`."""

    constant: Float[Array, "cones d"]
    by_bound: Float[Array, "cones d"]
    by_slip: Float[Array, "cones d d"]


class AbstractCone(eqx.Module):
    """Set of admissible friction forces."""

    @abc.abstractmethod
    def coordinates(self, d: int) -> int:
        """Number of force coordinates for d slip directions."""

    @abc.abstractmethod
    def start(self, bound: Float[Array, " c"], u: Float[Array, "c d"], kappa: Float[Array, " c"]) -> Slip:
        """Cold start: a state inside the cone near the solution for this barrier."""

    @abc.abstractmethod
    def resume(
        self, force: Float[Array, "c m"], bound: Float[Array, " c"], u: Float[Array, "c d"], kappa: Float[Array, " c"]
    ) -> Slip:
        """Warm start: a state inside the cone near a force, with products of about this barrier."""

    @abc.abstractmethod
    def force(self, slip: Slip) -> Float[Array, "c d"]:
        """Force along the slip directions."""

    @abc.abstractmethod
    def products(self, slip: Slip, bound: Float[Array, " c"], u: Float[Array, "c d"]) -> Slip:
        """Complementary products, which equal `rounding(kappa)` at the solution."""

    @abc.abstractmethod
    def rounding(self, kappa: Float[Array, " c"]) -> Slip:
        """Values of `products` at the solution."""

    @abc.abstractmethod
    def corrections(self, step: Slip, dbound: Float[Array, " c"], du: Float[Array, "c d"]) -> Slip:
        """Second-order terms of `products` along a step."""

    @abc.abstractmethod
    def eliminate(
        self, slip: Slip, bound: Float[Array, " c"], u: Float[Array, "c d"], residual: Slip
    ) -> tuple[Elimination, Float[Array, " c"]]:
        """Step of the force as a function of the steps of bound and slip, and a coefficient for `step`."""

    @abc.abstractmethod
    def step(
        self, slip: Slip, state: tuple[Array, Array], residual: Slip, change: tuple[Array, Array], pivot: Array
    ) -> Slip:
        """Step of the cone's state for steps `change` of bound and slip at their values `state`."""

    @abc.abstractmethod
    def reach(
        self, slip: Slip, state: tuple[Array, Array], step: Slip, change: tuple[Array, Array]
    ) -> Float[Array, " c"]:
        """Number of such steps to the boundary."""


class EllipticCone(AbstractCone):
    """Forces with `|f| <= bound`: a round cone after each direction is scaled by its friction coefficient.

    `bound speed + f.u = kappa` and `bound u + speed f = 0`: second-order-cone complementarity of (bound, f) and
    (speed, u). Eliminated, `f = -bound u / speed` with `speed = (w + sqrt(w^2 + 4 |u|^2)) / 2`, `w = kappa / bound`.
    """

    def coordinates(self, d: int) -> int:
        """One for each slip direction."""
        return d

    def start(self, bound: Float[Array, " c"], u: Float[Array, "c d"], kappa: Float[Array, " c"]) -> Slip:
        """Solution for this slip and barrier."""
        width = kappa / bound
        speed = (width + jnp.sqrt(width**2 + 4 * _dot(u, u))) / 2
        return Slip(-(bound / speed)[:, None] * u, speed)

    def resume(
        self, force: Float[Array, "c m"], bound: Float[Array, " c"], u: Float[Array, "c d"], kappa: Float[Array, " c"]
    ) -> Slip:
        """Force, scaled into the cone; the speed is above the slip speed."""
        size = jnp.sqrt(_dot(force, force) + jnp.finfo(force.dtype).tiny)
        force = force * jnp.minimum(1.0, WARM_START_FRACTION * bound / size)[:, None]
        still = kappa * bound / (bound**2 - _dot(force, force))
        return Slip(force, jnp.maximum(still, kappa / bound + jnp.sqrt(_dot(u, u)) / WARM_START_FRACTION))

    def force(self, slip: Slip) -> Float[Array, "c d"]:
        """Force coordinates."""
        return slip.force

    def products(self, slip: Slip, bound: Float[Array, " c"], u: Float[Array, "c d"]) -> Slip:
        """`bound u + speed f` and `bound speed + f.u`."""
        return Slip(bound[:, None] * u + slip.speed[:, None] * slip.force, bound * slip.speed + _dot(slip.force, u))

    def rounding(self, kappa: Float[Array, " c"]) -> Slip:
        """`0` and `kappa`."""
        return Slip(jnp.zeros((1, 1)), kappa)

    def corrections(self, step: Slip, dbound: Float[Array, " c"], du: Float[Array, "c d"]) -> Slip:
        """Products of the steps: the products are bilinear."""
        return self.products(step, dbound, du)

    def eliminate(
        self, slip: Slip, bound: Float[Array, " c"], u: Float[Array, "c d"], residual: Slip
    ) -> tuple[Elimination, Float[Array, " c"]]:
        """Eliminate the speed, then the force."""
        f, speed = slip
        pivot = bound - _dot(u, f) / speed
        lead, by_bound, by_slip = self._speed(slip, bound, u, residual)
        turned = f / (pivot * speed)[:, None]
        identity = jnp.eye(u.shape[1])[None]
        return Elimination(
            constant=-residual.force / speed[:, None] - turned * lead[:, None],
            by_bound=-u / speed[:, None] - turned * by_bound[:, None],
            by_slip=(bound / speed)[:, None, None] * identity + turned[:, :, None] * by_slip[:, None, :],
        ), pivot

    def step(
        self, slip: Slip, state: tuple[Array, Array], residual: Slip, change: tuple[Array, Array], pivot: Array
    ) -> Slip:
        """Back substitution: the speed, then the force."""
        (bound, u), (dbound, du) = state, change
        lead, by_bound, by_slip = self._speed(slip, bound, u, residual)
        dspeed = (lead + by_bound * dbound + _dot(by_slip, du)) / pivot
        moved = residual.force + u * dbound[:, None] + bound[:, None] * du + slip.force * dspeed[:, None]
        return Slip(-moved / slip.speed[:, None], dspeed)

    def reach(
        self, slip: Slip, state: tuple[Array, Array], step: Slip, change: tuple[Array, Array]
    ) -> Float[Array, " c"]:
        """Both (bound, f) and (speed, u) stay in the cone."""
        (bound, u), (dbound, du) = state, change
        return jnp.minimum(_to_cone(bound, dbound, slip.force, step.force), _to_cone(slip.speed, step.speed, u, du))

    @staticmethod
    def _speed(slip: Slip, bound: Array, u: Array, residual: Slip) -> tuple[Array, Array, Array]:
        """`pivot dspeed = lead + by_bound dbound + by_slip.du`, with the force eliminated."""
        f, speed = slip
        lead = -residual.speed + _dot(u, residual.force) / speed
        return lead, _dot(u, u) / speed - speed, (bound / speed)[:, None] * u - f


class PolyhedralCone(AbstractCone):
    """Forces within a polygon (Anitescu and Potra, 1997), exact along its corners.

    With `f = sum_i x_i d_i`: `x_i (speed + d_i.u) = kappa` and `speed (bound - sum x) = kappa`.
    """

    count: int = eqx.field(static=True, default=4)
    """Number of corners."""

    def coordinates(self, d: int) -> int:
        """One for each corner of the polygon."""
        return len(self.directions(d))

    def directions(self, d: int) -> Float[np.ndarray, "m d"]:
        """Unit vectors of the polygon's corners; both signs for a single slip direction."""
        if d == 1:
            return np.array([[1.0], [-1.0]])
        angles = 2 * np.pi * np.arange(self.count) / self.count
        corners = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return np.round(corners, 15)

    def start(self, bound: Float[Array, " c"], u: Float[Array, "c d"], kappa: Float[Array, " c"]) -> Slip:
        """Coordinates below their share of the bound."""
        along = self._along(u)
        count = along.shape[1]
        speed = jnp.max(jnp.abs(along), axis=1) + (count + 1) * kappa / bound
        return Slip(kappa[:, None] / (speed[:, None] + along), speed)

    def resume(
        self, force: Float[Array, "c m"], bound: Float[Array, " c"], u: Float[Array, "c d"], kappa: Float[Array, " c"]
    ) -> Slip:
        """Coordinates, scaled into the polygon; the speed is above the slip speed."""
        total = jnp.sum(force, axis=1)
        force = force * jnp.minimum(1.0, WARM_START_FRACTION * bound / total)[:, None]
        still = kappa / (bound - jnp.sum(force, axis=1))
        fastest = jnp.max(jnp.abs(self._along(u)), axis=1)
        return Slip(force, jnp.maximum(still, kappa / bound + fastest / WARM_START_FRACTION))

    def force(self, slip: Slip) -> Float[Array, "c d"]:
        """Sum over the corners."""
        d = 1 if slip.force.shape[1] == 2 else 2
        return slip.force @ self.directions(d)

    def products(self, slip: Slip, bound: Float[Array, " c"], u: Float[Array, "c d"]) -> Slip:
        """`x_i (speed + d_i.u)` and `speed (bound - sum x)`."""
        x, speed = slip
        return Slip(x * (speed[:, None] + self._along(u)), speed * (bound - jnp.sum(x, axis=1)))

    def rounding(self, kappa: Float[Array, " c"]) -> Slip:
        """`kappa` everywhere."""
        return Slip(kappa[:, None], kappa)

    def corrections(self, step: Slip, dbound: Float[Array, " c"], du: Float[Array, "c d"]) -> Slip:
        """Products of the steps: the products are bilinear."""
        return self.products(step, dbound, du)

    def eliminate(
        self, slip: Slip, bound: Float[Array, " c"], u: Float[Array, "c d"], residual: Slip
    ) -> tuple[Elimination, Float[Array, " c"]]:
        """Eliminate the coordinates, then the speed."""
        d = self.directions(u.shape[1])
        x, speed = slip
        slack = speed[:, None] + self._along(u)
        weight = x / slack
        pivot = bound - jnp.sum(x, axis=1) + speed * jnp.sum(weight, axis=1)
        pull = weight @ d
        lead = -residual.speed - speed * jnp.sum(residual.force / slack, axis=1)
        ratio = speed / pivot
        outer = jnp.einsum("ci,ij,ik->cjk", weight, d, d)
        return Elimination(
            constant=-(residual.force / slack) @ d - pull * (lead / pivot)[:, None],
            by_bound=pull * ratio[:, None],
            by_slip=outer - ratio[:, None, None] * pull[:, :, None] * pull[:, None, :],
        ), pivot

    def step(
        self, slip: Slip, state: tuple[Array, Array], residual: Slip, change: tuple[Array, Array], pivot: Array
    ) -> Slip:
        """Back substitution: the speed, then the coordinates."""
        (_, u), (dbound, du) = state, change
        x, speed = slip
        slack = speed[:, None] + self._along(u)
        moved = residual.force + x * self._along(du)
        dspeed = (-residual.speed - speed * (dbound + jnp.sum(moved / slack, axis=1))) / pivot
        return Slip(-(moved + x * dspeed[:, None]) / slack, dspeed)

    def reach(
        self, slip: Slip, state: tuple[Array, Array], step: Slip, change: tuple[Array, Array]
    ) -> Float[Array, " c"]:
        """Every coordinate, slack and the speed stay positive."""
        (bound, u), (dbound, du) = state, change
        (x, speed), (dx, dspeed) = slip, step
        pairs = jnp.concatenate([x, speed[:, None] + self._along(u), (bound - jnp.sum(x, axis=1))[:, None]], axis=1)
        steps = jnp.concatenate(
            [dx, dspeed[:, None] + self._along(du), (dbound - jnp.sum(dx, axis=1))[:, None]], axis=1
        )
        return jnp.minimum(jnp.min(to_zero(pairs, steps), axis=1), to_zero(speed, dspeed))

    def _along(self, u: Float[Array, "c d"]) -> Float[Array, "c m"]:
        """Slip along each direction."""
        return u @ self.directions(u.shape[1]).T


def to_zero(x: Float[Array, "*n"], step: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Number of steps that bring a positive number to zero; infinite if it grows."""
    falling = step < 0
    return jnp.where(falling, -x / jnp.where(falling, step, -1.0), jnp.inf)


def _to_cone(r: Array, dr: Array, x: Float[Array, "c d"], dx: Float[Array, "c d"]) -> Float[Array, " c"]:
    """Number of steps to the boundary of `|x| <= r`: the smallest positive root of `c + 2 b t + a t^2`.

    A double root counts, whatever sign rounding gives its discriminant.
    """
    a, b, c = dr**2 - _dot(dx, dx), r * dr - _dot(x, dx), r**2 - _dot(x, x)
    discriminant = b**2 - a * c
    below = -b + jnp.sqrt(jnp.maximum(discriminant, 0.0))
    misses = discriminant < -1e-6 * b**2
    root = c / jnp.maximum(below, jnp.finfo(below.dtype).tiny)
    return jnp.minimum(jnp.where(misses, jnp.inf, root), to_zero(r, dr))


def _dot(x: Float[Array, "c d"], y: Float[Array, "c d"]) -> Float[Array, " c"]:
    return jnp.sum(x * y, axis=1)
