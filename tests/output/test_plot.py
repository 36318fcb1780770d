import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.output.pictures import draw_curves, pens, picture_format, spread, write_curve
from ahpatron_cli.records import Curve

CSV = """\
learner,round,mistakes,mistake_rate
ahpatron,1,1,1.0
ahpatron,10,2.5,0.25
ahpatron,100,7,0.07
'=avp,3,1,0.3333333333333333
"""


def make_curve(
    label: str = "ahpatron", rounds: ArrayLike = (1, 10, 100), mistakes: ArrayLike = (1, 2.5, 7)
) -> Curve:
    return Curve(label, np.array(rounds), np.array(mistakes, dtype=float))


def many(count: int) -> list[Curve]:
    rounds = np.arange(1, 501)
    return [
        make_curve(f"learner {number}", rounds, np.ceil(rounds * (number + 1) / 100))
        for number in range(count)
    ]


def labels(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def test_csv(tmp_path: Path) -> None:
    write_curve(tmp_path / "c.csv", [make_curve(), make_curve("=avp", [3], [1])])
    assert (tmp_path / "c.csv").read_text() == CSV


@pytest.mark.parametrize("count", [1, 3, 8, 30])
def test_png(tmp_path: Path, count: int) -> None:
    write_curve(tmp_path / "c.png", many(count))
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_svg_has_no_date_and_the_same_bytes_every_time(tmp_path: Path) -> None:
    """In fresh processes too, where hashes are seeded differently."""
    program = (
        "import sys, numpy as np; from ahpatron_cli.records import Curve\n"
        "from ahpatron_cli.output.pictures import write_curve\n"
        "write_curve(sys.argv[1], [Curve('a', np.arange(1, 9), np.arange(8.0))])"
    )
    for name in ("a.svg", "b.svg"):
        subprocess.run([sys.executable, "-c", program, tmp_path / name], check=True, timeout=120)
    first = (tmp_path / "a.svg").read_text()
    assert first == (tmp_path / "b.svg").read_text()
    assert "</svg>" in first
    assert not re.search(r"dc:date|20\d\d-\d\d-\d\d", first)


def test_png_has_the_same_bytes_every_time(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        write_curve(tmp_path / name, many(3))
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_every_learner_is_named_at_its_end() -> None:
    figure = draw_curves([make_curve(), make_curve("avp", [1, 100], [0, 20])])
    assert labels(figure) == ["ahpatron  7.00 %", "avp  20.00 %"]


def test_axes_are_labelled() -> None:
    axes = draw_curves(many(2)).axes[0]
    assert axes.get_xlabel() == "round $t$"
    assert axes.get_ylabel() == r"mistake rate $|M_t|\;/\;t$ (%)"


def test_no_two_pens_are_alike() -> None:
    assert len({(pen.colour, pen.stroke) for pen in pens(28)}) == 28
    assert len({(pen.colour, pen.marker) for pen in pens(28)}) == 28


def test_names_are_no_mathematics_and_hold_no_control_characters(tmp_path: Path) -> None:
    strange = make_curve("$\\frac{$ \x1b[31m_数据")
    assert labels(draw_curves([strange])) == ["$\\frac{$ \\x1b[31m_数据  7.00 %"]
    write_curve(tmp_path / "c.png", [strange])


def test_the_wild_first_rounds_do_not_press_the_rest_flat() -> None:
    rounds = np.arange(1, 10_001)
    axes = draw_curves([make_curve("a", rounds, 1 + rounds // 20)]).axes[0]
    assert axes.get_ylim()[1] < 10


@pytest.mark.parametrize("mistakes", [(0, 0), (1, 2), (1, 1)])
def test_flat_and_tiny_curves_can_be_drawn(tmp_path: Path, mistakes: tuple[float, ...]) -> None:
    write_curve(tmp_path / "c.png", [make_curve("a", (1, 2), mistakes)])
    write_curve(tmp_path / "d.png", [make_curve("a", (1,), mistakes[:1])])
    assert draw_curves([make_curve("a", (1, 2), mistakes)]).axes[0].get_ylim()[0] >= 0


@given(st.lists(st.floats(0, 100), min_size=1, max_size=12))
def test_labels_never_overlap_and_keep_their_order(wanted: list[float]) -> None:
    places = spread(wanted, gap=5.0, low=0.0, high=100.0)
    pairs = sorted(zip(wanted, places, strict=True), key=lambda pair: (pair[1], pair[0]))
    assert [end for end, _ in pairs] == sorted(wanted)
    for (_, lower), (_, upper) in pairwise(pairs):
        assert upper - lower >= 5.0 - 1e-9
    assert min(places) >= -1e-9
    assert max(places) <= 100 + 1e-9


def test_labels_with_room_stay_where_they_are() -> None:
    assert spread([50.0, 10.0, 90.0], gap=5, low=0, high=100) == [50.0, 10.0, 90.0]
    assert spread([50.0, 50.0], gap=4, low=0, high=100) == [48.0, 52.0]


@pytest.mark.parametrize("path", ["c.eps", "curve", "c.jpg"])
def test_other_suffixes_are_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(UserError) as caught:
        write_curve(tmp_path / path, [make_curve()])
    assert caught.value.code is ExitCode.USAGE
    assert caught.value.hint == "the suffix decides the format; use one of .csv .png .svg .pdf"
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_pictures_are_refused_and_csv_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError) as caught:
        picture_format(tmp_path / "c.svg", "csv")
    assert caught.value.code is ExitCode.USAGE
    assert caught.value.problem == "writing .svg pictures needs matplotlib"
    assert "pip install 'ahpatron-cli[plot]'" in caught.value.hint
    assert picture_format(tmp_path / "c.csv", "csv") == "csv"


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        write_curve(tmp_path / "nowhere" / "c.csv", [make_curve()])
    assert caught.value.code is ExitCode.CANNOT_CREATE


def test_title_band_and_baseline(tmp_path: Path) -> None:
    rounds, mistakes = np.arange(1, 101), np.arange(1, 101) / 4
    about = "a$b$.svm, B = 100, σ = 0.44 (auto)"
    curve = Curve("avp", rounds, mistakes, sd=np.ones(100), baseline=0.4, about=about)
    figure = draw_curves([curve])
    (axes,) = figure.axes
    assert axes.get_title(loc="left") == "a$b$.svm, B = 100, σ = 0.44 (auto), mean ± sd"
    assert labels(figure) == ["avp  25.00 %", "baseline  40.00 %"]
    (band,) = axes.collections
    assert band.get_datalim(axes.transData).ymax == pytest.approx(125)  # 1/4 + 1 in the first round
    write_curve(tmp_path / "c.pdf", [curve])
    assert (tmp_path / "c.pdf").read_bytes().startswith(b"%PDF")
    two = draw_curves([curve, make_curve("rbp", rounds, mistakes)])
    assert labels(two)[-1].startswith("rbp")  # files differ in their baselines
