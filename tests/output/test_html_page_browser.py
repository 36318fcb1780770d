"""The report in a real browser: it asks the network for nothing, and fits every screen."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ahpatron_cli.output.html_page import write_page
from support.browser import Browser, needs_browser, open_browser
from support.trials import FOURTEEN, ORIGIN, large_sweep, make_trial

pytestmark = [pytest.mark.slow, needs_browser]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
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
    browser: Browser, report: str, width: int, scheme: str
) -> None:
    browser.open(report, width=width, height=800, scheme=scheme, scripts=True)
    browser.script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.complaints == []
    assert {url for url in browser.requests if not url.startswith("data:")} == {report}
    assert browser.script("return document.title").startswith("ahpatron sweep: a9a")
    wide, seen = browser.script(
        "const page = document.documentElement; return [page.scrollWidth, page.clientWidth]"
    )
    assert wide <= seen <= width
    pictures = browser.script("return [...document.images].map(i => i.naturalWidth)")
    assert pictures
    assert min(pictures) > 100
