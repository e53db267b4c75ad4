"""Checks of files and folders before anything is computed for them."""

from pathlib import Path

from truesim.core.errors import FileError, TruesimError


def check_file(out: Path, force: bool) -> None:
    """Refuse to replace an existing file, unless forced, and to write into a folder that does not exist."""
    if out.is_dir():
        raise FileError(f"{out} is a folder; give a file with --out.")
    if out.exists() and not force:
        raise TruesimError(f"{out} exists already; choose another --out, or --force to write over it.")
    if not out.resolve().parent.is_dir():
        raise TruesimError(f"There is no folder {out.parent} to write {out.name} into.")


def check_folder(out: Path, force: bool, own: str | None = None) -> None:
    """Refuse a folder with other content, unless forced.

    Args:
        out: Folder to write into; need not exist.
        force: Whether to accept any folder.
        own: File by which an earlier run of the same verb is recognized, which may be continued.
    """
    if out.is_file():
        raise FileError(f"{out} is a file; give another folder.")
    if force or not out.is_dir() or not any(out.iterdir()) or (own is not None and (out / own).is_file()):
        return
    raise TruesimError(f"{out} is not empty; give another folder, or --force to write into it.")
