"""Randomizations as TOML files, presets among them, and posteriors as folders.

["bodies/pole.mass"]
uniform = [0.8, 1.2]
how = "scale"           # or "add", or "set"
every = "episode"       # or "step", "once", or seconds
each = true             # own numbers for all parameters of a pattern

[correlated]            # a normal distribution of several parameters together
paths = ["joints/a.damping", "joints/b.damping"]
mean = [0.1, 0.2]
covariance = [[1e-4, 5e-5], [5e-5, 1e-4]]

[conditions]
latency = [0.0, 0.04]   # s, drawn for every episode
jitter = 0.01           # s, drawn for every action on top
noise = 1.5             # factor on the noise of observations
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from truesim.core.errors import FileError, unknown_name
from truesim.core.missing import missing_file
from truesim.policies.randomization import DISTRIBUTIONS, Distribution, Randomization, correlated

PRESET_FOLDER = Path(__file__).with_name("presets")
"""Folder of the presets."""
CONDITIONS = ("latency", "jitter", "noise", "push_size", "push_interval")
"""Conditions that a file may have."""
_OPTIONS = ("how", "every", "each")


def preset_names() -> list[str]:
    """Names of the presets."""
    return sorted(path.stem for path in PRESET_FOLDER.glob("*.toml"))


def read_randomization(path: str | Path) -> Randomization:
    """Randomization of a TOML file, of a preset by name, or of the folder that `truesim posterior` wrote.

    Args:
        path: File, name of a preset such as `minitaur`, or folder.
    """
    path = Path(path)
    if path.is_dir():
        return _from_posterior_folder(path)
    if not path.exists() and str(path) in preset_names():
        path = PRESET_FOLDER / f"{path}.toml"
    if not path.exists():
        raise missing_file("randomization", path, f"presets are {', '.join(preset_names())}")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"The randomization {path} cannot be read: {error.strerror}.") from error
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"The randomization {path} is not valid TOML: {error}.") from error
    return from_document(content)


def from_document(content: Mapping[str, Any]) -> Randomization:
    """Randomization of the content of a TOML file."""
    content = dict(content)
    conditions, joint = content.pop("conditions", {}), content.pop("correlated", None)
    for key in conditions:
        if key not in CONDITIONS:
            raise unknown_name("condition", key, CONDITIONS)
    found = Randomization({name: _distribution(name, table) for name, table in content.items()}, {}, conditions)
    if joint is None:
        return found
    missing = [key for key in ("paths", "mean", "covariance") if key not in joint]
    if missing:
        raise FileError(f"The table [correlated] has no {missing[0]}; it needs paths, mean and covariance.")
    return found.merged(correlated(joint["paths"], joint["mean"], joint["covariance"]))


def _distribution(name: str, table: Any) -> Distribution:
    if not isinstance(table, Mapping):
        raise FileError(f'{name} is {table!r}; write a table, such as ["{name}"] with uniform = [0.8, 1.2].')
    for key in table:
        if key not in _OPTIONS and key not in DISTRIBUTIONS:
            raise unknown_name(f"key of {name}", key, (*DISTRIBUTIONS, *_OPTIONS))
    given = [kind for kind in DISTRIBUTIONS if kind in table]
    if len(given) != 1:
        raise FileError(f"{name} needs one distribution of {', '.join(DISTRIBUTIONS)}; it has {len(given)}.")
    options = {key: table[key] for key in _OPTIONS if key in table}
    return Distribution(given[0], tuple(float(x) for x in table[given[0]]), **options)


def _from_posterior_folder(folder: Path) -> Randomization:
    """Samples of `truesim posterior`: columns of `samples.csv`, of which vectors have one for each element."""
    file = folder / "samples.csv"
    if not file.is_file():
        raise FileError(f"{folder} has no samples.csv: give the folder that `truesim posterior` wrote, or a TOML file.")
    with file.open(encoding="utf-8") as stream:
        names = stream.readline().strip().split(",")
    rows = np.loadtxt(file, delimiter=",", skiprows=1, ndmin=2)
    return Randomization(samples={name: rows[:, k] for k, name in enumerate(names)})
