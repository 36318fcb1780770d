"""Pictures: what is drawn, that nothing collides, and the files."""

import math
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.typing import ArrayLike

from ahpatron_cli.core.registry import BUILT_IN
from ahpatron_cli.errors import UserError
from ahpatron_cli.output import pictures
from ahpatron_cli.output.pictures import (
    draw_curves,
    draw_sweep,
    looks,
    panels_of,
    pareto_front,
    write_curve,
    write_plot,
)
from ahpatron_cli.records import Curve
from ahpatron_cli.sweep.summary import (
    METRICS,
    MISTAKE_RATE,
    Criterion,
    Setting,
    SweepSummary,
    settings_of,
    summarise_trials,
)
from support import trials
from support.trials import BUDGETS, FOURTEEN, large_sweep, make_data, make_trial

CSV = """\
learner,round,mistakes,mistake_rate
ahpatron,1,1,1.0
ahpatron,10,2.5,0.25
ahpatron,100,7,0.07
'=avp,3,1,0.3333333333333333
"""


@pytest.fixture(autouse=True)
def style() -> Iterator[None]:
    """The style in which files are drawn."""
    with rc_context(fname=Path(pictures.__file__).with_name("pictures.mplstyle")):
        yield


def make_curve(label: str, rounds: ArrayLike, mistakes: ArrayLike) -> Curve:
    return Curve(label, np.array(rounds), np.array(mistakes, dtype=float))


# Curves -------------------------------------------------------------------------------------------


def test_a_curve_is_written_as_csv(tmp_path: Path) -> None:
    curves = [make_curve("ahpatron", (1, 10, 100), (1, 2.5, 7)), make_curve("=avp", [3], [1])]
    write_curve(tmp_path / "c.csv", curves)
    assert (tmp_path / "c.csv").read_text() == CSV


@pytest.mark.parametrize("count", [1, 12])
def test_curves_can_be_drawn(tmp_path: Path, count: int) -> None:
    rounds = np.arange(1, 501)
    curves = [make_curve(f"{n}", rounds, np.ceil(rounds * (n + 1) / 100)) for n in range(count)]
    for name in ("c.png", "d.png"):
        write_curve(tmp_path / name, curves)
    assert (tmp_path / "c.png").read_bytes() == (tmp_path / "d.png").read_bytes()


def test_the_axis_of_curves_is_scaled_to_the_learners() -> None:
    """Not to their first rounds, nor to a baseline far above them, which is named at the edge."""
    rounds = np.arange(1, 1001)
    mistakes = np.minimum(rounds, 50)
    low, high = (replace(make_curve("avp", rounds, mistakes), baseline=b) for b in (0.55, 0.9))
    for curve, name, lines in (
        (low, "baseline  55.00 %", 2),
        (high, "baseline  90.00 %, above", 1),
    ):
        axes = draw_curves([curve]).axes[0]
        assert [text.get_text() for text in axes.texts] == ["avp  5.00 %", name]
        assert 50 < axes.get_ylim()[1] < 70
        assert len(axes.lines) == lines


def test_a_learner_looks_the_same_in_all_pictures() -> None:
    names = list(BUILT_IN)
    every = looks(names)
    alone = {name: looks([name])[name] for name in names}
    assert every == alone
    distinct = {(look["color"], look["marker"], str(look["linestyle"])) for look in every.values()}
    assert len(distinct) == len(names)
    paper = looks(["ahpatron", "pomdr", "nogd", "bogd++", "fogd", "projectron", "projectron++"])
    for part in ("color", "marker"):
        assert len({look[part] for look in paper.values()}) == 7
    mine = looks(["mine", "ahpatron", "yours"])
    assert mine["ahpatron"] == every["ahpatron"]
    assert mine["mine"] not in every.values()


# What a sweep draws -------------------------------------------------------------------------------


def test_budgets_come_first_and_each_is_drawn_at_its_best_epsilon() -> None:
    summary = large_sweep(epsilons=(0.1, 0.5, 0.9))
    axes = draw_sweep(summary).axes[0]
    assert axes.get_xlabel() == "budget B"
    settings = [one for one in summary.datasets[0].settings if one.learner == "ahpatron"]
    best = [
        100 * min(one.mean for one in settings if one.params["budget"] == budget)
        for budget in BUDGETS
    ]
    assert list(axes.lines[0].get_xdata()) == [*BUDGETS]
    assert list(axes.lines[0].get_ydata()) == pytest.approx(best)


def test_the_axis_is_what_is_asked_for() -> None:
    steps = [{"step": 10.0**k, "sigma": 2.0**k} for k in range(-3, 1)]
    values: list[dict[str, Any]] = [*steps, {"step": "auto"}, {"step": "none"}, {"step": math.inf}]
    summary = summarise_trials([make_trial("a", 0.1, params=one) for one in values])
    axes = draw_sweep(summary, "step").axes[0]
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "step")


def halved(step: float) -> SweepSummary:
    """A search by halving that ran one value of the step to the end."""
    first_rounds = make_data(prefix=100)
    dropped = [
        make_trial("a", 0.3, params={"step": value}, data=first_rounds) for value in (1.0, 2.0)
    ]
    return summarise_trials([make_trial("a", 0.1, params={"step": step}), *dropped])


def test_one_value_that_is_left_by_halving_is_a_dot() -> None:
    axes = draw_sweep(halved(0.5), "step").axes[0]
    assert axes.get_xlabel() == "step"
    assert list(axes.lines[0].get_xdata()) == [0.5]


def test_a_parameter_of_which_no_finite_value_is_left_is_not_drawn() -> None:
    (axes,) = draw_sweep(halved(math.inf), "step").axes
    assert axes.get_xlabel().startswith("learning time")


def made(rate: float, seconds: float) -> Setting:
    (setting,) = settings_of([make_trial("a", rate / 10, seconds=seconds)], MISTAKE_RATE)
    return setting


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=20))
def test_the_front_is_what_brute_force_finds(points: list[tuple[int, int]]) -> None:
    front = pareto_front([made(rate, seconds) for rate, seconds in points])
    found = [(round(10 * each.mean), int(each.means.seconds_mean)) for each in front]
    beaten = {
        one
        for one in points
        for other in points
        if other != one and other[0] <= one[0] and other[1] <= one[1]
    }
    assert sorted(found) == sorted(set(points) - beaten)
    assert [seconds for _, seconds in found] == sorted(seconds for _, seconds in found)


@pytest.mark.parametrize(
    "summary",
    [
        large_sweep(paths=["a.svm", "b.svm"]),
        large_sweep(epsilons=(0.1, 0.3, 0.5, 0.7, 0.9)),
        large_sweep(budgets=[400], epsilons=[number / 20 for number in range(20)]),
        large_sweep(budgets=range(50, 800, 6)),
        large_sweep(["ahpatron"], [400], repeats=1),
        large_sweep(FOURTEEN, [400]),
        large_sweep(FOURTEEN, paths=[f"{name}.svm" for name in "abc"]),
    ],
    ids=["two", "epsilons", "epsilon", "many", "one", "time", "three"],
)
def test_no_text_lies_over_another(summary: SweepSummary) -> None:
    figure = draw_sweep(summary)
    FigureCanvasAgg(figure).draw()
    # without the line from an annotation to its place
    boxes = [(one.get_text(), Text.get_window_extent(one).padded(-1)) for one in visible(figure)]
    for (one, box), (other, another) in combinations(boxes, 2):
        assert not box.overlaps(another), (one, other)


def visible(figure: Figure) -> list[Text]:
    """All texts that are drawn: of the ticks only those on the axes."""
    found = [*figure.texts]
    for axes in figure.axes:
        (left, right), (low, high) = sorted(axes.get_xlim()), sorted(axes.get_ylim())
        found += [t for t in axes.get_xticklabels() if left <= t.get_position()[0] <= right]
        found += [t for t in axes.get_yticklabels() if low <= t.get_position()[1] <= high]
        found += [*axes.texts, axes.xaxis.label, axes.yaxis.label]
    return [text for text in found if text.get_text()]


@pytest.mark.parametrize(("rate", "seconds"), [(0.0, 0.0), (0.00001, 1.0), (0.5, 1.0)])
def test_extreme_rates_and_times_can_be_drawn(tmp_path: Path, rate: float, seconds: float) -> None:
    summary = summarise_trials(
        [make_trial("a", rate, params={"budget": b}, seconds=b * seconds) for b in (2, 4, 8)]
    )
    write_plot(tmp_path / "p.png", summary)
    assert all(axes.get_ylim()[0] == 0 for axes in draw_sweep(summary).axes)


def ranked(gaps: Sequence[float]) -> SweepSummary:
    """Learners on six data sets, always in the same order."""
    names = FOURTEEN[: len(gaps)]
    return summarise_trials(
        [
            make_trial(name, 0.1 + gap, data=make_data(f"{path}.svm"))
            for path in "abcdef"
            for name, gap in zip(names, gaps, strict=True)
        ]
    )


@pytest.mark.parametrize("count", [3, 5, 14])
def test_the_ranks_are_a_critical_difference_diagram(count: int) -> None:
    summary = ranked([number / 100 for number in range(count)])
    figure = draw_sweep(summary, chosen=("ranks",))
    (axes,) = figure.axes
    FigureCanvasAgg(figure).draw()
    shown = [text.get_text() for text in axes.texts]
    assert f"{FOURTEEN[0]}  1.00" in shown
    assert f"{count}.00  {FOURTEEN[count - 1]}" in shown
    assert any(text.startswith("critical difference") for text in shown)
    thick = [line for line in axes.lines if line.get_linewidth() == 3]
    assert len(thick) == len(summary.ranks.groups) > 0
    boxes = [text.get_window_extent() for text in axes.texts]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


@pytest.mark.parametrize(
    ("chosen", "labels"),
    [
        (("time",), ["learning time"]),
        (("parameter",), ["budget B"]),
        (("time", "parameter"), ["budget B", "learning time"]),
    ],
)
def test_the_panels_are_those_chosen(chosen: tuple[str, ...], labels: list[str]) -> None:
    figure = draw_sweep(large_sweep(), chosen=chosen)
    found = [axes.get_xlabel() for axes in figure.axes]
    assert len(found) == len(labels)
    assert all(one.startswith(label) for one, label in zip(found, labels, strict=True))


def test_panels_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such panel"):
        write_plot(tmp_path / "p.png", large_sweep(), chosen=("ranks",))
    with pytest.raises(UserError, match="rank"):
        panels_of("time,rank")


def test_fonts_are_embedded_in_pdf_files_as_outlines(tmp_path: Path) -> None:
    """Publishers refuse Type 3 fonts."""
    write_plot(tmp_path / "p.pdf", large_sweep())
    content = (tmp_path / "p.pdf").read_bytes()
    assert b"/FontFile2" in content
    assert b"/Type3" not in content


def test_a_metric_that_is_better_when_larger() -> None:
    summary = summarise_trials(
        [
            make_trial("a", 0.1, params={"budget": budget}, seconds=budget, confusion=confusion)
            for budget, hits in ((4, 50), (8, 80))
            for confusion in [((5, 5), (100 - hits, hits))]
        ],
        criterion=Criterion(METRICS["recall"]),
    )
    parameter, time = draw_sweep(summary).axes
    assert parameter.get_ylabel() == time.get_ylabel() == "Recall (%)"
    assert list(parameter.lines[0].get_ydata()) == [50.0, 80.0]


# Files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "suffix", [".svg", *(pytest.param(kind, marks=pytest.mark.slow) for kind in (".png", ".pdf"))]
)
def test_the_same_findings_give_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    """In fresh processes too, where hashes are seeded differently."""
    program = (
        "import sys; from ahpatron_cli.output.pictures import write_plot\n"
        "from support.trials import large_sweep\n"
        "write_plot(sys.argv[1], large_sweep())"
    )
    write_plot(tmp_path / f"a{suffix}", large_sweep())
    target = tmp_path / f"b{suffix}"
    folder = Path(trials.__file__).parents[1]
    command = [sys.executable, "-c", program, target]
    subprocess.run(command, check=True, timeout=120, cwd=folder)
    assert (tmp_path / f"a{suffix}").read_bytes() == target.read_bytes()
    assert not re.search(rb"dc:date|20\d\d-\d\d-\d\d", target.read_bytes())


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    summary = large_sweep(["$x$", "_hidden", "\x1b[31m<b>"], paths=["$\\frac{", "数据.svm"])
    figure = draw_sweep(summary)
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert sorted(shown) == ["$x$", "\\x1b[31m<b>", "_hidden"]
    assert "$\\frac{" in figure.axes[0].get_title(loc="left")
    write_plot(tmp_path / "p.svg", summary)
    root = ElementTree.fromstring((tmp_path / "p.svg").read_bytes())
    assert not [element for element in root.iter() if element.tag.endswith(("}b", "}script"))]
