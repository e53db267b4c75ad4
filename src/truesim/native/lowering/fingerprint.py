"""Content hashes of jaxprs: equal for equal programs, in any process."""

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jax.extend import core as jex


def fingerprint(closed: jex.ClosedJaxpr) -> bytes:
    """Hash of a closed jaxpr: its equations, types and the values of its constants."""
    return _Hasher().closed(closed)


@cache
def code_version() -> bytes:
    """Hash of the source of the package `native`: object code of another version is never reused."""
    digest = hashlib.sha256()
    folder = Path(__file__).parents[1]
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.digest()


class _Hasher:
    """Hasher of nested jaxprs, which visits each object once."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[object, bytes]] = {}

    def closed(self, closed: jex.ClosedJaxpr) -> bytes:
        digest = hashlib.sha256(self.jaxpr(closed.jaxpr))
        for const in closed.consts:
            digest.update(_array(const))
        return digest.digest()

    def jaxpr(self, jaxpr: jex.Jaxpr) -> bytes:
        known = self._seen.get(id(jaxpr))
        if known is not None:
            return known[1]
        numbers: dict[jex.Var, int] = {}
        words: list[str] = []

        def name(atom: Any) -> str:
            if isinstance(atom, jex.Literal):
                return "=" + _array(atom.val).hex()
            return str(numbers.setdefault(atom, len(numbers)))

        def declare(variables: Iterable[Any]) -> str:
            return " ".join(f"{name(v)}:{v.aval.str_short()}" for v in variables)

        words.append(declare((*jaxpr.constvars, *jaxpr.invars)))
        for eqn in jaxpr.eqns:
            words.append(eqn.primitive.name)
            words += [f"{key}={self.parameter(value)}" for key, value in sorted(eqn.params.items())]
            words.append(" ".join(name(v) for v in eqn.invars))
            words.append(declare(eqn.outvars))
        words.append(" ".join(name(v) for v in jaxpr.outvars))
        result = hashlib.sha256("\n".join(words).encode()).digest()
        self._seen[id(jaxpr)] = (jaxpr, result)
        return result

    def parameter(self, value: Any) -> str:
        """Text of an equation's parameter; functions are ignored, but not their jaxprs."""
        if isinstance(value, jex.ClosedJaxpr):
            return self.closed(value).hex()
        if isinstance(value, jex.Jaxpr):
            return self.jaxpr(value).hex()
        if isinstance(value, tuple | list):
            return "(" + ",".join(map(self.parameter, value)) + ")"
        if isinstance(value, np.ndarray):
            return _array(value).hex()
        return "function" if callable(value) and not isinstance(value, type) else repr(value)


def _array(value: Any) -> bytes:
    array = np.asarray(value)
    header = f"{array.dtype}{array.shape}".encode()
    return header + hashlib.sha256(np.ascontiguousarray(array).tobytes()).digest()
