"""Pages and notebooks of the tutorials: scripts with `# %%` cells, executed, with what they print.

python -m docs.tutorials.pages            # writes docs/tutorials/*.md, their pictures, and out/notebooks/*.ipynb
"""

import ast
import contextlib
import io
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
SCRIPTS = tuple(FOLDER / f"{name}.py" for name in ("so101", "torque_arm", "fit_to_policy"))
NOTEBOOKS = FOLDER.parents[1] / "out" / "notebooks"
MARKDOWN = "# %% [markdown]"


class Cell(NamedTuple):
    """A cell of a script."""

    is_code: bool
    text: str
    output: str = ""


def read_cells(script: Path) -> list[Cell]:
    """Cells of a script."""
    cells = []
    for part in script.read_text(encoding="utf-8").split("\n# %%")[0:]:
        head, _, body = part.removeprefix("# %%").partition("\n")
        if head.strip() == "[markdown]":
            lines = [line.removeprefix("#").removeprefix(" ") for line in body.strip().splitlines()]
            cells.append(Cell(False, "\n".join(lines)))
        elif body.strip():
            cells.append(Cell(True, body.strip()))
    return cells


def execute(cells: list[Cell]) -> tuple[list[Cell], dict]:
    """The cells with what they print, and their names; the value of a last expression is printed too."""
    names: dict = {"__name__": "tutorial"}
    done = []
    for cell in cells:
        if not cell.is_code:
            done.append(cell)
            continue
        printed, tree = io.StringIO(), ast.parse(cell.text)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, "cell", "exec"), names)
            value = None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        text = printed.getvalue() + (f"{value}\n" if value is not None else "")
        done.append(cell._replace(output=text))
    return done, names


def markdown(cells: list[Cell]) -> str:
    """The page."""
    parts = []
    for cell in cells:
        parts.append(f"```python\n{cell.text}\n```" if cell.is_code else cell.text)
        if cell.output.strip():
            parts.append(f"```text\n{cell.output.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def notebook(cells: list[Cell]) -> dict:
    """The notebook (format 4)."""
    made = []
    for k, cell in enumerate(cells):
        source = {"id": f"cell{k}", "metadata": {}, "source": cell.text.splitlines(keepends=True)}
        if not cell.is_code:
            made.append({"cell_type": "markdown", **source})
            continue
        stream = {"output_type": "stream", "name": "stdout", "text": cell.output.splitlines(keepends=True)}
        outputs = [stream] if cell.output else []
        made.append({"cell_type": "code", "execution_count": k, "outputs": outputs, **source})
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": made}


def build(script: Path) -> None:
    """Execute a script in an empty folder, and write its page, pictures and notebook."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path.cwd()
        os.chdir(folder)
        try:
            cells, _ = execute(read_cells(script))
        finally:
            os.chdir(here)
        for image in Path(folder).glob("images/*"):
            shutil.copy(image, FOLDER / "images" / image.name)
    script.with_suffix(".md").write_text(markdown(cells), encoding="utf-8")
    NOTEBOOKS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(notebook(cells), indent=1, ensure_ascii=False)
    (NOTEBOOKS / f"{script.stem}.ipynb").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    for each in SCRIPTS:
        build(each)
        print(f"wrote {each.with_suffix('.md')}")
