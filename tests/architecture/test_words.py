"""Words: retired ones are gone from source and documentation, and docstrings begin with a plain phrase."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "truesim"
SPLIT = ("files", "identification", "physics")
"""Packages whose own packages are rooms."""
PAGES = sorted([ROOT / "README.md", ROOT / "ARCHITECTURE.md", *ROOT.glob("docs/*.md")])

LANES, JUMPS, SLOPES = r"lanes?", r"jumps?|jumped|jumping", r"slopes?"
LAWS, BARRIERS, COMPLEMENTARITY = r"laws?", r"barriers?", r"complementarity"
VERDICTS, UNSEEN = r"verdicts?", r"unseen"
DEPARTURES, READINGS = r"departures?", r"readings|sensor reading"
RETIRED = {
    r"stretch(es)?": "segment",
    r"shots?": "segment, simulated segment",
    r"first states?": "initial state",
    JUMPS: "defect, discontinuity, step",
    r"allowances?": "continuity weight",
    r"beliefs?|believed?|believes": "prior, filter state",
    UNSEEN: "not identifiable, held out",
    VERDICTS: "status, diagnostics",
    DEPARTURES: "deviation",
    r"surprises?": "innovation",
    r"astray": "diverged",
    r"judges?|judged|judging": "evaluate, validation loss",
    r"mends?|mended|mending": "repair",
    r"oddity|oddities": "anomaly",
    LAWS: "model: actuator model, friction model, contact model",
    LANES: "batch element",
    r"sizes? of inertias?": "effective mass",
    r"one sided": "unilateral",
    r"dry rows?": "joint friction",
    r"equal rows?": "equality constraints",
    READINGS: "measurements",
    SLOPES: "gradient, derivative",
    r"spreads?|spreading": "covariance, standard deviation",
    COMPLEMENTARITY: "rigid contact",
    BARRIERS: "smoothing",
}
"""Retired words, as regular expressions over words in lower case, and what to say instead.

Identifiers count too: `first_state` and `FirstState` are read as `first state`.
"""


class Exempt(NamedTuple):
    """A place where retired words may stay."""

    words: str
    """Key of `RETIRED`."""
    place: str
    """Folder or file."""
    reason: str
    only: str | None = None
    """The words may stay only within matches of this expression; anywhere in the place if it is not given."""


QUOTED = r"""--(law|barrier)\b|(["'`])(law|barrier|verdict|unseen)\2"""
"""Old flags, and old keys in quotation marks."""
EXCEPTIONS = (
    Exempt(LANES, "src/truesim/native", "lanes of vector registers"),
    Exempt(LANES, "src/truesim/physics/routines", "lanes of vector registers"),
    Exempt(LANES, "docs/native.md", "lanes of vector registers"),
    Exempt(LANES, "ARCHITECTURE.md", "lanes of vector registers"),
    Exempt(JUMPS, "src/truesim/native", "jumps of machine code"),
    Exempt(SLOPES, "src", "field and path `actuators/X.gain_slope`", "gain_slope"),
    Exempt(SLOPES, "docs", "field and path `actuators/X.gain_slope`", "gain_slope"),
    Exempt(COMPLEMENTARITY, "src/truesim/math/interior_point", "the field's word for its conditions"),
    Exempt(COMPLEMENTARITY, "src/truesim/physics/contact", "the field's word for the conditions of rigid contact"),
    Exempt(COMPLEMENTARITY, "ARCHITECTURE.md", "conditions that the interior point solves"),
    Exempt(BARRIERS, "src/truesim/math/interior_point", "the field's word for its parameter"),
    Exempt(BARRIERS, "src/truesim/physics/contact", "parameter of the interior point"),
    Exempt(BARRIERS, "src/truesim/native", "barriers of memory and of optimization"),
    Exempt(BARRIERS, "ARCHITECTURE.md", "parameter of the interior point"),
    Exempt(BARRIERS, "src/truesim/cli", "old spelling of --smoothing, and its key in fit.json", QUOTED),
    Exempt(BARRIERS, "src/truesim/identification", "key of the request in fit.json", QUOTED),
    Exempt(BARRIERS, "src/truesim/report/sections/provenance.py", "key of the request in fit.json", QUOTED),
    Exempt(BARRIERS, "docs", "old spelling of --smoothing", QUOTED),
    Exempt(LAWS, "src/truesim/files/robots", "key `actuators/X.law` of the sidecar file", r"""\.law\b|"law\""""),
    Exempt(LAWS, "src/truesim/cli", "old spelling of --actuator-model, and its key in fit.json", QUOTED),
    Exempt(LAWS, "src/truesim/identification", "key of the request in fit.json", QUOTED),
    Exempt(LAWS, "src/truesim/report/sections/provenance.py", "key of the request in fit.json", QUOTED),
    Exempt(LAWS, "docs", "old spelling of --actuator-model", QUOTED),
    Exempt(VERDICTS, "src/truesim/identification/fit_document.py", "old key of fit.json, which stays", QUOTED),
    Exempt(VERDICTS, "src/truesim/identification/fit_folder.py", "old key of fit.json, which stays", QUOTED),
    Exempt(VERDICTS, "src/truesim/report/document.py", "old key of fit.json, which is still read", QUOTED),
    Exempt(VERDICTS, "docs/identify.md", "names the old key of fit.json", QUOTED),
    Exempt(UNSEEN, "src/truesim/identification/fit_document.py", "old key of fit.json, which stays", QUOTED),
    Exempt(UNSEEN, "src/truesim/identification/fit_folder.py", "old key of fit.json, which stays", QUOTED),
    Exempt(UNSEEN, "src/truesim/report/document.py", "old key of fit.json, which is still read", QUOTED),
    Exempt(UNSEEN, "docs/identify.md", "names the old key of fit.json", QUOTED),
    Exempt(DEPARTURES, "src/truesim/identification/online/recursion.py", "key in earlier state files", '"departures/"'),
    Exempt(READINGS, "src/truesim/physics/blueprint/ports.py", "former name of a port", '"sensor.reading"'),
    Exempt(LAWS, "docs", "key `actuators/X.law` of the sidecar file", r"\.law\b"),
)
"""Places in which retired words may stay, each with the reason."""

INDIRECT = re.compile(r"(What|Who|Where|How|Whether|Nobody)\b|So many\b")
"""Beginnings that a docstring must not have."""
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def words(line: str) -> str:
    """The words of a line in lower case, with identifiers taken apart."""
    return " ".join(word.lower() for word in WORD.findall(line))


def room(path: Path) -> str:
    """Package that a source file belongs to."""
    parts = path.relative_to(SOURCE).parts
    if len(parts) == 1:
        return "root"
    return "/".join(parts[:2]) if parts[0] in SPLIT and len(parts) > 2 else parts[0]


def files() -> dict[str, list[Path]]:
    """Files of every room, and every page of the documentation by itself."""
    found: dict[str, list[Path]] = {}
    for path in sorted([*SOURCE.rglob("*.py"), *SOURCE.glob("report/templates/*.html"), *SOURCE.rglob("*.js")]):
        found.setdefault(room(path), []).append(path)
    return found | {name(page): [page] for page in PAGES}


def name(path: Path) -> str:
    """Path within the repository."""
    return path.relative_to(ROOT).as_posix()


def without_exempt(pattern: str, path: str, line: str) -> str:
    """The line without what exceptions allow in it."""
    for exempt in EXCEPTIONS:
        if exempt.words == pattern and (path == exempt.place or path.startswith(exempt.place + "/")):
            line = "" if exempt.only is None else re.sub(exempt.only, " ", line)
    return line


def retired(text: str, path: str) -> Iterator[str]:
    """Every retired word in a text, with its place and what to say instead."""
    for number, line in enumerate(text.splitlines(), 1):
        said = words(line)
        for pattern, instead in RETIRED.items():
            if not (match := re.search(rf"\b({pattern})\b", said)):
                continue
            if re.search(rf"\b({pattern})\b", words(without_exempt(pattern, path, line))):
                yield f"{path}:{number}: {match[0]!r} (say: {instead})"


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Docstrings of a module, its classes, functions, constants and fields, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


FILES = files()


@pytest.mark.parametrize("part", FILES)
def test_retired_words_are_gone(part):
    """Identifiers, docstrings, comments, messages and pages speak the field's language."""
    found = [hit for path in FILES[part] for hit in retired(path.read_text(encoding="utf-8"), name(path))]
    found += [f"{name(path)}: the file's name" for path in FILES[part] for _ in retired(path.stem, name(path))]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("part", [part for part in FILES if not part.endswith(".md")])
def test_docstrings_begin_plainly(part):
    """A docstring begins with a noun phrase or an imperative, not with a question word."""
    found = [
        f"{name(path)}:{line}: {text.splitlines()[0]}"
        for path in FILES[part]
        if path.suffix == ".py"
        for line, text in docstrings(ast.parse(path.read_text(encoding="utf-8")))
        if INDIRECT.match(text)
    ]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("line", "hits"),
    [
        ("the first state of a stretch", 2),
        ("def first_state(model):", 1),
        ("class FirstStates(NamedTuple):", 1),
        ("MOTION_LAW = 3", 1),
        ("a snapshot, a lawn and a bedspread", 0),
        ("reading a file", 0),
        ("One-sided rows", 1),
    ],
)
def test_words_are_found_in_identifiers(line, hits):
    """Snake case, camel case and capitals are taken apart; parts of other words do not count."""
    assert len(list(retired(line, "src/truesim/example.py"))) == hits


def test_exceptions_hold_for_their_place_only():
    """An exception for a folder leaves the word retired elsewhere; one for keys leaves it retired in other text."""
    assert not list(retired("lanes = 8", "src/truesim/native/codegen/tiles.py"))
    assert list(retired("lanes = 8", "src/truesim/nativelike/tiles.py"))
    assert not list(retired('old = {"--law": 1, "barrier": 2}', "src/truesim/cli/lists.py"))
    assert list(retired('laws = {"law": 1}', "src/truesim/cli/lists.py"))
    assert not list(retired("model.actuators.gain_slope", "src/truesim/physics/model/actuators.py"))
    assert list(retired("slope = model.actuators.gain_slope", "src/truesim/physics/model/actuators.py"))


@pytest.mark.parametrize("text", ["What it is.", "Whether it is so.", "So many samples.", "Nobody listens."])
def test_indirect_beginnings_are_found(text):
    """Question words and the like are found."""
    assert INDIRECT.match(text)


@pytest.mark.parametrize("text", ["Whole logs.", "Wherever it is used.", "Sorted values."])
def test_plain_beginnings_are_not(text):
    """Words that only begin alike are allowed."""
    assert not INDIRECT.match(text)
