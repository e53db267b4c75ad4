"""Words of the studio's tables."""

MAY_BREAK = "\u200b"


def breakable(path: str) -> str:
    """The path with places where a narrow table may break it."""
    return path.replace("/", f"/{MAY_BREAK}").replace(".", f"{MAY_BREAK}.").replace("_", f"_{MAY_BREAK}")
