import math
import subprocess
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from msgspec.structs import replace

from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.output.escape import literal
from ahpatron_cli.output.pictures import fitted, picture_format, text_width
from ahpatron_cli.output.sweep_pictures import (
    draw_ranks,
    draw_sweep,
    parameter_panel,
    pareto_front,
    short_label,
    write_plot,
)
from ahpatron_cli.records import SummaryRecord
from ahpatron_cli.sweep.statistics import over_datasets
from ahpatron_cli.sweep.summary import (
    METRICS,
    MISTAKE_RATE,
    Criterion,
    DataFindings,
    Findings,
    Setting,
    find,
)
from support import sweeps

HOSTILE = "<script>x</script> a[/red].svm \x1b[31m $x$ $\\frac{"


def only(findings: Findings) -> DataFindings:
    (data,) = findings.datasets
    return data


def lines(axes: Axes) -> list[list[float]]:
    """Across of the lines inside the panel, without the strokes beside it."""
    inside = [line for line in axes.lines if line.get_clip_on()]
    return [list(line.get_xdata()) for line in inside]


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def made(rate: float, seconds: float) -> Setting:
    summary = SummaryRecord("a", {}, 1, rate, None, 0.0, None, seconds)
    return Setting("a", {}, {}, {}, rate, None, MISTAKE_RATE, summary)


# What is drawn


def test_budgets_come_first_and_learners_without_one_lie_flat() -> None:
    panel = parameter_panel(only(sweeps.sweep(epsilons=(0.3, 0.5))))
    assert panel is not None
    assert (panel.parameter, panel.log, panel.others) == ("budget", True, True)
    drawn = {line.learner: [value for value, _ in line.points] for line in panel.series}
    assert drawn == {name: [*sweeps.BUDGETS] for name in sweeps.FIVE[:4]} | {"perceptron": []}
    (perceptron,) = [line for line in panel.series if line.learner == "perceptron"]
    assert perceptron.level is not None


def test_each_budget_is_drawn_at_its_best_epsilon() -> None:
    data = only(sweeps.sweep(["ahpatron"], epsilons=(0.1, 0.5, 0.9)))
    panel = parameter_panel(data)
    assert panel is not None
    for budget, setting in panel.series[0].points:
        rivals = [other for other in data.settings if other.params["budget"] == budget]
        assert len(rivals) == 3
        rates = [other.summary.mistake_rate_mean for other in rivals]
        assert setting.summary.mistake_rate_mean == min(rates)


def test_a_setting_that_lacks_orders_is_not_the_best_of_its_value() -> None:
    full = [sweeps.trial("a", {"budget": 8, "x": 1}, repeat=number) for number in (0, 1)]
    lucky = sweeps.trial("a", {"budget": 8, "x": 2}, rate=0.01)
    panel = parameter_panel(only(find([lucky, *full, sweeps.trial("a", {"budget": 9, "x": 1})])))
    assert panel is not None
    assert panel.series[0].points[0][1].params["x"] == 1


@pytest.mark.parametrize(
    ("budgets", "log"),
    [((50, 400), False), ((50, 402), True), ((2, 4, 8), True), ((2, 4, 6), False)],
)
def test_budgets_over_a_factor_of_8_and_geometric_ones_need_a_logarithmic_axis(
    budgets: Sequence[int], log: bool
) -> None:
    figure = draw_sweep(sweeps.sweep(budgets=budgets))
    assert figure.axes[0].get_xscale() == ("log" if log else "linear")
    ticks = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert ticks == [str(budget) for budget in budgets]


def test_epsilon_is_next() -> None:
    panel = parameter_panel(only(sweeps.sweep(budgets=[400], epsilons=(0.0, 0.2, 0.5))))
    assert panel is not None
    assert (panel.parameter, panel.log, panel.others) == ("epsilon", False, False)
    assert [len(line.points) for line in panel.series] == [3, 0, 0, 0, 0]


def test_then_any_number() -> None:
    steps = [sweeps.trial("a", {"rule": "x", "step": 10.0**k}) for k in range(-3, 1)]
    words = [sweeps.trial("b", {"rule": word, "step": "auto"}) for word in ("x", "y")]
    endless = sweeps.trial("a", {"rule": "x", "step": float("inf")})
    found = only(find([*words, *steps, endless]))
    assert parameter_panel(found) is None  # not all learners were varied in it
    panel = parameter_panel(found, "step")
    assert panel is not None
    assert (panel.parameter, panel.log, panel.others) == ("step", True, False)
    assert [[value for value, _ in line.points] for line in panel.series] == [
        [0.001, 0.01, 0.1, 1.0],
        [],
    ]


def test_what_follows_from_the_budget_is_not_said() -> None:
    data = only(sweeps.sweep(["ahpatron"], epsilons=(0.3, 0.5)))
    assert "radius" in data.settings[0].params
    assert list(data.settings[0].varied) == ["budget", "epsilon"]
    assert data.settings[0].label == "budget=50, epsilon=0.3"
    assert short_label(data.settings[0]) == "ahpatron B=50, ε=0.3"


def test_with_nothing_varied_there_is_only_time() -> None:
    findings = sweeps.sweep(budgets=[400])
    assert parameter_panel(only(findings)) is None
    (axes,) = draw_sweep(findings).axes
    assert axes.get_xlabel() == "learning time (s)"
    assert set(texts(axes)) >= set(sweeps.FIVE)


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=20),
)
def test_the_front_is_what_brute_force_finds(points: list[tuple[int, int]]) -> None:
    front = pareto_front([made(rate, seconds) for rate, seconds in points])
    found = [(each.summary.mistake_rate_mean, each.summary.seconds_mean) for each in front]
    beaten = {
        (rate, seconds)
        for rate, seconds in points
        for other in points
        if other != (rate, seconds) and other[0] <= rate and other[1] <= seconds
    }
    assert set(found) == set(points) - beaten
    assert len(found) == len(set(found))
    assert [seconds for _, seconds in found] == sorted(seconds for _, seconds in found)


# The picture


def test_one_row_per_data_set_and_a_line_per_learner() -> None:
    figure = draw_sweep(sweeps.sweep(paths=["a.svm", "b.svm", "c.svm"]))
    ranks, *panels = figure.axes
    assert len(panels) == 6
    assert {text.split()[0] for text in texts(ranks)} >= set(sweeps.FIVE)
    for parameter, time in zip(panels[::2], panels[1::2], strict=True):
        assert parameter.get_xlabel() == "budget B"
        assert sorted(map(len, lines(parameter))) == [2, 5, 5, 5, 5]
        assert len(parameter.collections) == 4  # bands
        assert sorted(texts(parameter)) == sorted(sweeps.FIVE)
        dots = [line for line in time.lines if line.get_linestyle() == "None"]
        assert sorted(len(line.get_xdata()) for line in dots) == [1, 5, 5, 5, 5]
        assert time.get_xscale() == "log"


def test_the_front_is_joined_and_labelled() -> None:
    findings = sweeps.sweep()
    time = draw_sweep(findings).axes[1]
    front = pareto_front(only(findings).settings)
    (joined,) = [line for line in time.lines if line.get_zorder() == 1.5]
    assert list(joined.get_xdata()) == [setting.summary.seconds_mean for setting in front]
    assert texts(time) == [f"{each.learner} B={each.params['budget']}" for each in front]


@pytest.mark.parametrize(
    "findings",
    [
        sweeps.sweep(paths=["a.svm", "b.svm"]),
        sweeps.sweep(epsilons=(0.1, 0.3, 0.5, 0.7, 0.9)),
        sweeps.sweep(budgets=[400], epsilons=[number / 20 for number in range(20)]),
        sweeps.sweep(budgets=range(50, 800, 6)),
        sweeps.sweep(["ahpatron"], [400], repeats=1),
        sweeps.sweep(sweeps.FOURTEEN, [400]),
        sweeps.sweep(sweeps.FOURTEEN, paths=[f"{name}.svm" for name in "abcdef"]),
        sweeps.sweep([HOSTILE, "b" * 300], paths=[HOSTILE, "c" * 500], budgets=(50, 55, 60, 900)),
    ],
    ids=["two", "epsilons", "epsilon", "many", "one", "time", "six", "hostile"],
)
def test_no_text_lies_over_another_or_over_a_dot(findings: Findings) -> None:
    figure = draw_sweep(findings)
    FigureCanvasAgg(figure).draw()
    boxes = [(text.get_text(), text.get_window_extent().padded(-1)) for text in visible(figure)]
    for (one, box), (other, another) in combinations(boxes, 2):
        assert not box.overlaps(another), (one, other)
    for axes in figure.axes:
        panel = axes.get_window_extent()
        for label in axes.texts:
            box = label.get_window_extent()
            if axes.get_xlabel() == "learning time (s)" and box.x0 < panel.x1:
                assert inside(box, panel), label.get_text()
                for line in axes.lines:
                    if line.get_linestyle() == "None" and line.get_clip_on():
                        dots = axes.transData.transform(line.get_xydata())
                        assert not box.count_contains(dots), label.get_text()


def visible(figure: Figure) -> list[Text]:
    """All texts that are drawn: of the ticks only those on the axes."""
    found = [*figure.texts]
    for axes in figure.axes:
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        found += [
            each for each in axes.get_xticklabels() if left <= each.get_position()[0] <= right
        ]
        found += [each for each in axes.get_yticklabels() if low <= each.get_position()[1] <= high]
        found += [*axes.texts, axes.xaxis.label, axes.yaxis.label]
    return [text for text in found if text.get_text()]


def inside(box: Bbox, panel: Bbox) -> bool:
    return bool(
        panel.x0 <= box.x0 and box.x1 <= panel.x1 and panel.y0 <= box.y0 and box.y1 <= panel.y1
    )


@pytest.mark.parametrize("rate", [0.0, 0.00001, 0.5])
def test_no_rate_below_zero_is_on_the_axes(rate: float) -> None:
    trials = [sweeps.trial("a", {"budget": size}, rate=rate, seconds=size) for size in (2, 4, 8)]
    figure = draw_sweep(find(trials))
    assert figure.axes[0].get_ylim()[0] >= 0
    assert min(figure.axes[1].get_yticks()) >= 0


def test_no_time_at_all_can_be_drawn(tmp_path: Path) -> None:
    write_plot(tmp_path / "p.png", find([sweeps.trial(seconds=0.0)]))


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    findings = sweeps.sweep(["$x$", "_hidden", "\x1b[31m<b>"], paths=["$\\frac{", "数据.svm"])
    figure = draw_sweep(findings)
    assert sorted(texts(figure.axes[0])) == ["$x$", "\\x1b[31m<b>", "_hidden"]
    assert "$\\frac{" in [text.get_text() for text in figure.texts]
    write_plot(tmp_path / "p.svg", findings)
    root = ElementTree.fromstring((tmp_path / "p.svg").read_bytes())
    assert not [element for element in root.iter() if element.tag.endswith(("}b", "}script"))]


@given(st.text(max_size=60), st.floats(20, 200))
def test_a_fitted_text_fits(text: str, points: float) -> None:
    text = literal(text)
    shown = fitted(text, points, 8)
    assert text_width(shown, 8) <= points or shown == "…"
    assert shown == text or text.startswith(shown.removesuffix("…"))


# The file


@pytest.mark.parametrize(
    "suffix", [".svg", *(pytest.param(kind, marks=pytest.mark.slow) for kind in (".png", ".pdf"))]
)
def test_the_same_findings_give_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    """In fresh processes too, where hashes are seeded differently."""
    program = (
        "import sys; from ahpatron_cli.output.sweep_pictures import write_plot\n"
        "from support import sweeps\n"
        "write_plot(sys.argv[1], sweeps.sweep())"
    )
    write_plot(tmp_path / f"a{suffix}", sweeps.sweep())
    target = tmp_path / f"b{suffix}"
    folder = Path(sweeps.__file__).parents[1]
    command = [sys.executable, "-c", program, target]
    subprocess.run(command, check=True, timeout=120, cwd=folder)
    assert (tmp_path / f"a{suffix}").read_bytes() == target.read_bytes()


def test_suffixes_are_checked(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        picture_format(tmp_path / "p.csv")
    assert caught.value.code is ExitCode.USAGE
    assert caught.value.hint == "the suffix decides the format; use one of .png .svg .pdf"


def test_without_matplotlib_pictures_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError) as caught:
        picture_format("p.pdf")
    assert caught.value.problem == "writing .pdf pictures needs matplotlib"
    assert caught.value.hint == "pip install 'ahpatron-cli[plot]'"


def test_a_critical_difference_diagram() -> None:
    values = {"a": [1.0] * 8, "b": [2.0] * 8, "c": [3.0] * 8}
    (axes,) = draw_ranks(over_datasets(values)).axes
    shown = texts(axes)
    assert {"a  1.00", "b  2.00", "c  3.00", "1", "2", "3", "critical difference 1.17"} == set(
        shown
    )
    bars = [line.get_xdata() for line in axes.lines if line.get_linewidth() > 2]
    assert [[round(float(end), 2) for end in bar] for bar in bars] == [[0.96, 2.04], [1.96, 3.04]]


def test_a_metric_that_is_better_when_larger_is_drawn_better_below() -> None:
    trials = [
        replace(one, run=replace(one.run, true_positives=hits, false_negatives=100 - hits,
                false_positives=5, true_negatives=5))
        for budget, hits in ((4, 50), (8, 80))
        if (one := sweeps.trial("a", {"budget": budget})).run
    ]  # fmt: skip
    figure = draw_sweep(find(trials, criterion=Criterion(METRICS["recall"])))
    axes = figure.axes[0]
    assert axes.get_ylabel() == "Recall (%)"
    assert [list(line.get_ydata()) for line in axes.lines[:1]] == [[-50.0, -80.0]]
    figure.canvas.draw()
    assert "60" in [label.get_text() for label in axes.get_yticklabels()]


def test_the_axis_that_is_asked_for(tmp_path: Path) -> None:
    root = math.sqrt(30_000)
    findings = find(
        [
            *(
                sweeps.trial("a", {"step": 10.0**k / root, "budget": b})
                for k in (-1, 0, 1)
                for b in (4, 8)
            ),
            sweeps.trial("b", {"step": 0.25, "budget": 4}),
        ]
    )
    axes = draw_sweep(findings, "step").axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        "10^-1/√T",
        "10^0/√T",
        "10^1/√T",
    ]
    assert axes.get_xscale() == "log"
    panel = parameter_panel(only(findings), "step")
    assert panel is not None
    assert [bool(line.level) for line in panel.series] == [False, True]
    assert draw_sweep(findings).axes[0].get_xlabel().startswith("budget")
    for x, problem in (("stp", "did you mean step"), ("sigma", "use one of")):
        with pytest.raises(UserError) as refused:
            write_plot(tmp_path / "x.svg", findings, x)
        assert problem in str(refused.value.hint)
    assert list(tmp_path.iterdir()) == []


def test_what_all_were_varied_in_is_drawn_before_what_some_have() -> None:
    trials = [
        *(sweeps.trial("a", {"epsilon": e, "sigma": s}) for e in (0.3, 0.5) for s in (1.0, 2.0)),
        *(sweeps.trial("b", {"sigma": s}) for s in (1.0, 2.0)),
    ]
    both, one = only(find(trials)), only(find(trials[:4]))
    assert getattr(parameter_panel(both), "parameter", None) == "sigma"
    assert getattr(parameter_panel(one), "parameter", None) == "epsilon"
