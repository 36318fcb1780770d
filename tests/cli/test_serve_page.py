"""The page of the server in a real browser, after a drift: it updates itself and fits."""

import base64
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from support.browser import Browser, needs_browser, open_browser
from support.served import Served, started

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
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    yield from open_browser(tmp_path_factory.mktemp("profile"))


def shown(
    browser: Browser, served: Served, width: int, scheme: str = "light", *, scripts: bool = True
) -> str:
    """Open the page; its address."""
    address = f"http://127.0.0.1:{served.port}/"
    browser.open(address, width=width, height=900, scheme=scheme, scripts=scripts)
    return address


def text_of(browser: Browser, place: str) -> str:
    found: str = browser.script(f"return document.querySelector('{place}').innerText")
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_and_asks_for_nothing_from_elsewhere(
    browser: Browser, served: Served, tmp_path: Path, width: int, scheme: str
) -> None:
    address = shown(browser, served, width, scheme)
    whole = browser.command("Page.captureScreenshot", captureBeyondViewport=True)
    (tmp_path / f"page-{width}-{scheme}.png").write_bytes(base64.b64decode(whole["data"]))
    browser.script("document.querySelectorAll('details').forEach(d => d.open = true)")
    wide, seen = browser.script(
        "const page = document.documentElement; return [page.scrollWidth, page.clientWidth]"
    )
    assert wide <= seen <= width
    assert browser.complaints == []
    assert {url.partition("?")[0] for url in browser.requests} == {address}
    background = browser.script("return getComputedStyle(document.body).backgroundColor")
    is_dark = sum(map(int, background[4:-1].split(","))) < 3 * 128
    assert is_dark == (scheme == "dark")


def test_labels_are_text(browser: Browser, served: Served) -> None:
    shown(browser, served, 1280)
    assert EVIL in text_of(browser, "#now")
    assert browser.script("return document.title") == "ahpatron: metron"


def test_the_drift_is_marked_in_the_curve(browser: Browser, served: Served) -> None:
    shown(browser, served, 1280)
    drifts = browser.script(
        "return [...document.querySelectorAll('.chart path.drift')].map(p => p.textContent)"
    )
    rounds = [int(title.rpartition(" ")[2].replace(",", "")) for title in drifts]
    assert any(2500 < number <= 2800 for number in rounds)
    assert "drift" in text_of(browser, ".key")


def test_figures_update_by_themselves(browser: Browser, served: Served) -> None:
    shown(browser, served, 1280)
    browser.script("document.querySelector('details').open = true")
    before = text_of(browser, ".tiles")
    first = served.figure("rounds_total")
    assert served.post("/learn", payments(10, first + 1000, turned=True))[0] == 200
    browser.wait_until(lambda: f"{first + 10:,}" in text_of(browser, ".tiles"))
    assert f"{first + 10:,}" not in before
    assert browser.script("return document.querySelector('details').open")


def test_without_scripts_there_are_tables_and_the_page_loads_again(
    browser: Browser, served: Served
) -> None:
    shown(browser, served, 390, scripts=False)
    document = browser.source
    loads = browser.loads
    assert document.count("<table>") == 4
    assert "Mistakes, all rounds" in document
    browser.wait_until(lambda: browser.loads > loads)


def test_it_says_when_the_server_is_gone(browser: Browser, tmp_path: Path) -> None:
    server = started(tmp_path, "--label", "fraud")
    shown(browser, server, 390)
    assert browser.script("return document.getElementById('lost').hidden")
    server.end()
    browser.wait_until(lambda: "does not answer" in text_of(browser, "#lost"))
