"""Cache of kernels on disk, so that a second process compiles nothing, or does not even trace.

Two sorts of files: object code under the key of a program (`.kernel`), and entries under the key of a structure
(`.entry`), which say in JSON which program it is and what arrays it takes and returns. A file is used only if it
belongs to this user, is not writable by others, and has a header that names exactly this key and carries the checksum
of the rest. Otherwise the kernel is compiled again. A folder that is not writable only costs time. Reading a file marks
it as used; when the folder grows beyond its limit, the least recently used files are deleted.
"""

import contextlib
import hashlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import llvmlite.binding as llvm
import numpy as np
import platformdirs

from truesim.native.codegen.target import CpuTarget
from truesim.native.lowering.fingerprint import code_version

_FILE_MAGIC = b"truesim-native-2\n"
CODE_SUFFIX, ENTRY_SUFFIX = ".kernel", ".entry"
MAX_CACHE_BYTES = 1 << 30
"""Size of the folder beyond which the least recently used files are deleted; larger keeps kernels longer [bytes]."""

ArrayType = tuple[tuple[int, ...], np.dtype]
"""Shape and type of an array."""


class CacheEntry(NamedTuple):
    """Program and arrays of a kernel that need not be traced."""

    program: bytes
    """Key of its program."""
    inputs: list[ArrayType]
    outputs: list[ArrayType]


class CacheUse(NamedTuple):
    """Content of the cache folder."""

    folder: Path
    kernels: int
    """Number of files of object code."""
    entries: int
    """Number of kernels that are found without tracing."""
    size: int
    """[bytes]"""
    limit: int
    """Size beyond which files are deleted [bytes]."""


def directory() -> Path:
    """Cache folder: `TRUESIM_CACHE`, else `truesim/native` in the user's cache folder."""
    chosen = os.environ.get("TRUESIM_CACHE")
    if chosen:
        return Path(chosen)
    folder = platformdirs.user_cache_path("truesim", appauthor=False)
    if not folder.is_absolute():  # neither HOME nor an entry of the user
        folder = Path(tempfile.gettempdir()) / "truesim"
    return folder / "native"


def key(program: bytes, target: CpuTarget) -> bytes:
    """Hash that identifies a kernel: the program, the version of its compiler and the CPU."""
    parts = [program, code_version(), repr(llvm.llvm_version_info).encode(), repr(target).encode()]
    return hashlib.sha256(b"\0".join(parts)).digest()


def read(key: bytes) -> bytes | None:
    """Object code of a kernel, or None if the cache has no valid file."""
    return _read(key, CODE_SUFFIX)


def write(key: bytes, code: bytes) -> None:
    """Store object code; readers see the whole file or nothing."""
    _write(key, CODE_SUFFIX, code)


def read_entry(key: bytes) -> CacheEntry | None:
    """Entry of a structure, or None if the cache has no valid one."""
    content = _read(key, ENTRY_SUFFIX)
    if content is None:
        return None
    program, inputs, outputs = json.loads(content)
    return CacheEntry(bytes.fromhex(program), _array_types(inputs), _array_types(outputs))


def write_entry(key: bytes, entry: CacheEntry) -> None:
    """Store the entry of a structure."""
    inputs, outputs = ([(shape, dtype.str) for shape, dtype in arrays] for arrays in (entry.inputs, entry.outputs))
    _write(key, ENTRY_SUFFIX, json.dumps([entry.program.hex(), inputs, outputs]).encode())


def clear() -> None:
    """Delete every kernel in the cache folder."""
    for path, _ in _files(directory()):
        with contextlib.suppress(OSError):
            path.unlink()


def usage() -> CacheUse:
    """Content of the cache folder."""
    files = _files(directory())
    code = sum(path.suffix == CODE_SUFFIX for path, _ in files)
    return CacheUse(directory(), code, len(files) - code, sum(status.st_size for _, status in files), MAX_CACHE_BYTES)


def _array_types(arrays: Sequence[tuple[Sequence[int], str]]) -> list[ArrayType]:
    return [(tuple(shape), np.dtype(name)) for shape, name in arrays]


def _read(key: bytes, suffix: str) -> bytes | None:
    path = _path(key, suffix)
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if not _is_ours(status):
                return None
            content = file.read()
    except OSError:
        return None
    header, rest = content[: len(_header(key, b""))], content[len(_header(key, b"")) :]
    if header != _header(key, rest):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return rest


def _is_ours(status: os.stat_result) -> bool:
    """True if only this user can have written a file; Windows keeps others out of the user's cache folder itself."""
    if sys.platform == "win32":
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _write(key: bytes, suffix: str, content: bytes) -> None:
    path = _path(key, suffix)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, name = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_header(key, content) + content)
            os.replace(name, path)
        except OSError:
            os.unlink(name)
            raise
        _evict(path.parent)


def _evict(folder: Path) -> None:
    """Delete the least recently used files beyond the limit."""
    files = _files(folder)
    excess = sum(status.st_size for _, status in files) - MAX_CACHE_BYTES
    if excess <= 0:
        return
    for path, status in sorted(files, key=lambda file: file[1].st_mtime_ns):
        if excess <= 0:
            return
        path.unlink(missing_ok=True)
        excess -= status.st_size


def _files(folder: Path) -> list[tuple[Path, os.stat_result]]:
    """Files of the cache with their sizes and times; other files in the folder are left alone."""
    found = []
    with contextlib.suppress(OSError), os.scandir(folder) as listing:
        for file in listing:
            if file.name.endswith((CODE_SUFFIX, ENTRY_SUFFIX)):
                with contextlib.suppress(OSError):
                    found.append((Path(file.path), file.stat()))
    return found


def _path(key: bytes, suffix: str) -> Path:
    return directory() / (key.hex() + suffix)


def _header(key: bytes, content: bytes) -> bytes:
    return _FILE_MAGIC + key + hashlib.sha256(key + content).digest()
