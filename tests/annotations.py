"""Run-time checks of annotations: types by beartype, shapes by jaxtyping.

jaxtyping's own decorator binds the arguments of every call to the signature and checks them twice, which took half of
the time of some tests. Here a call is checked once, in a scope in which the names of axes have one size.
"""

import functools
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

import jaxtyping
from beartype import beartype

CHECKED = (
    *("truesim.core", "truesim.math", "truesim.optimize", "truesim.files", "truesim.identification", "truesim.report"),
    *("truesim.cli", "truesim.bridges.mujoco", "truesim.physics.model", "truesim.physics.dynamics"),
    *("truesim.physics.actuators", "truesim.physics.contact", "truesim.physics.parameters"),
)
"""Packages that are checked. Left out: native (minutes per kernel), and simulation, augmentation, blueprint and
PyTorch, whose tests hand in wrong types and whole batches on purpose."""
_scope = jaxtyping.jaxtyped


def check_annotations(packages: Sequence[str] = CHECKED) -> None:
    """Check the annotations of all functions and records of packages that are imported from now on."""
    jaxtyping.jaxtyped = _checked
    jaxtyping.install_import_hook(packages, "beartype.beartype")


def _checked(*, typechecker: Any) -> Callable[[Any], Any]:
    """Decorator in the place of `jaxtyping.jaxtyped`; the type checker is always beartype."""
    return _check


def _check(x: Any) -> Any:
    """A function with its annotations checked, or a class whose fields are."""
    if not inspect.isclass(x):
        return _check_function(x)
    if "__dataclass_fields__" in vars(x) and not hasattr(x.__init__, "checked"):
        x.__init__ = _check_function(x.__init__)
    return x


def _check_function(function: Callable[..., Any]) -> Callable[..., Any]:
    typed: list[Callable[..., Any]] = []  # made at the first call, when every name of the module is known

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if not typed:
            typed.append(beartype(_without_unknown_names(function)))
        with _scope("context"):
            return typed[0](*args, **kwargs)

    checked.checked = True
    return checked


def _without_unknown_names(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without annotations of names that only type checkers import."""
    own = getattr(function, "__annotations__", {})
    known = {name: hint for name, hint in own.items() if _is_known(hint, function.__globals__)}
    if len(known) < len(own):
        function.__annotations__ = known
    return function


def _is_known(hint: Any, names: dict[str, Any]) -> bool:
    try:
        typing.get_type_hints(types.SimpleNamespace(__annotations__={"x": hint}), names)
    except NameError:
        return False
    return True
