"""Text files of plain numbers, read by NumPy: the table library takes longer to load than they take to read."""

import io
from pathlib import Path

import numpy as np

from truesim.core.typing import Float
from truesim.files.logs.stamps import NANOSECONDS

MAX_PLAIN_BYTES = 1 << 23
"""Size above which a text file is left to the table library, which reads faster."""
UNUSUAL = (b'"', b"\r", b"\n\n", b";", b"\t", b"|", b"#", b"%")
"""Parts of files with quotes, empty lines, another separator or comments."""


def read_plain_csv(path: Path) -> dict[str, Float[np.ndarray, " samples"]] | None:
    """Columns of a text file whose first line names them, with a finite number in every cell and stamps in order.

    Returns:
        Columns by name, `time` [s] among them; None for any other file, which takes the way of all tables.
    """
    try:
        if path.suffix.lower() != ".csv" or not path.is_file() or path.stat().st_size > MAX_PLAIN_BYTES:
            return None
        text = path.read_bytes()
    except OSError:
        return None
    header, _, rows = text.partition(b"\n")
    if not header.isascii() or not rows.strip() or any(part in text for part in UNUSUAL):
        return None
    names = header.decode().split(",")
    usual = all(name == name.strip() and name and not NANOSECONDS.match(name) for name in names)
    if not usual or "time" not in names or len(set(names)) < len(names):
        return None
    try:
        values = np.loadtxt(io.BytesIO(rows), delimiter=",", comments=None, ndmin=2)
    except ValueError:
        return None
    if values.shape[1] != len(names) or not np.isfinite(values).all():
        return None
    columns = dict(zip(names, np.ascontiguousarray(values.T), strict=True))
    return columns if np.all(np.diff(columns["time"]) >= 0) else None
