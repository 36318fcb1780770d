"""`--config`: every key is checked, and what is unknown is refused with what may be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.sweep.config import Config, read_config
from ahpatron_cli.sweep.grid import Choice


def config(folder: Path, text: str) -> Config:
    path = folder / "sweep.toml"
    path.write_text(text)
    return read_config(str(path))


def test_everything_it_can_say(tmp_path: Path) -> None:
    found = config(
        tmp_path,
        """
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
        grid = { sigma = 0.5 }
        learner.ahpatron = { epsilon = [0.5, 0.6] }
        """,
    )
    assert found.learners == ["ahpatron", "bogd++"]
    assert found.options == {
        "kernel": "laplacian",
        "repeats": 10,
        "seed": 3,
        "shuffle": True,
        "limit": 100,
        "scale": "unit",
        "positive": 2.0,
    }
    where = str(tmp_path / "sweep.toml")
    assert found.layer == [
        Choice(None, "budget", ("100", "200:400:100"), f"{where}: grid.budget"),
        Choice(None, "sigma", ("2",), f"{where}: grid.sigma"),
        Choice("bogd++", "step", ("10^[-3:3]/sqrt(T)",), f"{where}: learner.bogd++.step"),
    ]
    (file,) = found.files
    assert file.path == str(tmp_path / "a.svm")
    assert [(one.learner, one.name, one.texts) for one in file.layer] == [
        (None, "sigma", ("0.5",)),
        ("ahpatron", "epsilon", ("0.5", "0.6")),
    ]


def test_files_of_the_command_line_keep_the_choices_for_their_names(tmp_path: Path) -> None:
    found = config(tmp_path, '[[data]]\npath = "a.svm"\ngrid = { sigma = 2 }')
    (ours, packed, other), remarks = found.choose_files(["else/a.svm", "a.svm.gz", "b.svm"])
    assert (ours.path, len(ours.layer)) == ("else/a.svm", 1)
    assert (packed.path, len(packed.layer)) == ("a.svm.gz", 1)
    assert (other.path, len(other.layer)) == ("b.svm", 0)
    (remark,) = remarks
    assert "b.svm" in remark
    assert found.choose_files([]) == (found.files, [])


def test_files_of_equal_names_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    tables = "".join(
        f'[[data]]\npath = "{one}/t.svm"\ngrid = {{ sigma = {one} }}\n' for one in "12"
    )
    found = config(tmp_path, tables)
    (second,), _ = found.choose_files([str(tmp_path / "2" / "t.svm")])
    assert second.layer[0].texts == ("2",)
    with pytest.raises(UserError, match="could be"):
        found.choose_files(["elsewhere/t.svm"])


def test_an_absolute_path_stays(tmp_path: Path) -> None:
    found = config(tmp_path, f'data = ["{tmp_path}/x/a.svm", "b.svm"]')
    assert [file.path for file in found.files] == [f"{tmp_path}/x/a.svm", f"{tmp_path}/b.svm"]


@pytest.mark.parametrize(
    ("text", "named", "hint"),
    [
        ("repeat = 3", "'repeat'", "did you mean repeats?"),
        ("zzz = 3", "'zzz'", "one of"),
        ('learners = ["ahpatrn"]', "'ahpatrn'", "did you mean ahpatron?"),
        ('learners = "ahpatron"', "learners", None),
        ("[learner.ahpatrn]\nepsilon = 1", "'ahpatrn'", "did you mean ahpatron?"),
        ("[learner]\nahpatron = 1", "learner", None),
        ("grid = 1", "grid", None),
        ('kernel = "gausian"', "'gausian'", "did you mean gaussian?"),
        ('scale = "minmx"', "'minmx'", "did you mean minmax?"),
        ("repeats = 0", "repeats", None),
        ("repeats = 1.5", "repeats", None),
        ("repeats = true", "repeats", None),
        ("shuffle = 1", "shuffle", None),
        ("seed = -1", "seed", None),
        ("positive = nan", "positive", None),
        ('positive = "a"', "positive", None),
        ('data = "a.svm"', "data", None),
        ("data = [3]", "data[0]", None),
        ("[[data]]\ngrid = {}", "path", None),
        ('[[data]]\npath = "a"\ngird = {}', "'gird'", "mean grid?"),
        ("[grid]\nbudget = []", "grid.budget", None),
        ("[grid]\nbudget = true", "grid.budget", None),
        ("[learner.ahpatron]\nbudget = [[1]]", "learner.ahpatron.budget", None),
        ("[grid", "not TOML", None),
        ("a = \x00", "not TOML", None),
    ],
)
def test_refused(tmp_path: Path, text: str, named: str, hint: str | None) -> None:
    with pytest.raises(UserError) as refusal:
        config(tmp_path, text)
    error = refusal.value
    assert named in error.problem
    assert error.code == ExitCode.USAGE
    assert error.place is not None
    assert error.place.path.endswith("sweep.toml")
    assert (hint or "") in (error.hint or "")


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="not TOML"):
        read_config(str(path))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file") as refusal:
        read_config(str(tmp_path / "none.toml"))
    assert refusal.value.code == ExitCode.NO_INPUT
    (tmp_path / "nones.toml").touch()
    with pytest.raises(UserError) as refusal:
        read_config(str(tmp_path / "none.toml"))
    assert refusal.value.hint == f"did you mean {tmp_path / 'nones.toml'}?"
