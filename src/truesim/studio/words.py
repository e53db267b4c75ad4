"""Words of the studio's tables and sentences."""

import re

MAY_BREAK = "\u200b"


def breakable(path: str) -> str:
    """The path with places where a narrow table may break it."""
    return path.replace("/", f"/{MAY_BREAK}").replace(".", f"{MAY_BREAK}.").replace("_", f"_{MAY_BREAK}")


def plain(sentence: str) -> str:
    """The sentence as Markdown that shows it as it is, such as the stars of `joints/*.damping`."""
    return re.sub(r"([*_`<])", r"\\\1", sentence)
