"""`--config`: every key is checked, and what is unknown is refused."""

from pathlib import Path

import pytest

from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.grid import Choice
from ahpatron_cli.settings import Data, Order, SweptLearning
from ahpatron_cli.sweep.config import Config, read_config


def config(folder: Path, text: str) -> Config:
    path = folder / "sweep.toml"
    path.write_text(text)
    return read_config(str(path))


def test_a_configuration_can_set_everything(tmp_path: Path) -> None:
    found = config(
        tmp_path,
        f"""
        learners = ["ahpatron", "bogd++"]
        kernel = "laplacian"
        repeats = 10
        seed = 3
        shuffle = true
        limit = 100
        scale = "unit"
        positive = 2
        [grid]
        budget = [100, "200:400:100"]
        sigma = 2
        [learner."bogd++"]
        step = "10^[-3:3]/sqrt(T)"
        [[data]]
        path = "a.svm"
        grid = {{ sigma = 0.5 }}
        learner.ahpatron = {{ epsilon = [0.5, 0.6] }}
        [[data]]
        path = "{tmp_path}/x/b.svm"
        """,
    )
    assert found.learners == ["ahpatron", "bogd++"]
    assert found.settings.learning == SweptLearning(kernel="laplacian")
    assert found.settings.order == Order(repeats=10, seed=3, shuffle=True)
    assert found.settings.data == Data(limit=100, scale="unit", positive="2")
    given = {"kernel", "repeats", "seed", "shuffle", "limit", "scale", "positive"}
    assert found.settings.given == given
    where = str(tmp_path / "sweep.toml")
    assert found.layer == [
        Choice(None, "budget", ("100", "200:400:100"), f"{where}: grid.budget"),
        Choice(None, "sigma", ("2",), f"{where}: grid.sigma"),
        Choice("bogd++", "step", ("10^[-3:3]/sqrt(T)",), f"{where}: learner.bogd++.step"),
    ]
    assert list(found.files) == [str(tmp_path / "a.svm"), f"{tmp_path}/x/b.svm"]
    assert [(one.learner, one.name, one.texts) for one in found.files[f"{tmp_path}/a.svm"]] == [
        (None, "sigma", ("0.5",)),
        ("ahpatron", "epsilon", ("0.5", "0.6")),
    ]


def test_files_of_the_command_line_keep_the_choices_for_their_names(tmp_path: Path) -> None:
    found = config(tmp_path, '[[data]]\npath = "a.svm"\ngrid = { sigma = 2 }')
    chosen = found.choose_files(["else/a.svm", "a.svm.gz", "b.svm"])
    assert [(path, len(layer)) for path, layer in chosen.items()] == [
        ("else/a.svm", 1),
        ("a.svm.gz", 1),
        ("b.svm", 0),
    ]
    assert found.choose_files([]) == found.files
    table = '[[data]]\npath = "{0}/t.svm"\ngrid = {{ sigma = {0} }}\n'
    found = config(tmp_path, table.format(1) + table.format(2))
    (second,) = found.choose_files([str(tmp_path / "2" / "t.svm")]).values()
    assert second[0].texts == ("2",)
    with pytest.raises(UserError, match="could be"):
        found.choose_files(["elsewhere/t.svm"])


REFUSED = {
    "`repeat`": ["repeat = 3"],
    "learners": ['learners = "ahpatron"'],
    "'ahpatrn'": ["[learner.ahpatrn]\nepsilon = 1"],
    "learner": ["[learner]\nahpatron = 1", "[learner.ahpatron]\nbudget = [[1]]"],
    "grid": ["grid = 1", "[grid]\nbudget = []", "[grid]\nbudget = true"],
    "repeats": ["repeats = 0", "repeats = 1.5", "repeats = true"],
    "shuffle": ["shuffle = 1"],
    "seed": ["seed = -1"],
    "positive": ["positive = nan", "positive = [1]"],
    "scale": ['scale = "unot"', "scale = 1"],
    "missing": ['missing = "nothing"'],
    "data": ['data = "a.svm"'],
    "data[0]": ["data = [3]"],
    "path": ["[[data]]\ngrid = {}"],
    "`gird`": ['[[data]]\npath = "a"\ngird = {}'],
    "not TOML": ["[grid", "a = \x00", "\udcff"],
}


@pytest.mark.parametrize(
    ("named", "text"), [(named, text) for named, texts in REFUSED.items() for text in texts]
)
def test_an_entry_that_cannot_be_is_refused_with_its_name_and_file(
    tmp_path: Path, named: str, text: str
) -> None:
    path = tmp_path / "sweep.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UserError) as refusal:
        read_config(str(path))
    assert named in refusal.value.problem
    assert refusal.value.code == ExitCode.USAGE
    assert refusal.value.place is not None
    assert refusal.value.place.path == str(path)
