"""Rotations in three dimensions: matrices, axis and angle, unit quaternions (scalar first)."""

import jax.numpy as jnp

from truesim.core.typing import Array, Float


def skew(p: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """Matrix of the cross product: `skew(p) @ u = p x u`."""
    x, y, z = p[0], p[1], p[2]
    o = jnp.zeros_like(x)
    return jnp.stack([jnp.stack([o, -z, y]), jnp.stack([z, o, -x]), jnp.stack([-y, x, o])])


def rotation_about(axis: Float[Array, "3"], angle: Float[Array, ""]) -> Float[Array, "3 3"]:
    """Rotation by `angle` [rad] about the unit vector `axis` (Rodrigues).

    R = 1 + sin(angle) K + (1 - cos(angle)) K^2 with K = skew(axis).
    """
    K = skew(axis)
    return jnp.eye(3) + jnp.sin(angle) * K + (1 - jnp.cos(angle)) * (K @ K)


def quaternion_matrix(q: Float[Array, "4"]) -> Float[Array, "3 3"]:
    """Rotation matrix of the unit quaternion `q`."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    return jnp.stack(
        [
            jnp.stack([w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)]),
            jnp.stack([2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)]),
            jnp.stack([2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z]),
        ]
    )


def quaternion_product(p: Float[Array, "4"], q: Float[Array, "4"]) -> Float[Array, "4"]:
    """Quaternion `p q`: rotation by q, then by p."""
    pw, px, py, pz = p[0], p[1], p[2], p[3]
    qw, qx, qy, qz = q[0], q[1], q[2], q[3]
    return jnp.stack(
        [
            pw * qw - px * qx - py * qy - pz * qz,
            pw * qx + px * qw + py * qz - pz * qy,
            pw * qy - px * qz + py * qw + pz * qx,
            pw * qz + px * qy - py * qx + pz * qw,
        ]
    )


def quaternion_conjugate(q: Float[Array, "4"]) -> Float[Array, "4"]:
    """Quaternion of the inverse rotation."""
    return jnp.concatenate([q[:1], -q[1:]])


def normalize(q: Float[Array, " n"]) -> Float[Array, " n"]:
    """`q` scaled to unit length."""
    return q / jnp.sqrt(q @ q)


def quaternion_exp(r: Float[Array, "3"]) -> Float[Array, "4"]:
    """Unit quaternion of the rotation vector `r` [rad], smooth at zero.

    exp(r) = [cos(|r|/2), r sin(|r|/2) / |r|]
    """
    squared = r @ r
    small = squared < 1e-8
    angle = jnp.sqrt(jnp.where(small, 1.0, squared))
    cosine = jnp.where(small, 1 - squared / 8, jnp.cos(angle / 2))
    sine = jnp.where(small, 0.5 - squared / 48, jnp.sin(angle / 2) / angle)
    return jnp.concatenate([cosine[None], sine * r])


def quaternion_log(q: Float[Array, "4"]) -> Float[Array, "3"]:
    """Rotation vector [rad] of the unit quaternion `q`, of at most half a turn, smooth at the identity."""
    q = jnp.where(q[0] < 0, -q, q)
    squared = q[1:] @ q[1:]
    small = squared < 1e-8
    sine = jnp.sqrt(jnp.where(small, 1.0, squared))
    scale = jnp.where(small, 2 + squared / 3, 2 * jnp.arctan2(sine, q[0]) / sine)
    return scale * q[1:]


def matrix_quaternion(R: Float[Array, "3 3"]) -> Float[Array, "4"]:
    """Unit quaternion of the rotation matrix `R`, with a positive scalar part; well conditioned at every angle.

    The four-by-four matrix below is 4 q q^T; its row with the largest diagonal entry is q up to scale.
    """
    (a, b, c), (d, e, f), (g, h, i) = R
    outer = jnp.stack(
        [
            jnp.stack([1 + a + e + i, h - f, c - g, d - b]),
            jnp.stack([h - f, 1 + a - e - i, b + d, c + g]),
            jnp.stack([c - g, b + d, 1 - a + e - i, f + h]),
            jnp.stack([d - b, c + g, f + h, 1 - a - e + i]),
        ]
    )
    q = normalize(outer[jnp.argmax(jnp.diagonal(outer))])
    return jnp.where(q[0] < 0, -q, q)
