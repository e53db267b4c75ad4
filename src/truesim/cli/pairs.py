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
    """`PATTERN=VALUE` as a number by pattern; a number alone has the pattern `*`."""
    out = {}
    for text in options or ():
        pattern, value = _split(text, form) if "=" in text else ("*", text)
        out[pattern] = _number(value, text)
    return out


def numbers(options: Sequence[str] | None) -> Iterator[tuple[str, float]]:
    """Path and value of each `PATH=VALUE`."""
    for text in options or ():
        path, value = _split(text, "PATH=VALUE")
        yield path, _number(value, text)


def actuator_models(options: Sequence[str] | None) -> Iterator[tuple[str, str]]:
    """Actuator and model of each `ACTUATOR=MODEL`."""
    for text in options or ():
        yield _split(text, "ACTUATOR=MODEL")


def servo_gains(options: Sequence[str] | None) -> dict[str, dict[str, float]]:
    """Gains by pattern of each `PATTERN:kp=50,kv=2`."""
    return _values(options, ("kp", "kv"), "'joints/*:kp=50'")


def gear_values(options: Sequence[str] | None) -> dict[str, dict[str, float]]:
    """Values by joint of each `JOINT:stiffness=9000,backlash=0.002`."""
    return _values(options, ("stiffness", "damping", "backlash", "armature"), "'elbow:stiffness=9000,backlash=0.002'")


def _values(options: Sequence[str] | None, valid: Sequence[str], example: str) -> dict[str, dict[str, float]]:
    """Named values of each `NAME:value=1,other=2`."""
    out: dict[str, dict[str, float]] = {}
    for text in options or ():
        pattern, colon, values = text.rpartition(":")
        if not colon or not pattern:
            raise TruesimError(f"{text!r} should read like {example}.")
        for each in values.split(","):
            name, value = _split(each, f"{valid[0]}=VALUE")
            if name not in valid:
                raise TruesimError(f"{name!r} in {text!r} is unknown; valid are {', '.join(valid)}.")
            out.setdefault(pattern, {})[name] = _number(value, text)
    return out


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
