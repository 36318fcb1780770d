"""Make the files of sample_data/: small, in LIBSVM format or CSV, the same bytes every time.

    python tests/make_sample_data.py [FOLDER]

Random numbers come from `numpy.random.RandomState`, whose streams NumPy has promised never to
change. Values are written with few digits, so that the last bits of a machine's arithmetic do not
show. Two real files, three made up:

- breast_cancer.svm: 569 tumours, 30 features scaled to [0, 1] (scikit-learn brings the data)
- iris.csv: 150 flowers of three kinds (scikit-learn brings the data)
- payments.csv: 3,000 card payments, numbers and words, 2.8 % of them fraud
- rings.svm: two open, noisy rings, interlocked: the arms of a double spiral; no line parts them,
  and 5 % of the labels are wrong
- sparse_text.svm: bags of words about two topics; sparse, labels 0 and 1
"""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_iris

FOLDER = Path(__file__).parent.parent / "sample_data"


def breast_cancer() -> str:
    """The real one. Malignant is -1, benign +1; the order of the file is shuffled once."""
    bunch = load_breast_cancer()
    low = bunch.data.min(axis=0)
    high = bunch.data.max(axis=0)
    examples = (bunch.data - low) / (high - low)
    labels = 2 * bunch.target - 1
    order = np.random.RandomState(569).permutation(len(labels))
    return svm_text(labels[order], examples[order])


def iris() -> str:
    """The other real one: four lengths in cm and the kind of the flower, in a shuffled order."""
    bunch = load_iris()
    order = np.random.RandomState(150).permutation(len(bunch.target))
    lines = ["sepal_length,sepal_width,petal_length,petal_width,species"]
    for row in order:
        lengths = ",".join(f"{length:g}" for length in bunch.data[row])
        lines.append(f"{lengths},{bunch.target_names[bunch.target[row]]}")
    return "\n".join(lines) + "\n"


def payments(rows: int = 3000, frauds: int = 84) -> str:
    """Fraud is rare; most of it is abroad, at night, and neither small nor very large."""
    random = np.random.RandomState(3000)
    fraud = np.zeros(rows, dtype=bool)
    fraud[random.permutation(rows)[:frauds]] = True
    amount = np.exp(random.normal(3.2, 1.0, size=rows))
    amount[fraud] = np.exp(random.normal(5.0, 0.3, size=frauds))
    hour = np.clip(random.normal(14, 4, size=rows), 0, 23).astype(int)
    hour[fraud] = random.normal(3, 1.5, size=frauds).astype(int) % 24
    home = random.uniform(size=rows) < np.where(fraud, 0.3, 0.9)
    abroad = random.choice(["FR", "IT", "US"], size=rows)
    channel = random.choice(["chip", "web", "phone"], size=rows, p=[0.6, 0.3, 0.1])
    lines = ["amount,hour,country,channel,fraud"]
    for row in range(rows):
        country = "DE" if home[row] else abroad[row]
        answer = "yes" if fraud[row] else "no"
        lines.append(f"{amount[row]:.2f},{hour[row]},{country},{channel[row]},{answer}")
    return "\n".join(lines) + "\n"


def rings(rows: int = 2000, wrong: float = 0.05) -> str:
    """Two open rings, the arms of a double spiral: one turn and a half each, opposite, blurred."""
    random = np.random.RandomState(2000)
    labels = random.choice([-1, 1], size=rows)
    turn = 3 * np.pi * np.sqrt(random.uniform(0.04, 1.0, size=rows))
    angle = turn + np.where(labels == 1, 0.0, np.pi)
    radius = turn / (3 * np.pi)
    examples = np.column_stack((radius * np.cos(angle), radius * np.sin(angle)))
    examples += 0.06 * random.standard_normal((rows, 2))
    labels[random.uniform(size=rows) < wrong] *= -1
    return svm_text(labels, examples, digits=4)


def sparse_text(rows: int = 1500, words: int = 2000, length: int = 21) -> str:
    """Each text draws its words from a Zipf law, in which its topic makes 150 words likelier."""
    random = np.random.RandomState(1500)
    common = 1 / (10.0 + np.arange(words))
    common = common[random.permutation(words)]
    topics = np.tile(common, (2, 1))
    marked = random.permutation(words)[:300]
    topics[0, marked[:150]] *= 4
    topics[1, marked[150:]] *= 4
    topics /= topics.sum(axis=1, keepdims=True)
    labels = random.choice([0, 1], size=rows)
    counts = np.array([random.multinomial(length, topics[label]) for label in labels])
    weights = np.log1p(counts)
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    return svm_text(labels, weights, digits=4)


def svm_text(labels: NDArray[np.int64], examples: NDArray[np.float64], digits: int = 6) -> str:
    """One line per example: its label, then `index:value` from index 1 on, zeros left out."""
    return "".join(
        f"{label:d}" + "".join(_features(example, digits)) + "\n"
        for label, example in zip(labels.tolist(), examples, strict=True)
    )


def _features(example: NDArray[np.float64], digits: int) -> Iterable[str]:
    for column in np.flatnonzero(example):
        yield f" {column + 1}:{example[column]:.{digits}g}"


MAKERS: dict[str, Callable[[], str]] = {
    "breast_cancer.svm": breast_cancer,
    "iris.csv": iris,
    "payments.csv": payments,
    "rings.svm": rings,
    "sparse_text.svm": sparse_text,
}


def make_all(folder: Path) -> None:
    """Write every file into the folder."""
    for name, make in MAKERS.items():
        (folder / name).write_text(make(), encoding="ascii", newline="\n")


if __name__ == "__main__":
    make_all(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
