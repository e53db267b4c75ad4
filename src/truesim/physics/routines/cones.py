"""Cost, force and Hessian of a contact with an elliptic friction cone (MuJoCo documentation, "Computation").

With U = jar * (mu, mu_1, mu_2, ...), N = U_0 and T = |U_1..|, the contact is open (no force) if N >= mu T, in the
quadratic zone if mu N + T <= 0, and slides in between, where the cost is Dm (N - mu T)^2 / 2 with Dm = D_0 / (mu^2 (1
+ mu^2)).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from truesim.native.loops.language import Routine
from truesim.native.loops.values import Value
from truesim.physics.routines.vectors import dot

_TINY = 1e-30
"""Added to T^2, so that its root can be divided by."""


@dataclass(frozen=True)
class ContactZone:
    """Zone of a contact in every lane, and the numbers that all formulas share."""

    is_open: Value
    is_quadratic: Value
    normal: Value
    tangential: Value
    Dm: Value


def zone(k: Routine, normal: Value, tangential: Value, mu: Value, D: Value) -> ContactZone:
    """Zone of a contact from N and T."""
    is_open = normal >= mu * tangential
    is_quadratic = (mu * normal + tangential <= 0.0) & ~is_open
    return ContactZone(is_open, is_quadratic, normal, tangential, D / (mu * mu * (mu * mu + 1.0)))


def force_and_hessian(
    k: Routine, jar: Sequence[Value], D: Sequence[Value], mu: Value, scales: Sequence[Value]
) -> tuple[list[Value], dict[tuple[int, int], Value]]:
    """Force of every row, and the lower triangle of the Hessian W of the cost by `jar`."""
    dim = len(jar)
    U = [jar[i] * scales[i] for i in range(dim)]
    T = k.sqrt(dot(U[1:], U[1:]) + _TINY)
    inverse = 1.0 / T
    z = zone(k, U[0], T, mu, D[0])
    Dm = k.where(z.is_open | z.is_quadratic, 0.0, z.Dm)
    t = [u * inverse for u in U]
    f0 = -(Dm * (U[0] - mu * T) * mu)
    quadratic = [k.where(z.is_quadratic, d, 0.0) for d in D]
    force = [f0 - quadratic[0] * jar[0]]
    force += [-(f0 * t[i] * scales[i]) - quadratic[i] * jar[i] for i in range(1, dim)]
    a = mu * U[0] * inverse
    W = {(0, 0): Dm * mu * mu + quadratic[0]}
    for i in range(1, dim):
        q = Dm * scales[i]
        W[i, 0] = -(q * mu * mu * t[i])
        for j in range(1, i):
            W[i, j] = q * scales[j] * a * t[i] * t[j]
        W[i, i] = q * scales[i] * (mu * mu - a + a * t[i] * t[i]) + quadratic[i]
    return force, W


LINE_NUMBERS = 9
"""Numbers that describe a contact along a search direction."""


def along_line(
    k: Routine, jar: list[Value], Jv: list[Value], D: list[Value], mu: Value, scales: list[Value]
) -> list[Value]:
    """The numbers from which `evaluate_on_line` finds the cost at any step: three of the quadratic zone, N, T^2, Dm."""
    U, V = [x * s for x, s in zip(jar, scales, strict=True)], [x * s for x, s in zip(Jv, scales, strict=True)]
    weighted = [d * x for d, x in zip(D, Jv, strict=True)]
    still = [d * x for d, x in zip(D, jar, strict=True)]
    Dm = D[0] / (mu * mu * (mu * mu + 1.0))
    tangential = [dot(U[1:], U[1:]) + _TINY, dot(U[1:], V[1:]), dot(V[1:], V[1:])]
    return [dot(still, jar) * 0.5, dot(weighted, jar), dot(weighted, Jv), U[0], V[0], *tangential, Dm]


def evaluate_on_line(k: Routine, numbers: list[Value], mu: Value, step: Value) -> tuple[Value, Value, Value]:
    """Cost, derivative and curvature at a step along the search direction."""
    q0, q1, q2, U, V, UU, UV, VV, Dm = numbers
    normal, mixed = U + step * V, UV + step * VV
    T = k.sqrt(UU + step * (UV + mixed))
    inverse = 1.0 / T
    is_open = normal >= mu * T
    is_quadratic = (mu * normal + T <= 0.0) & ~is_open
    T1 = mixed * inverse
    T2 = (VV - T1 * T1) * inverse
    e, e1 = normal - mu * T, V - mu * T1
    cost = k.where(is_quadratic, q0 + step * (q1 + 0.5 * step * q2), 0.5 * Dm * e * e)
    derivative = k.where(is_quadratic, q1 + step * q2, Dm * e * e1)
    curvature = k.where(is_quadratic, q2, Dm * (e1 * e1 - e * mu * T2))
    return tuple(k.where(is_open, 0.0, x) for x in (cost, derivative, curvature))  # type: ignore[return-value]


def cost(k: Routine, jar: list[Value], D: list[Value], mu: Value, scales: list[Value]) -> Value:
    """Cost of a contact."""
    U = [x * s for x, s in zip(jar, scales, strict=True)]
    T = k.sqrt(dot(U[1:], U[1:]) + _TINY)
    z = zone(k, U[0], T, mu, D[0])
    e = U[0] - mu * T
    quadratic = dot([d * x for d, x in zip(D, jar, strict=True)], jar)
    return k.where(z.is_open, 0.0, 0.5 * k.where(z.is_quadratic, quadratic, z.Dm * e * e))
