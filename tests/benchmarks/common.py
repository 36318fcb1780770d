"""What the benchmarks share: settings of the paper's data sets, data, permutations and times."""

from __future__ import annotations

import lzma
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file
from threadpoolctl import threadpool_limits

from ahpatron_cli.core.rows import CsrRows

threadpool_limits(1)  # as the command does; the processes that are started have the variables
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.append(str(REPOSITORY / "tests"))

from faults.measured import measured  # noqa: E402 - the path leads there

SAMPLES = REPOSITORY / "sample_data"
AHPATRON = [sys.executable, "-m", "ahpatron_cli"]
DENSE_SHARE = 0.1
BATCH = 2000


@dataclass(frozen=True)
class Dataset:
    """A data set and the paper's settings for it."""

    name: str
    sigma: float
    budget: int
    ridge: float = 0.0005


DATASETS = (
    Dataset("phishing", 1, 400),
    Dataset("a9a", 2, 150),
    Dataset("w8a", 2, 300, 0.01),
    Dataset("susy", 1, 400),
    Dataset("ijcnn1", 1, 600),
    Dataset("cod-rna", 1, 600),
)
NAMES = ",".join(data.name for data in DATASETS)
EPSILONS = (0.5, 0.6, 0.7, 0.8, 0.9)


def read(path: Path) -> tuple[Any, Any]:
    """Rows and labels (±1) of a LIBSVM file, dense or `CsrRows` as `ahpatron run` has them.

    scikit-learn reads it, so the data do not depend on the checkout that is measured.
    """
    with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as stream:
        matrix, labels = load_svmlight_file(stream)
    y = np.where(labels == labels.min(), -1.0, 1.0)
    if matrix.nnz >= DENSE_SHARE * matrix.shape[0] * matrix.shape[1]:
        return matrix.toarray(), y
    parts = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data
    return CsrRows(*parts, matrix.shape[1]), y


def take(rows: Any, order: Any) -> Any:
    """The rows of these numbers."""
    return rows.take(order) if isinstance(rows, CsrRows) else rows[order]


def permutation(rows: int, repeat: int = 0) -> Any:
    """The permutation number `repeat` of `ahpatron run --repeats 10 --seed 0`."""
    return np.random.default_rng([0, repeat]).permutation(rows)


def shuffled(folder: Path, name: str, rows: int | None = None) -> tuple[Any, Any]:
    """The first rows of permutation 0 of FOLDER/NAME.svm.xz, or of a file of the sample data."""
    X, y = read(folder / f"{name}.svm{'' if folder == SAMPLES else '.xz'}")
    order = permutation(len(y))[:rows]
    return take(X, order), y[order]


def seconds(work: Callable[[], object]) -> float:
    """Processor time of a call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def one_pass(
    learner: str, params: Any, sigma: float, X: Any, y: Any, repeat: int = 0, **others: Any
) -> tuple[Any, float]:
    """A `Player` after one pass, with the random numbers of `ahpatron run`, and its seconds."""
    from ahpatron_cli.core import REGISTRY, Gaussian, Player
    from ahpatron_cli.runner import generator_seed

    options = {"seed": generator_seed(0, repeat, learner), "horizon": len(y), **others}
    player = Player(REGISTRY[learner](**params), Gaussian(sigma=sigma), **options)
    return player, seconds(lambda: player.feed(X, y))


def alternate(ways: Mapping[str, Callable[[], float]], times: int) -> dict[str, list[float]]:
    """What each way returns, `times` times; they take turns, so that a noisy minute hits all."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(times):
        for name, way in ways.items():
            found[name].append(way())
    return found


def process(command: list[str], **options: Any) -> tuple[float, float]:
    """Processor seconds and peak resident MiB of a command that succeeds."""
    done = measured(command, Path.cwd(), limit=None, **options)
    assert done.code == 0, done.err
    return done.cpu, done.megabytes


def dense_lines(width: int) -> Iterator[bytes]:
    """Batches of LIBSVM rows of `width` features with 8 significant digits; two classes."""
    rng = np.random.default_rng(0)
    pattern = "%+d" + "".join(f" {column}:%.8g" for column in range(1, width + 1)) + "\n"
    while True:
        X = rng.standard_normal((BATCH, width))
        y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(BATCH) > 0, 1, -1)
        rows = zip(y.tolist(), X.tolist(), strict=True)
        yield "".join([pattern % (label, *row) for label, row in rows]).encode()


def sparse_lines(width: int, per_row: int) -> Iterator[bytes]:
    """Batches of LIBSVM rows of up to `per_row` values in `width` columns; two classes."""
    rng = np.random.default_rng(0)
    while True:
        lines = []
        for columns in rng.integers(width, size=(BATCH, per_row)):
            own = np.unique(columns)
            pairs = zip((own + 1).tolist(), rng.random(len(own)).tolist(), strict=True)
            values = "".join([f" {column}:{value:.6g}" for column, value in pairs])
            lines.append(f"{'+1' if own.sum() % 2 else '-1'}{values}\n")
        yield "".join(lines).encode()


def write(path: Path, batches: Iterator[bytes], *, size: int = 0, rows: int = 0) -> None:
    """Write batches until the file has `size` bytes and at least `rows` rows."""
    written = 0
    with path.open("wb") as stream:
        while stream.tell() < size or written < rows:
            stream.write(next(batches))
            written += BATCH
