"""The page of the server in a real browser, after a drift: it updates itself and fits."""

import base64
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from selenium.webdriver import Chrome
from selenium.webdriver.support.ui import WebDriverWait

from support.browser import needs_browser, open_browser, requests
from support.served import PATIENCE, Served, started

EVIL = "<script>document.title = 'taken'</script>"

pytestmark = [pytest.mark.slow, needs_browser]


def payments(count: int, first: int, *, turned: bool) -> list[dict[str, Any]]:
    """Payments with a label that depends on the amount; `turned`: the other way round."""
    draw = random.Random(first)
    rows = []
    for number in range(first, first + count):
        amount = round(draw.gauss(40, 15), 2)
        is_fraud = (amount > 45) != turned
        row = {
            "payment": f"payment-{number}",
            "amount": amount,
            "hour": draw.randrange(24),
            "country": draw.choice(["de", "fr", "it", "<b>"]),
            "a column with a long name of several words": draw.random(),
            "fraud": EVIL if is_fraud else "good",
        }
        rows.append(row)
    return rows


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server after a drift, with rows that wait for their labels."""
    folder = tmp_path_factory.mktemp("server")
    options = ("--label", "fraud", "--classes", f"good,{EVIL}", "--id", "payment")
    server = started(folder, *options, "--window", "200", "--state", "payments.npz")
    for first in range(0, 4000, 100):
        rows = payments(100, first, turned=first >= 2500)
        assert server.post("/learn", rows)[0] == 200
    waiting = [
        {k: v for k, v in row.items() if k != "fraud"} for row in payments(7, 4000, turned=True)
    ]
    assert server.post("/predict", waiting)[0] == 200
    yield server
    server.kill()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    yield from open_browser(tmp_path_factory.mktemp("profile"))


def shown(browser: Chrome, served: Served, width: int, scheme: str, *, scripts: bool) -> str:
    """Open the page; its address."""
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get_log("performance")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
    address = f"http://127.0.0.1:{served.port}/"
    browser.get(address)
    return address


def text_of(browser: Chrome, place: str) -> str:
    found: str = browser.execute_script(f"return document.querySelector('{place}').innerText")
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_and_asks_for_nothing_from_elsewhere(
    browser: Chrome, served: Served, tmp_path: Path, width: int, scheme: str
) -> None:
    address = shown(browser, served, width, scheme, scripts=True)
    whole = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
    (tmp_path / f"page-{width}-{scheme}.png").write_bytes(base64.b64decode(whole["data"]))
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    wide, seen = browser.execute_script(
        "const page = document.documentElement; return [page.scrollWidth, page.clientWidth]"
    )
    assert wide <= seen <= width
    assert browser.get_log("browser") == []
    assert {url.partition("?")[0] for url in requests(browser)} == {address}
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    is_dark = sum(map(int, background[4:-1].split(","))) < 3 * 128
    assert is_dark == (scheme == "dark")


def test_labels_are_text(browser: Chrome, served: Served) -> None:
    shown(browser, served, 1280, "light", scripts=True)
    assert EVIL in text_of(browser, "#now")
    assert browser.title == "ahpatron: metron"


def test_the_drift_is_marked_in_the_curve(browser: Chrome, served: Served) -> None:
    shown(browser, served, 1280, "light", scripts=True)
    drifts = browser.execute_script(
        "return [...document.querySelectorAll('.chart path.drift')].map(p => p.textContent)"
    )
    rounds = [int(title.rpartition(" ")[2].replace(",", "")) for title in drifts]
    assert any(2500 < number <= 2800 for number in rounds)
    assert "drift" in text_of(browser, ".key")


def test_figures_update_by_themselves(browser: Chrome, served: Served) -> None:
    shown(browser, served, 1280, "light", scripts=True)
    browser.execute_script("document.querySelector('details').open = true")
    before = text_of(browser, ".tiles")
    first = served.figure("rounds_total")
    assert served.post("/learn", payments(10, first + 1000, turned=True))[0] == 200
    WebDriverWait(browser, PATIENCE).until(
        lambda _: f"{first + 10:,}" in text_of(browser, ".tiles")
    )
    assert f"{first + 10:,}" not in before
    assert browser.execute_script("return document.querySelector('details').open")


def test_without_scripts_there_are_tables_and_the_page_loads_again(
    browser: Chrome, served: Served
) -> None:
    shown(browser, served, 390, "light", scripts=False)
    document = browser.page_source
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert document.count("<table>") == 4
    assert '<meta http-equiv="refresh" content="5">' in document
    assert "Mistakes, all rounds" in document


def test_it_says_when_the_server_is_gone(browser: Chrome, tmp_path: Path) -> None:
    server = started(tmp_path, "--label", "fraud")
    shown(browser, server, 390, "light", scripts=True)
    assert browser.execute_script("return document.getElementById('lost').hidden")
    server.end()
    WebDriverWait(browser, PATIENCE).until(lambda _: "does not answer" in text_of(browser, "#lost"))
