"""`python -m experiments.mujoco_parity FOLDER…`: table of the differences between truesim's motion and MuJoCo's."""

import argparse
import collections
from pathlib import Path

import mujoco

from experiments.mujoco_parity.parity import Parity, compare, with_doubles

EQUAL, NOISE = 1e-11, 20
"""Median difference below which motions are equal, and times MuJoCo's own above which they differ for a reason."""
OUTCOMES = ("equal", "as MuJoCo from itself", "parts left out", "not by the routines")
COLLECTION_HEAD = f"| collection | scenes | {' | '.join(OUTCOMES)} | others |"
HEAD = "| scene | median | 90 % | MuJoCo itself, 90 % | iterations | left out |"
BEGIN, END = "<!-- parity: begin -->", "<!-- parity: end -->"


def main() -> None:
    """Compare all scenes below some folders and print a table, or write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "folders", nargs="+", help="Folders with scene*.xml, or NAME=FOLDER with any XML files, or files."
    )
    parser.add_argument("--instances", type=int, default=32, help="Motions per scene.")
    parser.add_argument("--count", action="store_true", help="Count the scenes of each NAME=FOLDER by their outcome.")
    parser.add_argument("--page", type=Path, help="Page whose table is replaced.")
    options = parser.parse_args()
    with_doubles()
    if options.count:
        print(COLLECTION_HEAD + "\n" + "|---" * COLLECTION_HEAD.count(" | ") + "|---|")
        for name, folder in (text.split("=") for text in options.folders):
            print(count(name, Path(folder), options.instances), flush=True)
        return
    lines = [HEAD, "|---" * HEAD.count(" | ") + "|---|"]
    for name, scene in (found for text in options.folders for found in scenes(text)):
        lines.append(row(compare(scene, options.instances, name)))
        print(lines[-1], flush=True)
    if options.page is not None:
        text = options.page.read_text()
        before, rest = text.split(BEGIN)
        options.page.write_text(before + "\n".join([BEGIN, *lines, END]) + rest.split(END)[1])


def scenes(text: str) -> list[tuple[str, Path]]:
    """Name and file of every scene of an argument."""
    name, _, folder = text.rpartition("=")
    path = Path(folder)
    files = [path] if path.is_file() else sorted(path.glob("*.xml" if name else "**/scene*.xml"))
    return [(f"{name or file.parent.name}/{file.name}", file) for file in files]


def count(name: str, folder: Path, instances: int) -> str:
    """Line of the table of collections: all files below a folder that MuJoCo loads and in which something moves."""
    outcomes: collections.Counter[str] = collections.Counter()
    others = []
    for file in sorted(folder.rglob("*.xml")):
        try:
            if not mujoco.MjModel.from_xml_path(str(file)).nv:
                continue
        except ValueError:
            continue
        outcome = judge(compare(file, instances, str(file.relative_to(folder))))
        outcomes[outcome] += 1
        if outcome == "others":
            others.append(str(file.relative_to(folder)))
    cells = [name, sum(outcomes.values()), *(outcomes[column] for column in OUTCOMES), ", ".join(others)]
    return f"| {' | '.join(map(str, cells))} |"


def judge(parity: Parity) -> str:
    """Column of a scene in the table of collections."""
    if parity.median is None or parity.own is None:
        return "not by the routines"
    if parity.median <= EQUAL:
        return "equal"
    if parity.reason:
        return "parts left out"
    return "as MuJoCo from itself" if parity.median <= NOISE * parity.own else "others"


def row(parity: Parity) -> str:
    """Line of the table."""
    if parity.median is None:
        return f"| {parity.scene} | - | - | - | - | {parity.reason} |"
    same = "equal" if parity.iterations else "differ"
    numbers = " | ".join(f"{x:.0e}" for x in (parity.median, parity.most, parity.own))
    return f"| {parity.scene} | {numbers} | {same} | {parity.reason} |"


if __name__ == "__main__":
    main()
