"""Loaders, with the files that their mutations begin from."""

import dataclasses
import functools
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

import truesim as ts
from tests.files.logs.test_lerobot import _frames, _info
from tests.files.robots.conftest import ARM, LEG
from tests.identification.recorded import ARM_WRONG, arm_log
from tests.identification.search.problems import rippled
from truesim.files.logs import read_logs, write_log
from truesim.files.logs.mapping import read_mapping
from truesim.files.logs.read import read_columns
from truesim.files.robots import load
from truesim.identification.fit import Fit
from truesim.optimize import BasinHoppingOptions, CmaEsOptions, basin_hopping, cma_es
from truesim.physics.blueprint import read_blueprint, read_networks, write_networks
from truesim.physics.blueprint.trained import Trained

SECONDS = 10
"""Longest time of one input [CPU s]."""


@dataclasses.dataclass(frozen=True)
class Target:
    """A loader: folder of valid files, the files that are damaged, and what reads them."""

    seed: Callable[[Path], None]
    """Writes valid files into a folder."""
    damaged: tuple[str, ...]
    read: Callable[[Path], object]


def _columns() -> dict[str, np.ndarray]:
    time = np.arange(40) * 0.01
    return {"time": time, "qpos/a": np.sin(time), "ctrl/a": np.cos(time)}


def _csv(folder: Path) -> None:
    write_log(folder / "run.csv", _columns())


def _parquet(folder: Path) -> None:
    frame = pl.DataFrame(_columns()).with_columns(
        state=pl.Series([[0.1, 0.2]] * 40), wall=pl.int_range(40, eager=True).cast(pl.Duration("us"))
    )
    frame.write_parquet(folder / "run.parquet")


def _npz(folder: Path) -> None:
    np.savez(folder / "run.npz", state=np.zeros((40, 2)), **_columns())


def _lerobot(folder: Path) -> None:
    _info(folder, "v3.0")
    (folder / "data").mkdir()
    _frames(0).write_parquet(folder / "data" / "file.parquet")


def _records(folder: Path) -> None:
    rows = [{"stamp": 0.01 * k, "name": ["a", "b"], "position": [k, -k], "cmd": {"a": 0.5}} for k in range(20)]
    (folder / "run.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def _mcap(folder: Path) -> None:
    from mcap.writer import Writer

    with (folder / "run.mcap").open("wb") as file:
        out = Writer(file, chunk_size=500)
        out.start()
        schema = out.register_schema("sensor_msgs/JointState", "jsonschema", b"{}")
        channel = out.register_channel("/joint_states", "json", schema)
        for k in range(20):
            content = {"header": {"stamp": {"sec": 1, "nanosec": k}}, "name": ["a"], "position": [0.1 * k]}
            out.add_message(channel, k, json.dumps(content).encode(), k)
        out.finish()


def _mapping(folder: Path) -> None:
    lines = [
        *("[file]", "rate = 100.0", "[columns]", 'time = {from = "t", unit = "ms"}'),
        '"qpos/a" = {from = "q", sign = -1, unit = "deg"}',
    ]
    (folder / "mine.toml").write_text("\n".join(lines) + "\n")


def _mjcf(folder: Path) -> None:
    (folder / "arm.xml").write_text(ARM.replace("<worldbody>", '<include file="part.xml"/><worldbody>', 1))
    field = '<asset><hfield name="h" nrow="3" ncol="3" size="1 1 1 1"/></asset>'
    (folder / "part.xml").write_text(f'<mujoco><size nuser_body="2"/>{field}</mujoco>')
    (folder / "arm.xml.truesim.json").write_text('{"version": 1, "parameters": {"joints/shoulder.damping": 0.5}}')


def _urdf(folder: Path) -> None:
    (folder / "leg.urdf").write_text(LEG)


@functools.cache
def _fit_files() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        (home / "arm.xml").write_text(ARM_WRONG)
        ts.identify(home / "arm.xml", [arm_log()], ["joints/*.damping"], out=home / "fit")
        files = [file for file in (home / "fit").rglob("*") if file.is_file()]
        return {str(file.relative_to(home / "fit")): file.read_bytes() for file in files}


def _fit(folder: Path) -> None:
    for name, content in _fit_files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


BLUEPRINT = """[[rule]]
output = "joint.friction_torque"
inputs = ["joint.velocity"]
network = {kind = "mlp", hidden = [3]}
"""


def _networks(folder: Path) -> None:
    (folder / "b.toml").write_text(BLUEPRINT)
    plan = read_blueprint(folder / "b.toml")
    write_networks(Trained(plan, {plan.rules[0].name: np.zeros(10)}), folder)


def _search(method: Callable, options: object) -> tuple[Callable[[Path], None], Callable[[Path], object]]:
    """Writer of the journal of a search, and the search that continues from it."""

    def run(folder: Path) -> object:
        return method(rippled(), options, journal=folder / "search.jsonl")

    return run, run


_hop, _continue_hop = _search(basin_hopping, BasinHoppingOptions(chains=2, solves=4))
_evolve, _continue_evolve = _search(cma_es, CmaEsOptions(solves=40))


TARGETS = {
    "csv": Target(_csv, ("run.csv",), lambda folder: read_logs(folder / "run.csv")),
    "parquet": Target(_parquet, ("run.parquet",), lambda folder: read_logs(folder / "run.parquet")),
    "npz": Target(_npz, ("run.npz",), lambda folder: read_logs(folder / "run.npz")),
    "records": Target(_records, ("run.jsonl",), lambda folder: read_columns(folder / "run.jsonl")),
    "lerobot": Target(_lerobot, ("meta/info.json", "data/file.parquet"), read_logs),
    "mcap": Target(_mcap, ("run.mcap",), lambda folder: read_logs(folder / "run.mcap")),
    "mapping": Target(_mapping, ("mine.toml",), lambda folder: read_mapping(folder / "mine.toml")),
    "mjcf": Target(_mjcf, ("arm.xml", "part.xml", "arm.xml.truesim.json"), lambda folder: load(folder / "arm.xml")),
    "urdf": Target(_urdf, ("leg.urdf",), lambda folder: load(folder / "leg.urdf")),
    "fit": Target(_fit, ("fit.json", "solution.npz", "logs.npz", "arm.xml", "start/arm.xml"), Fit.load),
    "hopping": Target(_hop, ("search.jsonl",), _continue_hop),
    "cmaes": Target(_evolve, ("search.jsonl",), _continue_evolve),
    "networks": Target(_networks, ("networks.json", "networks.npz"), read_networks),
}
