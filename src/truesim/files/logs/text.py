"""Content of text files as recorders and spreadsheets write it: compressed, or in another encoding than UTF-8."""

import bz2
import codecs
import gzip
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from truesim.core.errors import FileError

COMPRESSIONS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
"""Readers of compressed text files, by their last ending."""
UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
BINARY_KINDS = {
    b"PK\x03\x04": "an Excel workbook or a ZIP archive; export the table as CSV",
    b"\xd0\xcf\x11\xe0": "an Excel workbook; export the table as CSV",
    b"PAR1": "Parquet; end its name with .parquet",
    b"\x89MCAP": "MCAP; end its name with .mcap",
    b"\x89HDF": "HDF5; write its arrays as NPZ: np.savez('run.npz', time=…, q=…)",
    b"#ROSBAG": "a ROS bag; end its name with .bag",
    b"\x1f\x8b": "compressed; end its name with .csv.gz",
}
"""Kind of a file by its first bytes, with the cure."""
INSPECTED_BYTES = 4096


def read_text(path: Path) -> bytes:
    """Content of a text file in UTF-8, decompressed."""
    opened = COMPRESSIONS.get(path.suffix.lower(), open)
    try:
        with opened(path, "rb") as file:
            content: bytes = file.read()
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise FileError(f"{path.name} cannot be decompressed: {str(error).rstrip('.')}.") from None
    for mark, kind in BINARY_KINDS.items():
        if content.startswith(mark):
            raise FileError(f"{path.name} is no text; it is {kind}.")
    if content.startswith(UTF_16_MARKS):
        return content.decode("utf-16").encode()
    if b"\0" in content[:INSPECTED_BYTES]:
        raise FileError(f"{path.name} is no text: it holds binary data.")
    try:
        content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1").encode()  # as older spreadsheets write degrees and micro
    return content
