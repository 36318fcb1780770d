"""Chromium without a window, for tests of pages; and what a page asked the network for."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

CHROMIUM = shutil.which("chromium")
CHROMEDRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
    " --disable-background-networking --disable-component-update --disable-sync"
)

needs_browser = pytest.mark.skipif(
    not (CHROMIUM and CHROMEDRIVER),
    reason="no browser to open pages in: apt-get install chromium chromium-driver",
)


def open_browser(profile: Path) -> Iterator[Chrome]:
    """A browser that keeps its profile in a folder; it is closed after use."""
    options = Options()
    assert CHROMIUM is not None
    options.binary_location = CHROMIUM
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(CHROMEDRIVER))
    yield driver
    driver.quit()


def requests(browser: Chrome) -> set[str]:
    """Addresses that were asked for since the log was read last."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return {
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    }
