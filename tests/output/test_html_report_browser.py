"""The report in a real browser: it asks the network for nothing, fits every screen, can be read."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from ahpatron_cli.output.html_report import write_report
from support import sweeps

CHROMIUM = shutil.which("chromium")
CHROMEDRIVER = shutil.which("chromedriver")
MISSING = [
    package
    for package, program in (("chromium", CHROMIUM), ("chromium-driver", CHROMEDRIVER))
    if program is None
]
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
    " --disable-background-networking --disable-component-update --disable-sync"
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(MISSING), reason=f"no browser to open reports in: apt-get install {' '.join(MISSING)}"
    ),
]

# Every element with text of its own: the contrast of that text against what lies behind it.
CONTRASTS = """
const channels = colour => colour.match(/[0-9.]+/g).map(Number);
const luminance = colour => {
  const [r, g, b] = channels(colour).slice(0, 3).map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = element => {
  for (; element; element = element.parentElement) {
    const colour = getComputedStyle(element).backgroundColor;
    const [, , , alpha = 1] = channels(colour);
    if (alpha > 0) return colour;
  }
  return 'rgb(255, 255, 255)';
};
const contrast = (one, other) => {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
};
const texts = [...document.body.querySelectorAll('*')].filter(element =>
  [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim()));
return {
  texts: texts.map(element =>
    [element.tagName, contrast(getComputedStyle(element).color, behind(element))]),
  pictures: [...document.images].map(image => [image.currentSrc, image.naturalWidth]),
};
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    options = Options()
    assert CHROMIUM is not None
    options.binary_location = CHROMIUM
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(CHROMEDRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Many learners, long names, failures, and names that would like to run."""
    path = tmp_path_factory.mktemp("report") / "out.html"
    failed = [
        sweeps.trial(repeat=7, error="<script>document.title = 'taken'</script>" + "long" * 60)
    ]
    findings = sweeps.sweep(
        [*sweeps.FOURTEEN, "<img src=x onerror=alert(1)>"],
        paths=["a9a.svm", "w" * 150 + ".svm", "<script>document.title = 'taken'<b>.svm"],
        epsilons=(0.3, 0.5),
        failed=failed,
    )
    origins = [{**sweeps.ORIGIN, "command": "ahpatron sweep " + "x" * 200}]
    write_report(path, replace(findings, origins=origins))
    return path.as_uri()


def look(browser: Chrome, url: str, width: int, scheme: str) -> None:
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get_log("performance")
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(url)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")


def requests(browser: Chrome) -> set[str]:
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return {
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1280])
def test_it_fits_asks_for_nothing_and_can_be_read(
    browser: Chrome, report: str, width: int, scheme: str
) -> None:
    look(browser, report, width, scheme)
    assert browser.get_log("browser") == []
    assert {url for url in requests(browser) if not url.startswith("data:")} == {report}
    assert browser.title.startswith("ahpatron sweep: a9a")
    wide, seen = browser.execute_script(
        "const page = document.documentElement; return [page.scrollWidth, page.clientWidth]"
    )
    assert wide <= seen <= width
    found: dict[str, list[tuple[str, float]]] = browser.execute_script(CONTRASTS)
    assert len(found["texts"]) > 100
    assert [each for each in found["texts"] if each[1] < 4.5] == []
    assert all(width > 100 for _, width in found["pictures"])


def test_on_a_phone_tables_scroll_inside_their_own_box(browser: Chrome, report: str) -> None:
    look(browser, report, 360, "light")
    boxes: list[dict[str, Any]] = browser.execute_script(
        "return [...document.querySelectorAll('.scroll')].map(box => "
        "({seen: box.clientWidth, wide: box.scrollWidth, tab: box.tabIndex}))"
    )
    assert len(boxes) == 7
    assert all(box["seen"] < 360 < box["wide"] and box["tab"] == 0 for box in boxes)
    widths = browser.execute_script(
        "return [...document.images].map(image => image.getBoundingClientRect().right)"
    )
    assert len(widths) == 7
    assert max(widths) <= 360
