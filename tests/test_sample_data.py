"""The files of sample_data/: made by the script, and as their README describes them."""

import re
from pathlib import Path

import make_sample_data
import numpy as np
import pytest
from make_sample_data import FOLDER, MAKERS
from sklearn.datasets import load_svmlight_file

README = (FOLDER / "README.md").read_text(encoding="utf-8")
ROWS = {
    cells[0].strip("`"): cells
    for line in re.findall(r"^\| `\S+` \|.*$", README, re.MULTILINE)
    if (cells := [cell.strip() for cell in line.strip("| ").split(" | ")])
}
"""The table rows of the README by file: name, what it is, rows, features or columns, labels, …"""
SVM = [name for name in MAKERS if name.endswith(".svm")]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample_data")
    make_sample_data.make_all(folder)
    return folder


def test_every_file_is_made_by_the_script_and_described() -> None:
    kept = {path.name for suffix in ("svm", "csv") for path in FOLDER.glob(f"*.{suffix}")}
    assert kept == set(MAKERS) == set(ROWS)


@pytest.mark.parametrize("name", MAKERS)
def test_the_script_makes_the_same_files(made: Path, name: str) -> None:
    if name == "breast_cancer.svm":  # scikit-learn may write its numbers in other ways
        new, kept = (load_svmlight_file(str(folder / name)) for folder in (made, FOLDER))
        assert (new[0] != kept[0]).nnz == 0
        assert (new[1] == kept[1]).all()
    else:
        assert (made / name).read_bytes() == (FOLDER / name).read_bytes()


@pytest.mark.parametrize("name", SVM)
def test_the_readme_describes_the_files(name: str) -> None:
    rows, features, labels = ROWS[name][2:5]
    X, y = load_svmlight_file(str(FOLDER / name))
    assert X.shape == (int(rows), int(features))
    assert np.unique(y).tolist() == [float(label) for label in labels.split(", ")]
    assert np.count_nonzero(np.diff(y)) > len(y) / 3  # labels come mixed
