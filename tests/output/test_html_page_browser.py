"""The report in a real browser: it asks the network for nothing, and fits every screen."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from selenium.webdriver import Chrome

from ahpatron_cli.output.html_page import write_page
from support.browser import needs_browser, open_browser, requests
from support.trials import FOURTEEN, ORIGIN, large_sweep, make_trial

pytestmark = [pytest.mark.slow, needs_browser]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    yield from open_browser(tmp_path_factory.mktemp("profile"))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Many learners, long names, failures, and names that would like to run."""
    path = tmp_path_factory.mktemp("report") / "out.html"
    taken = "<script>document.title = 'taken'</script>"
    summary = large_sweep(
        [*FOURTEEN, "<img src=x onerror=alert(1)>"],
        paths=["a9a.svm", "w" * 150 + ".svm", f"{taken}<b>.svm"],
        epsilons=(0.3, 0.5),
        failed=[make_trial("rbp", None, error=taken + "long" * 60)],
    )
    origins = [{**ORIGIN, "command": "ahpatron sweep " + "x" * 200}]
    write_page(path, replace(summary, origins=origins))
    return path.as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1280])
def test_it_fits_and_asks_for_nothing(
    browser: Chrome, report: str, width: int, scheme: str
) -> None:
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get_log("performance")
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(report)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.get_log("browser") == []
    assert {url for url in requests(browser) if not url.startswith("data:")} == {report}
    assert browser.title.startswith("ahpatron sweep: a9a")
    wide, seen = browser.execute_script(
        "const page = document.documentElement; return [page.scrollWidth, page.clientWidth]"
    )
    assert wide <= seen <= width
    pictures = browser.execute_script("return [...document.images].map(i => i.naturalWidth)")
    assert pictures
    assert min(pictures) > 100
