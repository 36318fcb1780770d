"""What learners, players and errors promise to whoever uses them."""

from __future__ import annotations

import dataclasses
import math
import pickle
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from ahpatron_cli.core import (
    REGISTRY,
    Ahpatron,
    Alma,
    BudgetPerceptron,
    Gaussian,
    Learner,
    Linear,
    Norma,
    Perceptron,
    Player,
    choice,
    find_learner,
    integer,
    learner_source,
    play,
    register,
    registry,
)
from ahpatron_cli.core.errors import (
    ColumnError,
    LearnerLoadError,
    LimitReachedError,
    NoClassError,
    NumericalError,
    ParameterError,
)
from ahpatron_cli.core.expansion import Expansion, Hypothesis
from ahpatron_cli.testing import check_learner
from support.streams import make_stream

STREAM = make_stream(seed=4, rounds=300, features=3)
OWN = Path(__file__).parents[2] / "docs" / "examples" / "own_learner.py"


# Errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        ParameterError("horizon must be given", "horizon", "missing"),
        NumericalError("‖f‖² overflows", 17),
        LimitReachedError("too many", "max_support"),
        LearnerLoadError("no such class", "x.py"),
        NoClassError("no such class", "x.py", ("A", "B")),
        ColumnError("column 0 is not in S"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_pickling(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error) == error.args[0]
    assert vars(again) == vars(error)


# The loop ---------------------------------------------------------------------------------------


@dataclasses.dataclass
class Clipping(Perceptron):
    """Its coefficients are capped, then the oldest is dropped, and f projected."""

    def update(self, f: Expansion, y: float, margin: float) -> None:
        f.add(1.5 * y)
        f.cap(0.9)
        if f.size > 8:
            f.drop(f.oldest)
            f.project(1.5)


@dataclasses.dataclass
class Lenient(Perceptron):
    """A threshold below 0: the first example joins all the same."""

    update_below = -0.1


@dataclasses.dataclass
class Restarting(Perceptron):
    """Continues with an empty f as soon as S has four examples."""

    def update(self, f: Expansion, y: float, margin: float) -> None:
        f.add(y)
        if f.size == 4:
            f.successor = Expansion(f.kernel)


@dataclasses.dataclass
class DroppingFirst(Perceptron):
    """Drops a column by its number, which is that of an example of S only at first."""

    multiclass: str = choice("", "several classes", "shared", "rest")
    column: int = integer("", "what is dropped", default=0, at_least=-1)

    def update(self, f: Expansion, y: float, margin: float) -> None:
        f.add(y)
        if f.size > 3:
            f.drop(self.column)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("column", [-1, 0, 10**6])
def test_only_examples_of_s_can_be_dropped(column: int, classes: int) -> None:
    player = Player(DroppingFirst(column=column), Gaussian(sigma=0.5), classes=classes)
    y = STREAM.y
    if classes == 3:
        y = np.arange(len(y)) % 3.0
    with pytest.raises(ColumnError, match=rf"drop\({column}\): column {column} is not in S"):
        player.feed(STREAM.X, y)


@pytest.mark.parametrize("kind", [Clipping, Lenient, Restarting])
def test_unusual_learners_obey_the_laws(kind: type[Learner]) -> None:
    check_learner(kind)


@pytest.mark.parametrize("shrinkage", [0.99, 1e-3])
@pytest.mark.parametrize("kind", [Norma, REGISTRY["silk"]])
def test_a_scale_that_would_underflow_is_folded(kind: Any, shrinkage: float) -> None:
    step = 1.0 if kind is Norma else 1e6
    check_learner(kind, budget=20, step=step, shrinkage=shrinkage)


@dataclasses.dataclass
class Calling(Perceptron):
    """Is called in rounds 0, 1, 3, 7, … whatever the margin."""

    calls: ClassVar[list[int]]
    update_below = -math.inf
    next_call = 0
    state_fields = ("next_call",)

    def update(self, f: Expansion, y: float, margin: float) -> bool:
        self.calls.append(self.round)
        if self.round == self.next_call:
            self.next_call = 2 * self.next_call + 1
        if not f.size:
            f.add(y)
        return False


@dataclasses.dataclass
class Former(Perceptron):
    """Names its counter in `kept`, as was usual up to version 1.0."""

    kept = (*Perceptron.kept, "counted")
    counted = 0

    def update(self, f: Expansion, y: float, margin: float) -> None:
        self.counted += 1
        f.add(y)


def test_attributes_that_a_learner_names_in_kept_are_saved() -> None:
    player = play(Former(), STREAM.X, STREAM.y)
    again = Player(Former(), horizon=300).load_state_dict(player.state_dict())
    assert again.learner.counted == player.learner.counted > 0


@pytest.mark.parametrize("block", [1, 7, 64, 256])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_learner_is_called_in_the_rounds_that_it_names(block: int, classes: int) -> None:
    Calling.calls = []
    y = STREAM.y if classes == 2 else (STREAM.y + 1) / 2
    player = Player(Calling(), Gaussian(), classes=classes, block=block)
    for start in range(0, 300, 50):
        player.feed(STREAM.X[start : start + 50], y[start : start + 50])
    named = [0, 1, 3, 7, 15, 31, 63, 127, 255]
    mistakes = [t for t in Calling.calls if t not in named]  # f(x) = 0 and y = -1
    assert sorted(set(Calling.calls) - set(mistakes)) == named
    assert len(mistakes) < 5
    assert player.tally.updates == 0


def test_weights_are_positive_numbers_and_only_for_learners_that_can_use_them() -> None:
    for weights in ([1.0], np.full(300, -1.0), np.full(300, np.inf)):
        with pytest.raises(ValueError, match="weight"):
            Player(Ahpatron()).feed(STREAM.X, STREAM.y, weights)
    Player(Perceptron()).feed(STREAM.X, STREAM.y, np.ones(300))
    with pytest.raises(ParameterError, match="perceptron cannot weigh examples"):
        Player(Perceptron()).feed(STREAM.X, STREAM.y, np.full(300, 2.0))


def test_a_block_that_fails_is_not_counted_and_leaves_a_closed_f() -> None:
    @dataclasses.dataclass
    class Failing(Perceptron):
        def update(self, f: Expansion, y: float, margin: float) -> None:
            f.add(y)
            if self.round > 100:
                raise ZeroDivisionError

    player = Player(Failing())
    with pytest.raises(ZeroDivisionError):
        player.feed(STREAM.X, STREAM.y)
    assert player.tally.rounds == 64
    assert np.isfinite(player.scores(STREAM.X)).all()
    player.state_dict()


def test_a_hypothesis_without_its_methods_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Hypothesis()  # type: ignore[abstract]


@pytest.mark.parametrize("options", [{"classes": 1}, {"classes": 0}, {"block": 0}, {"block": -64}])
def test_impossible_players_are_refused(options: dict[str, int]) -> None:
    (name, value) = next(iter(options.items()))
    with pytest.raises(ParameterError, match=f"{name} must be .*, got {value}") as refused:
        Player(Perceptron(), **options)
    assert refused.value.name == name


# Learners of others ---------------------------------------------------------------------------


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> registry.Registry:
    """A registry that finds three entry points, of which two are broken."""
    (tmp_path / "some_learners.py").write_text(OWN.read_text() + "\nNothing = 3\n")
    (tmp_path / "broken_learners.py").write_text("import nothing_of_that_name\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    values = ("some_learners:SmallestGoes", "some_learners:Nothing", "broken_learners:X")
    points = [
        metadata.EntryPoint(name, value, registry.GROUP)
        for name, value in zip(("smallest-goes", "nothing", "broken"), values, strict=True)
    ]
    for point in points:
        vars(point)["dist"] = SimpleNamespace(name="some-learners", version="1.2")
    monkeypatch.setattr(metadata, "entry_points", lambda group: points)
    fresh = registry.Registry(registry.BUILT_IN)
    monkeypatch.setattr(registry, "REGISTRY", fresh)
    yield fresh
    for name in ("some_learners", "broken_learners"):
        sys.modules.pop(name, None)


def test_entry_points_are_learners_and_broken_ones_are_named(plugins: registry.Registry) -> None:
    assert list(plugins)[-3:] == ["smallest-goes", "nothing", "broken"]
    kind = registry.find_learner("smallest-goes")
    assert play(kind(budget=5), STREAM.X, STREAM.y).f.size == 5
    assert learner_source(kind) == "some-learners 1.2"
    assert plugins["ahpatron"] is Ahpatron
    with pytest.raises(LearnerLoadError, match=r"'broken' of some-learners 1\.2") as refusal:
        plugins["broken"]
    assert "nothing_of_that_name" in str(refusal.value)
    with pytest.raises(LearnerLoadError, match=r"some-learners 1\.2 is no subclass of Learner"):
        plugins["nothing"]
    with pytest.raises(KeyError):
        plugins["unheard-of"]


def test_a_learner_in_a_file_is_known_by_its_hash(tmp_path: Path) -> None:
    kind = find_learner(f"{OWN}:SmallestGoes")
    assert find_learner(f"{OWN}:SmallestGoes") is kind
    copied = tmp_path / "mine.py"
    copied.write_text(OWN.read_text().replace("1.0 - margin", "2.0 - margin"))
    other = find_learner(f"{copied}:SmallestGoes")
    assert other is not kind
    assert learner_source(kind).startswith("sha256:")
    assert learner_source(kind) != learner_source(other)
    assert learner_source(Ahpatron) == "built-in"
    pickle.loads(pickle.dumps(kind()))


DECLARED = """
from dataclasses import dataclass
from ahpatron_cli.core import Learner, real

@dataclass
class X(Learner):
 name = title = "x"
"""


NO_LEARNER = {
    "no such class": ("x = 1", "Missing", "has no class 'Missing'; no learner is in it"),
    "no Python": ("def f(:", "X", "SyntaxError"),
    "an error while it is imported": ("1 / 0", "X", "ZeroDivisionError"),
    "a class without a name": (
        "from ahpatron_cli.core import Learner\nclass X(Learner): pass",
        "X",
        "`name`",
    ),
    "a class that is no dataclass": (DECLARED.replace("@dataclass", ""), "X", "@dataclass"),
    "wants of version 0.2": (
        f"{DECLARED} def wants(self, margin, y): return True",
        "X",
        "own-learners.md",
    ),
    "each_round of version 0.2": (
        f"{DECLARED} def each_round(self, f, margin, y): pass",
        "X",
        "own-learners.md",
    ),
    "update of version 0.2": (
        f"{DECLARED} def update(self, f, margin, y): f.add(y)",
        "X",
        "own-learners.md",
    ),
    "observe, which is gone": (
        f"{DECLARED} def observe(self, block): pass",
        "X",
        "no longer called",
    ),
    "a parameter of a reserved name": (
        f"{DECLARED} weight: float = real('w', 'of what', 1.0)",
        "X",
        "`weight`",
    ),
    "an import of version 0.2": (
        "from ahpatron_cli.core.learners.base import Margin",
        "X",
        "own-learners.md",
    ),
}
"""What is wrong: the content of a file, the name of the class, and what the refusal says."""


@pytest.mark.parametrize("fault", NO_LEARNER)
def test_a_file_without_a_learner_is_refused(tmp_path: Path, fault: str) -> None:
    content, name, said = NO_LEARNER[fault]
    (tmp_path / "m.py").write_text(content)
    with pytest.raises(LearnerLoadError, match=said):
        find_learner(f"{tmp_path / 'm.py'}:{name}")
    with pytest.raises(LearnerLoadError, match="FileNotFoundError"):
        find_learner(f"{tmp_path / 'none.py'}:X")


def test_a_name_belongs_to_one_class(plugins: registry.Registry) -> None:
    kind = find_learner(f"{OWN}:SmallestGoes")

    @dataclasses.dataclass
    class Imposter(Perceptron):
        name = "ahpatron"

    with pytest.raises(ValueError, match="another learner 'ahpatron'"):
        register(Imposter)
    kind_of_ours = dataclasses.dataclass(type("Ours", (kind,), {"name": "ours"}))
    assert register(kind_of_ours) is kind_of_ours
    assert registry.find_learner("ours") is kind_of_ours


# Margins on the threshold --------------------------------------------------------------------


def updates_at(learner: Learner, margin: float) -> int:
    """Updates with a second example whose margin is this: κ is 1 everywhere, and f(x) = a."""
    player = Player(learner, Gaussian(sigma=1e9))
    player.feed(np.zeros((1, 1)), [1.0])
    assert isinstance(player.f, Expansion)
    player.f.a[:] = margin
    before = player.tally.updates
    player.feed(np.zeros((1, 1)), [1.0])
    return player.tally.updates - before


@pytest.mark.parametrize("name", ["arow", "bogd", "bpa-s", "bsgd", "polk", "projectron++"])
def test_a_margin_that_misses_1_by_rounding_is_no_loss(name: str) -> None:
    assert updates_at(REGISTRY[name](), 1 - 1e-12) == 0
    assert updates_at(REGISTRY[name](), 1 - 1e-8) == 1


def test_a_margin_on_the_threshold_is_one() -> None:
    """Up to rounding; on a threshold of 0, a margin of 0 is a mistake for the label -1."""
    for learner in (Norma(threshold=0.7, shrinkage=0), BudgetPerceptron(threshold=0.7)):
        assert updates_at(learner, 0.7 + 1e-12) == 1
        assert updates_at(learner, 0.7 + 1e-8) == 0
    rows, labels = np.zeros((6, 2)), [1.0, -1.0, 1.0, 1.0, -1.0, 1.0]  # κ(0, 0) = 0: f stays 0
    assert play(Alma(alpha=1.0), rows, labels, Linear()).tally.updates == 6
    assert play(Perceptron(), rows, labels, Linear()).tally.updates == 3  # the first one joins, too


@pytest.mark.parametrize("name", ["ahpatron", "bogd++"])
def test_bits_do_not_depend_on_where_arrays_lie(name: str) -> None:
    """BLAS may add in another order where an array begins elsewhere in a cache line."""
    stream = make_stream(seed=1, rounds=1200, features=3)
    junk = []
    # coefficients of different sizes: others are equal, and their sum is exact
    weak = {"shrinkage": 0.01} if name == "bogd++" else {}
    learner = REGISTRY[name](budget=300, **weak)
    passes = []
    for size in range(1, 9):
        junk.append(bytearray(16 * size + 8))
        passes.append(Player(learner, Gaussian(sigma=0.1), horizon=1200).feed(stream.X, stream.y))
    for scores in passes:
        np.testing.assert_array_equal(scores, passes[0])
