"""Options that take several values: `--free A B C` means `--free A --free B --free C`.

Words are told apart by their form alone, never by which files exist.
"""

from collections.abc import Collection, Sequence
from pathlib import PurePath

LOG_SUFFIXES = (
    *(".csv", ".tsv", ".txt", ".dat", ".log", ".parquet", ".npz", ".jsonl", ".ndjson", ".mcap", ".bag", ".db3"),
)
"""Suffixes of log files; no parameter path ends in one of them."""
COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz")
"""Suffixes that text files may have after their own."""
OLD_SPELLINGS = {"--barrier": "--smoothing", "--law": "--actuator-model"}
"""Former names of options, which still work."""


def repeat_options(
    arguments: Sequence[str], several: Collection[str], files: Collection[str] = frozenset()
) -> list[str]:
    """Arguments in which list options are repeated before each of their values.

    A list ends at the next option. A list that does not hold files also ends at a log file (by its suffix), which is
    then an argument of the verb.

    Args:
        arguments: Words after the verb.
        several: Options that take several values.
        files: Those of them whose values are files.
    """
    repeated: list[str] = []
    option, filled = None, False
    for k, word in enumerate(arguments):
        if word == "--":
            return [*repeated, *arguments[k:]]
        if is_option(word):
            name, equals, _ = word.partition("=")
            option, filled = (name if name in several else None), bool(equals)
        elif option is not None and filled:
            if option not in files and is_log(word):
                option = None
            else:
                repeated.append(option)
        else:
            filled = True
        repeated.append(word)
    return repeated


def is_option(word: str) -> bool:
    """True for options; `-bodies/hand.mass` (in a tie) and `-1` are values."""
    return word.startswith("--") or (word.startswith("-") and word[1:2].isalpha() and "/" not in word)


def is_log(word: str) -> bool:
    """True for words with the suffix of a log file."""
    path = PurePath(word.lower())
    ending = path.with_suffix("").suffix if path.suffix in COMPRESSED_SUFFIXES else path.suffix
    return ending in LOG_SUFFIXES and "=" not in word


def current_spelling(word: str, known: Collection[str]) -> str:
    """The word with the current name of an option, if it has an old one that the verb no longer declares."""
    name, equals, value = word.partition("=")
    new = OLD_SPELLINGS.get(name)
    return f"{new}{equals}{value}" if new in known and name not in known else word
