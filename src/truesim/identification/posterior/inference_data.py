"""Samples of a posterior in the layout of ArviZ: one chain of draws by variable."""

import json
from pathlib import Path
from typing import Any

from truesim.identification.posterior.parameters import ParameterPosterior

GROUP = "posterior"
"""Group of InferenceData that holds the samples."""


def inference_dictionary(found: ParameterPosterior, n: int, seed: int = 0) -> dict[str, Any]:
    """Samples by group and path, with the axes (chain, draw, …), and attributes with units and warnings.

    Args:
        found: The posterior.
        n: Number of draws; they are independent, so there is one chain.
        seed: Of the draws.
    """
    units = {p.name: p.unit for p in found.problem.solved}
    attributes = {"created_by": "truesim", "units": json.dumps(units), "warnings": json.dumps(list(found.warnings))}
    return {GROUP: {path: x[None] for path, x in found.sample(n, seed).items()}, f"{GROUP}_attrs": attributes}


def write_inference_json(path: Path, found: ParameterPosterior, n: int, seed: int = 0) -> None:
    """Write samples as a JSON file that `arviz.from_json` reads; arguments as in `inference_dictionary`."""
    content = inference_dictionary(found, n, seed)
    samples = {name: x.tolist() for name, x in content[GROUP].items()}
    path.write_text(json.dumps(content | {GROUP: samples}) + "\n", encoding="utf-8")
