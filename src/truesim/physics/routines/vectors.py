"""Vectors, quaternions (scalar first), rotation matrices (by rows) and spatial vectors (angular first)."""

from collections.abc import Sequence

from truesim.native.loops.functions import atan2
from truesim.native.loops.language import Routine
from truesim.native.loops.values import Operand, Value

Vector = Sequence[Operand]
SMALLEST_SINE = 1e-15
"""Sine of half the angle below which MuJoCo takes x as the axis of a rotation (`mjMINVAL`)."""


def add(a: Vector, b: Vector) -> list[Value]:
    """Sum of two vectors."""
    return [x + y for x, y in zip(a, b, strict=True)]


def subtract(a: Vector, b: Vector) -> list[Value]:
    """Difference of two vectors."""
    return [x - y for x, y in zip(a, b, strict=True)]


def scale(a: Vector, s: Operand) -> list[Value]:
    """Vector times a number."""
    return [x * s for x in a]


def dot(a: Vector, b: Vector) -> Value:
    """Scalar product."""
    total = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + x * y
    return total


def cross(a: Vector, b: Vector) -> list[Value]:
    """Vector product."""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def select(k: Routine, mask: Value, a: Vector, b: Vector) -> list[Value]:
    """`a` in the lanes of a mask, `b` elsewhere."""
    return [k.where(mask, x, y) for x, y in zip(a, b, strict=True)]


def rotate(R: Vector, x: Vector) -> list[Value]:
    """Product of a 3 x 3 matrix with a vector."""
    return [dot(R[3 * i : 3 * i + 3], x) for i in range(3)]


def column(R: Vector, i: int) -> list[Value]:
    """Column of a 3 x 3 matrix."""
    return [R[i], R[3 + i], R[6 + i]]


def rotate_symmetric(R: Vector, six: Vector) -> list[Value]:
    """`R S R'` of a symmetric matrix."""
    xx, yy, zz, xy, xz, yz = six
    rows = [R[3 * i : 3 * i + 3] for i in range(3)]
    turned = [[dot(row, column) for column in ([xx, xy, xz], [xy, yy, yz], [xz, yz, zz])] for row in rows]
    return [dot(turned[i], rows[j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]


def normalize(k: Routine, x: Vector) -> list[Value]:
    """Vector of length one."""
    return scale(x, 1.0 / k.sqrt(dot(x, x)))


def multiply_quaternions(a: Vector, b: Vector) -> list[Value]:
    """Product of two quaternions."""
    return [
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    ]


def conjugate(q: Vector) -> list[Value]:
    """Inverse of a unit quaternion."""
    return [q[0], -q[1], -q[2], -q[3]]


def rotation_axis(k: Routine, q: Vector) -> tuple[Value, list[Value]]:
    """Angle in [0, pi] and axis of the rotation of a quaternion of any length; the axis is x if it does not turn."""
    q = normalize(k, q)
    sine = k.sqrt(dot(q[1:], q[1:]))
    flip = k.where(q[0] < 0.0, k.real(-1.0), 1.0)
    turns = sine >= SMALLEST_SINE
    axis = scale(q[1:], flip / k.where(turns, sine, 1.0))
    return 2.0 * atan2(k, sine, q[0] * flip), [
        k.where(turns, a, k.real(x)) for a, x in zip(axis, (1, 0, 0), strict=True)
    ]


def rotation_matrix(q: Vector) -> list[Value]:
    """Rotation matrix of a unit quaternion."""
    w, x, y, z = q
    ww, xx, yy, zz = w * w, x * x, y * y, z * z
    return [
        ww + xx - yy - zz, 2.0 * (x * y - w * z), 2.0 * (x * z + w * y),
        2.0 * (x * y + w * z), ww - xx + yy - zz, 2.0 * (y * z - w * x),
        2.0 * (x * z - w * y), 2.0 * (y * z + w * x), ww - xx - yy + zz,
    ]  # fmt: skip


def cross_motion(v: Vector, s: Vector) -> list[Value]:
    """Rate of change of a motion vector `s` that moves with spatial velocity `v`."""
    return cross(v[:3], s[:3]) + add(cross(v[:3], s[3:]), cross(v[3:], s[:3]))


def cross_force(v: Vector, f: Vector) -> list[Value]:
    """Rate of change of a force vector `f` that moves with spatial velocity `v`."""
    return add(cross(v[:3], f[:3]), cross(v[3:], f[3:])) + cross(v[:3], f[3:])


def multiply_inertia(i: Vector, v: Vector) -> list[Value]:
    """Spatial inertia times motion vector; the inertia has MuJoCo's ten numbers (xx, yy, zz, xy, xz, yz, m c, m)."""
    return [
        i[0] * v[0] + i[3] * v[1] + i[4] * v[2] - i[8] * v[4] + i[7] * v[5],
        i[3] * v[0] + i[1] * v[1] + i[5] * v[2] + i[8] * v[3] - i[6] * v[5],
        i[4] * v[0] + i[5] * v[1] + i[2] * v[2] - i[7] * v[3] + i[6] * v[4],
        i[8] * v[1] - i[7] * v[2] + i[9] * v[3],
        i[6] * v[2] - i[8] * v[0] + i[9] * v[4],
        i[7] * v[0] - i[6] * v[1] + i[9] * v[5],
    ]
