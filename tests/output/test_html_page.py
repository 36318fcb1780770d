import base64
import hashlib
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from ahpatron_cli.output.html_page import to_html
from ahpatron_cli.sweep.summary import summarise_trials
from support.trials import large_sweep, make_data, make_trial

HOSTILE = "<script>alert(1)</script>\"'& a[/red].svm \x1b[31m $x$"
VOID = {"meta", "br", "img", "source"}


class Page(HTMLParser):
    """What a page holds; fails where an element is closed that is not the last one opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.words.append((self.open[-1] if self.open else "", data.strip()))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def said(self, *tags: str) -> list[str]:
        return [text for tag, text in self.words if tag in tags]


def rows(text: str) -> list[list[str]]:
    """The cells of every row of every table body, without markup."""
    return [
        [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for body in re.findall("<tbody>(.*?)</tbody>", text, re.DOTALL)
        for row in re.findall("<tr[^>]*>(.*?)</tr>", body, re.DOTALL)
    ]


def test_the_page_has_the_numbers_of_the_tables() -> None:
    trials = [
        trial
        for k in (0, 1)
        for trial in (
            make_trial("a", 0.10 + 0.02 * k, k, params={"budget": 4}, support_size=4),
            make_trial("a", 0.11 + 0.03 * k, k, params={"budget": 8}, support_size=8),
            make_trial("b", 0.20 + 0.02 * k, k, seconds=2, margin_updates=12),
        )
    ]
    text = to_html(summarise_trials(trials))
    best = ["50", "4/4", "0.051"]
    worse = ["12", "314", "2.000"]
    assert rows(text) == [
        ["a", "11.00 ± 1.41", "budget=4", "–", "best", *best],
        ["b", "21.00 ± 1.41", "–", "+10.00 ± 0.00", "worse", *worse],
        ["a", "▸ 11.00 ± 1.41", "budget=4", *best],
        ["a", "12.50 ± 2.12", "budget=8", "50", "8/8", "0.051"],
        ["b", "▸ 21.00 ± 1.41", "–", *worse],
    ]
    assert text.count('<tr class="best"><th scope="row">a</th><td class="number">') == 2
    assert text.count('<tr class="best">') == 2


def test_failed_trials_are_listed_with_their_reasons() -> None:
    failed = make_trial("bogd", None, 7, error="<b>no memory")
    page = Page(to_html(large_sweep(failed=[failed])))
    assert "1 trial: <b>no memory" in page.said("li")
    alone = Page(to_html(summarise_trials([failed])))
    assert alone.said("h1") == ["ahpatron sweep: no trial was completed"]
    assert "1 trial: <b>no memory" in alone.said("li")


def test_nothing_from_outside_becomes_markup() -> None:
    params = {HOSTILE: HOSTILE}
    data = make_data(HOSTILE)
    trials = [
        make_trial(HOSTILE, None if error else 0.1, k, params=params | {"budget": k}, data=data,
                   error=error)
        for k, error in enumerate((None, None, HOSTILE))
    ]  # fmt: skip
    text = to_html(summarise_trials(trials, [{HOSTILE: HOSTILE, "command": HOSTILE}]))
    page = Page(text)
    assert not page.all("script")
    shown = HOSTILE.replace("\x1b", "\\x1b")
    assert page.said("pre") == [shown]
    for tag in ("dt", "dd", "th"):
        assert shown in page.said(tag), tag
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
    assert "\x1b" not in text


def test_the_policy_allows_the_style_sheet_and_nothing_else() -> None:
    text = to_html(large_sweep())
    (policy,) = [meta["content"] for meta in Page(text).all("meta") if "http-equiv" in meta]
    (style,) = re.findall("<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    assert "url(" not in style
    assert "@import" not in style
    assert not re.search(r"https?://", text)


@pytest.fixture(scope="module")
def page_of_two() -> Page:
    """The report on a sweep over two data sets."""
    return Page(to_html(large_sweep(paths=["a.svm", "b.svm"])))


def test_every_picture_has_a_dark_version_and_says_what_it_shows(page_of_two: Page) -> None:
    images = page_of_two.all("img")
    assert len(images) == len(page_of_two.all("source")) == 4
    assert all(str(one["alt"]).startswith("Mistakes against ") for one in images)


def test_no_dark_picture_has_colours_of_a_light_page(page_of_two: Page) -> None:
    light = [one["src"] for one in page_of_two.all("img")]
    dark = [one["srcset"] for one in page_of_two.all("source")]
    start = "data:image/svg+xml;base64,"
    for pair in zip(light, dark, strict=True):
        seen, night = (base64.b64decode(str(one).removeprefix(start)) for one in pair)
        assert ElementTree.fromstring(night).tag.endswith("svg")
        assert b"#333333" in seen
        assert not re.search(rb"#(333333|000000|ffffff)", night)
        assert b"#000000" not in seen  # which matplotlib leaves out, and a dark page would hide


def test_every_link_of_a_report_leads_to_one_place(page_of_two: Page) -> None:
    elements = page_of_two.elements
    identifiers = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    links = [str(link["href"]).removeprefix("#") for link in page_of_two.all("a")]
    assert set(links) <= set(identifiers)
