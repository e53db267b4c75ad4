"""Object code on disk, so that a second process compiles nothing.

A file is used only if it can be shown to be ours: it belongs to this user, nobody else may write it, and
its header names exactly this kernel (program, package version, LLVM and CPU features) and carries the
checksum of the rest. Anything else is compiled again. A folder that cannot be written only costs time.
"""

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

import llvmlite.binding as llvm

from truesim.native.fingerprint import code_version
from truesim.native.target import Target

_MAGIC = b"truesim-native-1\n"
_SUFFIX = ".kernel"
_LIMIT = 2000
"""Number of kernels kept; the least recently written go first."""


def directory() -> Path:
    """The cache folder: `TRUESIM_CACHE`, else `truesim/native` in the user's cache folder."""
    chosen = os.environ.get("TRUESIM_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "truesim" / "native"


def key(program: bytes, target: Target) -> bytes:
    """What identifies a kernel: the program, the version of its compiler and the CPU."""
    parts = [program, code_version(), repr(llvm.llvm_version_info).encode(), repr(target).encode()]
    return hashlib.sha256(b"\0".join(parts)).digest()


def read(key: bytes) -> bytes | None:
    """Object code of a kernel, or None if the cache has none that is certainly ours."""
    try:
        with open(_path(key), "rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return None
            content = file.read()
    except OSError:
        return None
    header, code = content[: len(_header(key, b""))], content[len(_header(key, b"")) :]
    return code if header == _header(key, code) else None


def write(key: bytes, code: bytes) -> None:
    """Keep object code; readers see the whole file or nothing."""
    path = _path(key)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, name = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_header(key, code) + code)
            os.replace(name, path)
        except OSError:
            os.unlink(name)
            raise
        _forget_oldest(path.parent)


def clear() -> None:
    """Delete every kernel in the cache folder."""
    for path in directory().glob(f"*{_SUFFIX}"):
        with contextlib.suppress(OSError):
            path.unlink()


def _forget_oldest(folder: Path) -> None:
    kernels = list(folder.glob(f"*{_SUFFIX}"))
    if len(kernels) > _LIMIT:
        kernels.sort(key=lambda p: p.stat().st_mtime)
        for path in kernels[: len(kernels) - _LIMIT]:
            path.unlink()


def _path(key: bytes) -> Path:
    return directory() / (key.hex() + _SUFFIX)


def _header(key: bytes, code: bytes) -> bytes:
    return _MAGIC + key + hashlib.sha256(key + code).digest()
