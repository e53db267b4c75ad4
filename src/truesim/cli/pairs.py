"""Options of the form NAME=VALUE."""

from collections.abc import Iterator, Sequence

from truesim.core.errors import TruesimError


def pairs(options: Sequence[str] | None, form: str) -> dict[str, tuple[float, float]]:
    """`PATTERN=A:B` as two numbers by pattern; `form` names them in an error."""
    out = {}
    for text in options or ():
        pattern, value = _split(text, f"PATTERN={form}")
        first, colon, second = value.partition(":")
        if not colon:
            raise TruesimError(f"{text!r} should read PATTERN={form}.")
        out[pattern] = (_number(first, text), _number(second, text))
    return out


def named_numbers(options: Sequence[str] | None, form: str) -> dict[str, float]:
    """`PATTERN=VALUE` as a number by pattern; a number alone is for all of them."""
    out = {}
    for text in options or ():
        pattern, value = _split(text, form) if "=" in text else ("*", text)
        out[pattern] = _number(value, text)
    return out


def numbers(options: Sequence[str] | None) -> Iterator[tuple[str, float]]:
    """`PATH=VALUE` one by one."""
    for text in options or ():
        path, value = _split(text, "PATH=VALUE")
        yield path, _number(value, text)


def laws(options: Sequence[str] | None) -> Iterator[tuple[str, str]]:
    """`ACTUATOR=LAW` one by one."""
    for text in options or ():
        yield _split(text, "ACTUATOR=LAW")


def _split(text: str, form: str) -> tuple[str, str]:
    name, equals, value = text.rpartition("=")
    if not equals or not name or not value:
        raise TruesimError(f"{text!r} should read {form}.")
    return name, value


def _number(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise TruesimError(f"{text!r} in {whole!r} is not a number.") from None
