"""Contact on the command line: a bouncing ball is simulated, its friction and stiffness found again from the log."""

import json

import numpy as np
import polars as pl
import pytest

BALL = """<mujoco><option timestep="0.002"/><worldbody><geom name="floor" type="plane" size="5 5 .1" friction="0 0 0"/>
  <body name="ball"><freejoint name="ball"/><geom name="ball" size=".1" mass="1" friction="{} 0 0"/></body>
  </worldbody></mujoco>"""
TRUTH = {"geoms/ball.friction[0]": 0.1, "geoms/ball.contact_stiffness": 4e4}
PLACE = ("x", "y", "z", "qw", "qx", "qy", "qz")


@pytest.fixture
def folder(tmp_path):
    """The real ball, a wrong file of it, and how it is thrown: spinning, so that it slips at every bounce."""
    (tmp_path / "real.xml").write_text(BALL.format(TRUTH["geoms/ball.friction[0]"]))
    (tmp_path / "ball.xml").write_text(BALL.format(0.05))
    numbers = {f"geoms/{geom}.contact_damping": 4e3 for geom in ("ball", "floor")}
    for robot, stiffness in (("real", TRUTH["geoms/ball.contact_stiffness"]), ("ball", 1e4)):
        sidecar = {"version": 1, "parameters": numbers | {"geoms/ball.contact_stiffness": stiffness}}
        (tmp_path / f"{robot}.xml.truesim.json").write_text(json.dumps(sidecar))
    start = dict(zip(PLACE, (0, 0, 0.4, 1, 0, 0, 0), strict=True))
    table = {"time": [0.0, 0.1]} | {f"qpos/ball/{k}": [float(x)] * 2 for k, x in start.items()}
    speed = dict(zip(("vx", "vy", "vz", "wx", "wy", "wz"), (1.5, 0.5, 0, 10, -25, 5), strict=True))
    table |= {f"qvel/ball/{k}": [float(x)] * 2 for k, x in speed.items()}
    pl.DataFrame(table).write_csv(tmp_path / "throw.csv")
    return tmp_path


def thrown(truesim, robot, *options):
    """The table of a simulated throw."""
    done = truesim("simulate", robot, "--seconds", 0.8, "--controls", "throw.csv", "--start-from-log", *options)
    assert done.code == 0, done.err
    return pl.read_csv("traj.csv")


def test_friction_and_stiffness_are_found_again(folder, truesim):
    """From a noisy log of the simulated ball, with a free joint's quaternion; the folder of the fit says which law."""
    log = thrown(truesim, "real.xml", "--contact", "compliant")
    assert -0.05 < log["qpos/ball/z"].min() < 0.1
    rng = np.random.default_rng(0)
    noisy = {f"qpos/ball/{k}": log[f"qpos/ball/{k}"].to_numpy() + 1e-5 * rng.normal(size=len(log)) for k in PLACE}
    pl.DataFrame({"time": log["time"].to_numpy(), **noisy}).write_csv("run.csv")
    done = truesim("identify", "ball.xml", "run.csv", "--contact", "compliant", "--free", *TRUTH, "--out", "fit")
    assert done.code == 0, done.err
    document = json.loads((folder / "fit" / "fit.json").read_text())
    for entry in document["parameters"]:
        assert entry["value"] == pytest.approx(TRUTH[entry["path"]], rel=0.01)
        assert entry["low"] <= TRUTH[entry["path"]] <= entry["high"]
    assert document["provenance"]["contact"] == "compliant"
    assert "Contact model: compliant" in (folder / "fit" / "report.html").read_text()
    sidecar = json.loads((folder / "fit" / "ball.xml.truesim.json").read_text())["parameters"]
    assert sidecar["geoms/ball.contact_stiffness"] == pytest.approx(4e4, rel=0.01)
    scored = json.loads(truesim("evaluate", "fit", "run.csv", "--json").out)
    assert scored["qpos/ball/z"] == pytest.approx(document["errors"]["train"]["qpos/ball/z"], rel=1e-6)


def test_without_contact_the_ball_falls(folder, truesim):
    """The file's contact acts unless told otherwise; rigid contact lets nothing sink in."""
    assert thrown(truesim, "real.xml", "--contact", "none")["qpos/ball/z"].min() < -1
    assert thrown(truesim, "real.xml", "--force")["qpos/ball/z"].min() > 0
    assert thrown(truesim, "real.xml", "--force", "--contact", "rigid")["qpos/ball/z"].min() > 0.0999


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--contact", "rigit"), "rigid"),
        (("--contact", "compliant", "--barrier", "1e-3"), "rigid contact"),
        (("--contact", "rigid", "--barrier", "2"), "between 0 and 1"),
        (("--contact", "rigid", "--smooth"), "--smooth or --contact rigid"),
    ],
)
def test_wrong_options_teach(folder, truesim, options, said):
    """What is wrong, and what is valid."""
    done = truesim("simulate", "real.xml", "--seconds", 1, *options)
    assert done.code == 2
    assert said in done.sentence
