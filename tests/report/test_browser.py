"""The page in a real browser without a network: plots draw, controls work, nothing goes wrong."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.report import fits
from tests.studio.browser import PATIENCE, needs_browser
from truesim.report.comparison import compare_fits, write_comparison
from truesim.report.fit_page import write_fit_page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PLOTS = {"signals-plot", "rate-plot", "value-plot", "windows-plot", "cost-plot", "step-plot", "correlations-plot"}

WATCH = """<script>
window.complaints = [];
addEventListener("error", (event) => complaints.push(String(event.message)));
addEventListener("unhandledrejection", (event) => complaints.push(String(event.reason)));
for (const kind of ["error", "warn"]) console[kind] = (...words) => complaints.push(words.join(" "));
</script>"""

USE = """<script>
const at = (id) => document.getElementById(id);
const seen = () => {
  const { layout, data } = at("signals-plot");
  return { title: layout.yaxis.title.text, range: [...layout.xaxis.range], start: data[0].visible };
};
const report = { first: seen() };
at("channel").value = "1";
at("channel").dispatchEvent(new Event("change"));
report.second = seen();
at("following").click();
at("start").click();
report.third = seen();
at("log").value = "2";
at("log").dispatchEvent(new Event("change"));
at("worst").click();
report.worst = seen();
document.querySelectorAll(".thumbnail")[0].click();
report.thumbnail = seen();
dispatchEvent(new Event("beforeprint"));
dispatchEvent(new Event("afterprint"));
document.querySelector("[data-channel='qpos/elbow']").click();
report.link = seen();
report.plots = [...document.querySelectorAll(".plot:has(svg.main-svg)")].map((plot) => plot.id);
report.traces = document.querySelectorAll("#signals-plot .scatterlayer .trace").length;
report.thumbnails = document.querySelectorAll(".thumbnail path").length;
setTimeout(() => {
  const pre = document.createElement("pre");
  pre.id = "probe";
  pre.textContent = JSON.stringify({ ...report, complaints });
  document.body.append(pre);
}, 500);
</script>"""


@pytest.fixture(scope="module")
def browser() -> str:
    """A Chromium on this machine."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no Chromium to open the page in; looked for {', '.join(BROWSERS)}")
    return found


@pytest.fixture(scope="module", params=["light", "dark"])
def probe(request, browser: str, tmp_path_factory) -> dict[str, Any]:
    """What a visitor saw and did."""
    page = write_fit_page(fits.write_small(tmp_path_factory.mktemp("fit")))
    text = page.read_text().replace("<head>", f"<head>{WATCH}").replace("</body>", f"{USE}</body>")
    page.write_text(text)
    scheme = 0 if request.param == "dark" else 1
    return visited(browser, page, f"--blink-settings=preferredColorScheme={scheme}")


def visited(browser: str, page: Path, *options: str) -> dict[str, Any]:
    """The report that the page itself makes of a visit."""
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,900", "--virtual-time-budget=8000",
        "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={page.parent / 'profile'}", *options, "--dump-dom",
        page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    match = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
    assert match, f"the page did not run to its end: {done.stderr[-2000:]}"
    return json.loads(html.unescape(match[1]))


def test_nothing_goes_wrong(probe):
    """No error, no warning and no rejected promise."""
    assert probe["complaints"] == []


def test_all_plots_draw(probe):
    """Every plot has its picture, the signals all their traces, and every channel its small picture."""
    assert set(probe["plots"]) == PLOTS
    assert probe["traces"] == 3, "measured, simulated and residual; the start values were switched off"
    assert probe["thumbnails"] == 2 * len(fits.ROWS)


def test_controls_choose_what_is_shown(probe):
    """Channel, log, start values, the worst window, small pictures and links of the table all do what they say."""
    assert probe["first"] == {"title": "qpos/shoulder [rad]", "range": [0, pytest.approx(1.995)], "start": True}
    assert probe["second"]["title"] == "qpos/elbow [rad]"
    assert probe["third"]["title"] == "sensor/&lt;gyro>/x [rad]"
    assert probe["third"]["start"] is False
    begin, end = probe["worst"]["range"]
    assert end - begin == pytest.approx(1.1 * 0.495, rel=1e-3)
    assert probe["thumbnail"]["title"] == "qpos/shoulder [rad]"
    assert probe["link"]["title"] == "qpos/elbow [rad]"


def test_pages_fit_a_telephone(tmp_path):
    """Nothing reaches beyond the side of a screen of 390 px; wide tables scroll on their own."""
    needs_browser()
    from playwright.sync_api import sync_playwright

    fits.write_small(tmp_path)
    comparison = write_comparison(compare_fits([tmp_path, tmp_path]), tmp_path / "comparison.html")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=needs_browser(), args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": 390, "height": 844})
        tab.set_default_timeout(5 * PATIENCE)
        for page in (write_fit_page(tmp_path), comparison):
            tab.goto(page.as_uri())
            assert tab.evaluate("document.documentElement.scrollWidth") <= 390, page.name
        browser.close()
