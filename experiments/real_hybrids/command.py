"""Fits, suggestions and hybrids by the command line; results that a folder holds already are not computed again."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.real_hybrids.cases import Case
from experiments.real_robots.command import run_identify


def fitted(case: Case, out: Path, extra: Sequence[str] = ()) -> Any:
    """Held-out errors of a fit by channel; an existing fit in the folder is used."""
    if not (out / "fit.json").is_file():
        run_identify(case.robot, case.logs, case.held_out, [*case.options, *extra], out)
    return json.loads((out / "fit.json").read_text(encoding="utf-8"))["errors"]["held_out"]


def suggested(case: Case, fit: Path, out: Path) -> Any:
    """Output of `truesim suggest` for a fit."""
    if not (out / "suggest.json").is_file():
        program = [sys.executable, "-c", "from truesim.cli.main import run; run()"]
        command = [*program, "suggest", str(case.robot), *map(str, case.logs), "--fit", str(fit), "--out", str(out)]
        subprocess.run([*command, "--force"], check=True, stdout=subprocess.DEVNULL)
    return json.loads((out / "suggest.json").read_text(encoding="utf-8"))


def hybrid(case: Case, blueprint: Path, seed: int, out: Path) -> Any:
    """Held-out errors with the networks of a blueprint, initialized with a seed."""
    out.mkdir(parents=True, exist_ok=True)
    seeded = out / "blueprint.toml"
    seeded.write_text(re.sub(r'"seed" = \d+', f'"seed" = {seed}', blueprint.read_text()), encoding="utf-8")
    return fitted(case, out, ["--blueprint", str(seeded)])
