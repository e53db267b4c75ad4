"""Text of TOML files; the standard library only reads them."""

import json
import math
from collections.abc import Mapping
from typing import Any


def toml_lines(table: Mapping[str, Any]) -> str:
    """Lines of a TOML table, without its heading; inner tables are inline, and None is left out."""
    return "".join(f"{key} = {toml_value(value)}\n" for key, value in table.items() if value is not None)


def toml_value(value: Any) -> str:
    """A value as TOML: text, number, truth, list or inline table."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml_value(v)}" for k, v in value.items() if v is not None) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False)
