"""Frames side by side in a PNG file."""

import struct
import zlib
from pathlib import Path

import numpy as np

from truesim.core.typing import Float

MARGIN, ZOOM = 4, 2
"""White space between frames [px], and width of a pixel."""


def write_strip(path: Path, rows: list[Float[np.ndarray, "n h w 3"]]) -> None:
    """Write rows of frames, whose values are 0 to 1."""
    lines = []
    for frames in rows:
        wide = np.pad(frames, ((0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN), (0, 0)), constant_values=1.0)
        lines.append(np.concatenate(list(wide), axis=1))
    image = np.concatenate(lines).repeat(ZOOM, axis=0).repeat(ZOOM, axis=1)
    write_png(path, np.round(255 * np.clip(image, 0, 1)).astype(np.uint8))


def write_png(path: Path, image: np.ndarray) -> None:
    """Write an RGB image of bytes as a PNG file."""
    height, width, _ = image.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], axis=1)
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    )
    data = b"".join(
        struct.pack(">I", len(x)) + name + x + struct.pack(">I", zlib.crc32(name + x)) for name, x in chunks
    )
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + data)
