"""Mishaps in the browser: each is one sentence on the page, and nothing is lost."""

import threading

import numpy as np
import pytest

import truesim as ts
from tests.studio.browser import PATIENCE, needs_browser, opened, until

FREE = "joints/hinge.damping"
ROBOT = """<mujoco><option timestep="0.005"/><worldbody><body name="arm">
<joint name="hinge" axis="0 1 0" damping="0.1"/><geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0" mass="0.5"/>
</body></worldbody><actuator><motor name="motor" joint="hinge"/></actuator></mujoco>"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A pendulum with a short recording, a broken robot file, and a log of another robot."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "arm.xml").write_text(ROBOT)
    simulator = ts.Simulator.of(ts.load(folder / "arm.xml")).replace({FREE: 0.15})
    time = np.arange(200) * 0.005
    commands = 0.4 * np.sin(5 * time)[:, None]
    _, motion = ts.rollout(simulator, simulator.initial_state(), commands)
    noise = 1e-4 * np.random.default_rng(0).normal(size=len(time))
    rows = np.column_stack([time, np.concatenate([[0.0], np.asarray(motion.q)[:-1, 0]]) + noise, commands])
    np.savetxt(folder / "run.csv", rows, delimiter=",", header="time,qpos/hinge,ctrl/motor", comments="")
    (folder / "broken.xml").write_text("<mujoco><worldbody><body></worldbody></mujoco>")
    (folder / "other.csv").write_text("time,qpos/leg\n" + "".join(f"{k / 100},{k}\n" for k in range(50)))
    return folder


@pytest.fixture
def studio(files, tmp_path):
    """A studio with robot, log and choices, whose fit waits until the test lets it go."""
    needs_browser()
    from truesim.studio.application import Studio

    studio = Studio(out=tmp_path / "fit")
    studio.load_robot(files / "arm.xml")
    studio.load_logs([files / "run.csv"])
    studio.parameters.further.value = FREE
    studio.check()
    studio.go = threading.Event()
    fit = studio.session.run

    def waiting(*arguments):
        assert studio.go.wait(600), "the test lets the fit go"
        return fit(*arguments)

    studio.session.run = waiting
    yield studio
    studio.go.set()
    studio.wait(600)
    studio.viewing.stop()


def test_wrong_files_are_sentences(studio, files):
    """A broken robot file and a log of another robot are named; robot and log stay as they were."""
    complaints = []
    with opened(studio.viewing.address, complaints) as page:
        page.get_by_text("Robot file", exact=True).wait_for(timeout=PATIENCE)
        page.get_by_role("textbox").first.fill(str(files / "broken.xml"))
        page.get_by_role("button", name="Load robot").click()
        page.get_by_text("⚠").first.wait_for(timeout=PATIENCE)
        page.get_by_text("broken.xml").first.wait_for(timeout=PATIENCE)
        page.get_by_role("tab", name="2 Data").click()
        page.get_by_role("textbox").first.fill(str(files / "other.csv"))
        page.get_by_role("button", name="Load logs").click()
        page.get_by_text("other.csv").first.wait_for(timeout=PATIENCE)
    assert studio.session.robot == files / "arm.xml"
    assert [log.name for log in studio.session.logs] == ["run.csv"]
    assert studio.session.is_checked
    assert not complaints


def test_a_stopped_fit_keeps_its_values_and_continues(studio, tmp_path):
    """Stop ends the fit with its best values; Run continues it to its end."""
    complaints = []
    with opened(studio.viewing.address, complaints) as page:
        page.get_by_role("tab", name="5 Solve").click(timeout=PATIENCE)
        page.get_by_role("button", name="Run").click()
        page.get_by_role("button", name="Stop").click(timeout=PATIENCE)
        until(page, lambda: studio.observer.is_stopped)
        stopped = studio._worker
        studio.go.set()
        page.get_by_text("Run continues it").wait_for(timeout=2 * PATIENCE)
        assert (tmp_path / "fit" / "fit.json").is_file()
        assert studio.session.fit.status == "interrupted"
        page.get_by_role("button", name="Run").click(timeout=PATIENCE)
        until(page, lambda: studio._worker is not stopped and studio._worker.is_alive())
        studio.wait(600)
        page.get_by_role("tab", name="6 Results").click()
        page.get_by_role("button", name="Suggest networks").wait_for(timeout=PATIENCE)
    assert studio.session.fit.status != "interrupted", studio._message.content
    assert not complaints


def test_a_closed_tab_does_not_end_the_fit(studio):
    """The fit goes on without a page, and a page that is opened later shows its result."""
    with opened(studio.viewing.address, []) as page:
        page.get_by_role("tab", name="5 Solve").click(timeout=PATIENCE)
        page.get_by_role("button", name="Run").click()
        until(page, lambda: studio._worker is not None and studio._worker.is_alive())
        page.get_by_role("tab", name="1 Robot").click()
        page.get_by_role("button", name="Load robot").click()
        page.get_by_text("A fit is running: stop it first").first.wait_for(timeout=PATIENCE)
    studio.go.set()
    studio.wait(600)
    assert studio.session.fit is not None, studio._message.content
    complaints = []
    with opened(studio.viewing.address, complaints) as page:
        page.get_by_text("Next: Results").wait_for(timeout=PATIENCE)
        page.get_by_role("tab", name="6 Results").click()
        page.get_by_role("button", name="Show contact forces").click(timeout=PATIENCE)
        page.get_by_text("made without contact").first.wait_for(timeout=PATIENCE)
    assert not complaints
