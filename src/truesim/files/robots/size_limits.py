"""Limits on the size of a robot file, checked before MuJoCo compiles it.

A few bytes of MJCF can ask for gigabytes: a replica of replicas, a height field, user data of every element.
"""

import math
import re
import struct
from pathlib import Path

from truesim.core.errors import FileError
from truesim.files.robots.xml_parse import Element

MAX_BODIES = 5000
"""Bodies that are read, replicas included; a larger number takes minutes."""
MAX_ELEMENTS = 200_000
"""Elements of a file; a larger number takes minutes."""
MAX_CELLS = 30_000_000
"""Numbers of a height field, or pixels of a texture."""
MAX_USER_NUMBERS = 1000
"""Numbers of user data of each element."""
MAX_MEMORY = 4 << 30
"""Memory that a file may ask MuJoCo for [bytes]."""
MEMORY_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50, "E": 1 << 60}
GRIDS = {"hfield": ("nrow", "ncol"), "texture": ("width", "height")}
COPIES = {"replicate": "count", "composite": "count", "flexcomp": "count"}
"""Attribute with the number of copies, by element that makes copies of bodies."""


def check_size(root: Element, folder: Path) -> None:
    """Refuse a file that asks for more than can be simulated.

    Args:
        root: The `<mujoco>` element.
        folder: Folder of the robot file.
    """
    elements = list(root.walk())
    if len(elements) > MAX_ELEMENTS:
        raise FileError(f"{root.file} has {len(elements):,} elements; at most {MAX_ELEMENTS:,} are read.")
    bodies = _bodies(root)
    if bodies > MAX_BODIES:
        raise FileError(f"{root.file} has {bodies:,.0f} bodies with all replicas; at most {MAX_BODIES:,} are read.")
    for element in elements:
        if element.tag in GRIDS:
            _check_grid(element, folder)
        elif element.tag == "size":
            _check_storage(element)


def _bodies(element: Element) -> float:
    """Number of bodies in an element, with replicas."""
    own = 1.0 if element.tag == "body" else 0.0
    copies = _product(element.get(COPIES[element.tag])) if element.tag in COPIES else 1.0
    inside = sum(_bodies(child) for child in element.children)
    return copies * max(inside + own, 1.0 if element.tag in COPIES else 0.0)


def _check_grid(element: Element, folder: Path) -> None:
    cells = math.prod(_product(element.get(name)) for name in GRIDS[element.tag])
    if cells > MAX_CELLS:
        raise _refused(element, f"has {cells:,.3g} cells", f"{MAX_CELLS:,}")
    file = folder / element.get("file")
    if element.tag == "hfield" and element.get("file") and file.is_file() and file.suffix.lower() != ".png":
        with file.open("rb") as content:
            header = content.read(8)
        rows, columns = struct.unpack("<ii", header) if len(header) == 8 else (0, 0)
        if min(rows, columns) < 1 or file.stat().st_size != 4 * (2 + rows * columns):
            message = f"holds {file.stat().st_size:,} bytes, which is not a height field of {rows} by {columns} cells"
            raise FileError(f"{element.file}, line {element.line}: {file.name} {message}.")


def _check_storage(element: Element) -> None:
    for name, value in element.attributes.items():
        if name.startswith("nuser") and _product(value) > MAX_USER_NUMBERS:
            raise _refused(element, f"has {name}={value!r}", f"{MAX_USER_NUMBERS:,}")
        if name in ("nuserdata", "nkey") and _product(value) > MAX_CELLS:
            raise _refused(element, f"has {name}={value!r}", f"{MAX_CELLS:,}")
        match = re.fullmatch(r"\s*(\d+)\s*([KMGTPE]?)\s*", value, re.IGNORECASE) if name == "memory" else None
        if match and int(match[1]) * MEMORY_UNITS[match[2].upper()] > MAX_MEMORY:
            raise _refused(element, f"asks for memory={value!r}", "4G")


def _product(text: str) -> float:
    """Product of the numbers in a text; 1 if there are none that can be read."""
    try:
        numbers = [abs(float(word)) for word in text.split()]
    except ValueError:
        return 1.0  # MuJoCo explains it
    return math.prod((max(number, 1.0) for number in numbers if math.isfinite(number)), start=1.0)


def _refused(element: Element, what: str, most: str) -> FileError:
    return FileError(f"{element.file}, line {element.line}: <{element.tag}> {what}; at most {most} are read.")
