"""A headless Chromium for tests of pages that a server shows."""

import contextlib
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SOFTWARE_GRAPHICS = (
    "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist", "--disable-background-networking",
)  # fmt: skip
PATIENCE = 120_000
"""Time that a busy machine has for everything on a page [ms]."""


def needs_browser() -> str:
    """Path of a Chromium; skips the test where it, the driver or the viewer is missing."""
    pytest.importorskip("viser", reason="the viewer is not installed: pip install 'truesim[viewer]'")
    pytest.importorskip("playwright", reason="the browser's driver is not installed: pip install playwright")
    found = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if found is None:
        pytest.skip(f"no Chromium to open the page in; looked for {', '.join(CHROMIUM_NAMES)}")
    return found


@contextlib.contextmanager
def opened(address: str, complaints: list[str]) -> Iterator[Any]:
    """A page in a browser; errors on its console are added to `complaints`."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=needs_browser(), args=list(SOFTWARE_GRAPHICS))
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.set_default_timeout(PATIENCE)
        page.goto(address)
        yield page
        browser.close()


def until(page: Any, condition: Callable[[], bool]) -> None:
    """Wait until the server has got what the page sent."""
    for _ in range(PATIENCE // 50):
        if condition():
            return
        page.wait_for_timeout(50)
    raise AssertionError("nothing came from the page")
