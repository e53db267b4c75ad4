"""The package with every tap cut out of its source: what physics would be if nobody had thought of taps."""

import ast
import shutil
from pathlib import Path

import truesim

SOURCE = Path(truesim.__file__).parent


class _Cut(ast.NodeTransformer):
    """`tap(PORT, value)` becomes `value`, `tap.wants(PORT)` becomes `False`."""

    def __init__(self) -> None:
        self.count = 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "tap" and len(node.args) == 2:
            self.count += 1
            return node.args[1]
        if ast.unparse(node.func) == "tap.wants":
            return ast.Constant(False)
        return node


def cut(folder: Path) -> int:
    """Writes the package without taps into a folder; how many were cut."""
    shutil.copytree(SOURCE, folder / "truesim", ignore=shutil.ignore_patterns("__pycache__"))
    total = 0
    for path in (folder / "truesim").rglob("*.py"):
        if "augment" not in path.parts and "tap(" in (text := path.read_text()):
            cutter = _Cut()
            path.write_text(ast.unparse(ast.fix_missing_locations(cutter.visit(ast.parse(text)))))
            total += cutter.count
    return total
