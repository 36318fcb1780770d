import csv
import re
from pathlib import Path

import make_sample_data
import numpy as np
import pytest
from make_sample_data import FOLDER, MAKERS
from sklearn.datasets import load_svmlight_file

README = (FOLDER / "README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\S+)` \| .+? \| (\d+) \| (\d+) \| (\S+), (\S+) \| ([\d.]+) \|", re.M)
DESCRIBED = {match[1]: match for match in ROW.finditer(README)}
TABLE = re.compile(r"^\| `(\S+\.csv)` \| .+? \| (\d+) \| (\d+) \| `(\w+)` \|", re.M)
TABLES = {match[1]: match for match in TABLE.finditer(README)}
SVM = [name for name in MAKERS if name.endswith(".svm")]
CSV = [name for name in MAKERS if name.endswith(".csv")]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample_data")
    make_sample_data.make_all(folder)
    return folder


def test_every_file_is_made_by_the_script_and_told_of_in_the_readme() -> None:
    kept = {path.name for suffix in ("svm", "csv") for path in FOLDER.glob(f"*.{suffix}")}
    assert kept == set(MAKERS) == set(DESCRIBED) | set(TABLES)


@pytest.mark.parametrize("name", ["rings.svm", "sparse_text.svm", *CSV])
def test_synthetic_files_come_out_byte_for_byte(made: Path, name: str) -> None:
    assert (made / name).read_bytes() == (FOLDER / name).read_bytes()


@pytest.mark.parametrize("name", SVM)
def test_values_come_out_the_same(made: Path, name: str) -> None:
    examples, labels = load_svmlight_file(str(made / name))
    kept_examples, kept_labels = load_svmlight_file(str(FOLDER / name))
    np.testing.assert_array_equal(labels, kept_labels)
    np.testing.assert_array_equal(examples.toarray(), kept_examples.toarray())


@pytest.mark.parametrize("name", SVM)
def test_the_readme_tells_the_truth(name: str) -> None:
    _, rows, features, negative, positive, sigma = DESCRIBED[name].groups()
    examples, labels = load_svmlight_file(str(FOLDER / name))
    assert examples.shape == (int(rows), int(features))
    assert np.unique(labels).tolist() == [float(negative), float(positive)]
    assert float(sigma) > 0


@pytest.mark.parametrize("name", SVM)
def test_files_are_small_and_their_labels_come_mixed(name: str) -> None:
    assert (FOLDER / name).stat().st_size < 600_000
    _, labels = load_svmlight_file(str(FOLDER / name))
    changes = np.count_nonzero(np.diff(labels))
    assert changes > len(labels) / 3


def test_texts_are_sparse_and_of_unit_length() -> None:
    examples, _ = load_svmlight_file(str(FOLDER / "sparse_text.svm"))
    assert 18 < examples.nnz / examples.shape[0] < 22
    lengths = np.sqrt(examples.multiply(examples).sum(axis=1))
    np.testing.assert_allclose(lengths, 1.0, atol=1e-3)


def test_the_real_file_is_scaled_to_the_unit_interval() -> None:
    examples, _ = load_svmlight_file(str(FOLDER / "breast_cancer.svm"))
    dense = examples.toarray()
    np.testing.assert_array_equal(dense.min(axis=0), 0.0)
    np.testing.assert_array_equal(dense.max(axis=0), 1.0)


def test_no_straight_line_parts_the_rings() -> None:
    examples, labels = load_svmlight_file(str(FOLDER / "rings.svm"))
    columns = np.column_stack((examples.toarray(), np.ones(len(labels))))
    weights, *_ = np.linalg.lstsq(columns, labels, rcond=None)
    assert np.mean(np.sign(columns @ weights) != labels) > 0.3


@pytest.mark.parametrize("name", CSV)
def test_the_readme_tells_the_truth_of_tables(name: str) -> None:
    _, rows, columns, label = TABLES[name].groups()
    with (FOLDER / name).open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert (len(lines), len(lines[0])) == (int(rows), int(columns))
    assert 2 <= len({line[label] for line in lines}) <= 3


def test_fraud_is_rare() -> None:
    frauds = (FOLDER / "payments.csv").read_text().count(",yes\n")
    assert frauds / 3000 == pytest.approx(0.028)
