"""Elementary functions as vector code, accurate to 2 ulp over their whole range.

Each function builds graph nodes for one number in float64. For float32 the same code runs in float64 with shorter
polynomials and is rounded at the end.
"""

from collections.abc import Callable

from truesim.native.lowering.algebra import Algebra
from truesim.native.lowering.elementary import error, exponential, inverse, logarithmic, trigonometric
from truesim.native.lowering.elementary.numbers import Expression, Scope
from truesim.native.lowering.types import F32, F64


def rsqrt(s: Scope, x: Expression) -> Expression:
    """Reciprocal of the square root."""
    return 1.0 / s.sqrt(x)


FUNCTIONS: dict[str, Callable[..., Expression]] = {
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "tan": trigonometric.tan,
    "asin": inverse.asin,
    "acos": inverse.acos,
    "atan": inverse.atan,
    "atan2": inverse.atan2,
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "sinh": exponential.sinh,
    "cosh": exponential.cosh,
    "tanh": exponential.tanh,
    "logistic": exponential.logistic,
    "log": logarithmic.log,
    "log1p": logarithmic.log1p,
    "pow": logarithmic.pow,
    "cbrt": logarithmic.cbrt,
    "asinh": logarithmic.asinh,
    "acosh": logarithmic.acosh,
    "atanh": logarithmic.atanh,
    "erf": error.erf,
    "rsqrt": rsqrt,
}
"""Elementary functions by the name of their JAX primitive."""


def apply(graph: Algebra, has_fma: bool, name: str, *args: int) -> int:
    """Node of an elementary function of nodes of one floating-point type."""
    dtype = graph.scalar(args[0])
    scope = Scope(graph, has_fma, short=dtype is F32)
    numbers = [Expression(scope, graph.convert(a, F64)) for a in args]
    return graph.convert(FUNCTIONS[name](scope, *numbers).node, dtype)
