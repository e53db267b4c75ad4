"""Operations on graph nodes for writing elementary functions, each rounded separately.

Unlike the program's own arithmetic, none of these operations may be fused or rearranged: the functions rely on the
rounding of each one. `Scope.multiply_add` is a fused multiply-add where the hardware has it and two operations
elsewhere. Pairs of expressions hold values to twice the precision.
"""

from collections.abc import Callable

from truesim.native.lowering.algebra import Algebra
from truesim.native.lowering.types import BOOL, F64, I64, ScalarType

Real = int | float
"""A Python number."""
Pair = tuple["Expression", "Expression"]
"""Unevaluated sum of two expressions, the second much smaller."""

_ROUNDER = 1.5 * 2.0**52
"""Adding it rounds to an integer, which appears in the low bits of the sum."""
_SPLITTER = 2.0**27 + 1


class Expression:
    """A node with operators. Comparisons give boolean expressions."""

    __slots__ = ("node", "scope")

    def __init__(self, scope: "Scope", node: int):
        self.scope = scope
        self.node = node

    def _with(self, op: str, other: "Expression | Real") -> "Expression":
        right = self.scope.number(other, self.type)
        return Expression(self.scope, self.scope.graph.apply(op, self.node, right.node))

    @property
    def type(self) -> ScalarType:
        """Type of the node."""
        return self.scope.graph.scalar(self.node)

    def is_literal(self, value: Real) -> bool:
        """True when the expression is this constant."""
        return self.scope.graph.is_const(self.node, value)

    def __add__(self, other: "Expression | Real") -> "Expression":
        right = self.scope.number(other, self.type)
        if right.is_literal(0) or self.is_literal(0):
            return self if right.is_literal(0) else right
        return self._with("exact_add" if self.type is F64 else "add", right)

    def __sub__(self, other: "Expression | Real") -> "Expression":
        right = self.scope.number(other, self.type)
        return self if right.is_literal(0) else self._with("exact_sub" if self.type is F64 else "sub", right)

    def __mul__(self, other: "Expression | Real") -> "Expression":
        right = self.scope.number(other, self.type)
        if right.is_literal(0) or self.is_literal(0):
            return right if right.is_literal(0) else self
        return self._with("exact_mul" if self.type is F64 else "mul", right)

    def __truediv__(self, other: "Expression | Real") -> "Expression":
        return self._with("div", other)

    def __radd__(self, other: Real) -> "Expression":
        return self.scope.number(other, self.type) + self

    def __rsub__(self, other: Real) -> "Expression":
        return self.scope.number(other, self.type) - self

    def __rmul__(self, other: Real) -> "Expression":
        return self * other

    def __rtruediv__(self, other: Real) -> "Expression":
        return self.scope.number(other, self.type) / self

    def __neg__(self) -> "Expression":
        return Expression(self.scope, self.scope.graph.neg(self.node))

    def __and__(self, other: "Expression | int") -> "Expression":
        right = self.scope.number(other, self.type)
        return Expression(self.scope, self.scope.graph.logical_and(self.node, right.node))

    def __or__(self, other: "Expression | int") -> "Expression":
        right = self.scope.number(other, self.type)
        return Expression(self.scope, self.scope.graph.logical_or(self.node, right.node))

    def __xor__(self, other: "Expression | int") -> "Expression":
        return self._with("xor", other)

    def __lshift__(self, amount: int) -> "Expression":
        return self._with("shl", amount)

    def __rshift__(self, amount: int) -> "Expression":
        """Logical shift."""
        return self._with("shr_logical", amount)

    def _compare(self, op: str, other: "Expression | Real") -> "Expression":
        right = self.scope.number(other, self.type)
        return Expression(self.scope, self.scope.graph.compare(op, self.node, right.node))

    def __lt__(self, other: "Expression | Real") -> "Expression":
        return self._compare("lt", other)

    def __le__(self, other: "Expression | Real") -> "Expression":
        return self._compare("le", other)

    def __gt__(self, other: "Expression | Real") -> "Expression":
        return self._compare("gt", other)

    def __ge__(self, other: "Expression | Real") -> "Expression":
        return self._compare("ge", other)

    def equals(self, other: "Expression | Real") -> "Expression":
        """Boolean: both values are equal."""
        return self._compare("eq", other)

    def is_nan(self) -> "Expression":
        """Boolean: not a number."""
        return self._compare("ne", self)

    def __invert__(self) -> "Expression":
        return Expression(self.scope, self.scope.graph.logical_not(self.node))

    def __abs__(self) -> "Expression":
        return Expression(self.scope, self.scope.graph.apply("abs", self.node))

    def bits(self) -> "Expression":
        """Bits of the value as an integer."""
        return Expression(self.scope, self.scope.graph.bitcast(self.node, I64))

    def as_float(self) -> "Expression":
        """Float with these bits."""
        return Expression(self.scope, self.scope.graph.bitcast(self.node, F64))


class Scope:
    """Context of expressions: the graph, the hardware and the required precision.

    A *short* scope is for float32: values are computed in float64, so that pairs need no second part.
    """

    def __init__(self, graph: Algebra, has_fma: bool, short: bool = False):
        self.graph = graph
        self.has_fma = has_fma
        self.short = short

    def number(self, value: Expression | Real, dtype: ScalarType = F64) -> Expression:
        """Convert a value to an expression."""
        return value if isinstance(value, Expression) else Expression(self, self.graph.const(value, dtype))

    def boolean(self, value: bool) -> Expression:
        """Constant condition."""
        return Expression(self, self.graph.const(value, BOOL))

    def select(self, condition: Expression, a: Expression | Real, b: Expression | Real) -> Expression:
        """`a` where the condition holds, else `b`."""
        first, second = self.number(a), self.number(b)
        return Expression(self, self.graph.select(condition.node, first.node, second.node))

    def sqrt(self, x: Expression) -> Expression:
        """Square root."""
        return Expression(self, self.graph.apply("sqrt", x.node))

    def with_sign(self, magnitude: Expression, sign: Expression) -> Expression:
        """Magnitude, which is not negative, with the sign of another expression."""
        return (magnitude.bits() | (sign.bits() & -(2**63))).as_float()

    def multiply_add(self, a: Expression | Real, b: Expression | Real, c: Expression | Real) -> Expression:
        """`a * b + c`, rounded once if the hardware can."""
        x, y, z = self.number(a), self.number(b), self.number(c)
        if self.has_fma and not (x.is_literal(0) or y.is_literal(0) or z.is_literal(0)):
            return Expression(self, self.graph.fma(x.node, y.node, z.node))
        return x * y + z

    def polynomial(self, x: Expression, coefficients: tuple[float, ...]) -> Expression:
        """Polynomial with the given coefficients, constant term first."""
        result = self.number(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            result = self.multiply_add(result, x, c)
        return result

    def coefficients(self, full: tuple[float, ...], short: tuple[float, ...]) -> tuple[float, ...]:
        """Coefficients for the precision of this scope."""
        return short if self.short else full

    # Pairs

    def sum(self, a: Expression, b: Expression) -> Pair:
        """`a + b` exactly."""
        total = a + b
        if self.short:
            return total, self.number(0.0)
        part = total - a
        return total, (a - (total - part)) + (b - part)

    def ordered_sum(self, a: Expression, b: Expression) -> Pair:
        """`a + b` exactly, when |a| >= |b|."""
        total = a + b
        return total, self.number(0.0) if self.short else b - (total - a)

    def product(self, a: Expression, b: Expression | Real) -> Pair:
        """`a * b` exactly."""
        y = self.number(b)
        total = a * y
        if self.short:
            return total, self.number(0.0)
        if self.has_fma:
            return total, Expression(self, self.graph.fma(a.node, y.node, (-total).node))
        (ah, al), (bh, bl) = self._halves(a), self._halves(y)
        return total, ((ah * bh - total) + ah * bl + al * bh) + al * bl

    def _halves(self, a: Expression) -> Pair:
        scaled = a * _SPLITTER
        high = scaled - (scaled - a)
        return high, a - high

    def remainder(self, x: Expression, n: Expression, unit: float) -> Expression:
        """`x - n * unit`, for an integer n that leaves a remainder less than the unit: exact."""
        if self.has_fma:
            return Expression(self, self.graph.fma((-n).node, self.number(unit).node, x.node))
        full = Scope(self.graph, self.has_fma)
        p, e = full.product(n, unit)
        return (x - p) - e

    def quotient(self, a: Pair, b: Pair) -> Pair:
        """`a / b` as a pair."""
        q = a[0] / b[0]
        if self.short:
            return q, self.number(0.0)
        p, e = self.product(q, b[0])
        rest = (((a[0] - p) - e) + a[1]) - q * b[1]
        return q, rest / b[0]

    # Integers

    def nearest(self, x: Expression, scale: float) -> tuple[Expression, Expression]:
        """The integer nearest to x * scale: as a float, and as bits whose low part is the integer."""
        shifted = self.multiply_add(x, scale, _ROUNDER)
        return shifted - _ROUNDER, shifted.bits()

    def power_of_two(self, bits: Expression) -> Expression:
        """2**n for the integer in the low bits, -1022 <= n <= 1023."""
        return ((bits << 52) + (1023 << 52)).as_float()

    def rare(
        self,
        condition: Expression,
        usual: Expression,
        x: Expression,
        function: Callable[["Scope", Expression], Expression],
    ) -> Expression:
        """`usual`, except in lanes where the condition holds, which is rare: there, `function(x)`.

        The function is called out of line, and only if a lane needs it.
        """
        key = (function, self.short)
        args = (condition.node, usual.node, x.node)
        if all(self.graph.values[a] is None for a in args):
            return Expression(self, self.graph.node("rare", F64, args, key))
        return self.select(condition, function(self, x), usual)
