"""metron, arow and ahpatron+ beside river's models: mistakes, time and memory on streams and files.

    python tests/benchmarks/field.py run RESULTS.jsonl [--streams FOLDER] [--files FOLDER]
    python tests/benchmarks/field.py report RESULTS.jsonl

`run` measures every model on every stream, unless RESULTS.jsonl has a line of both: river's own
(Bananas, Phishing, ImageSegments, of the installed river), FOLDER/NAME.csv.xz of `--streams` (label
in the column `label`, in order of time), and the first 10,000 rows of permutation 0 of
FOLDER/NAME.svm.xz of `--files` (rings and breast_cancer of the sample data are always there).

Each row is predicted, counted and learned, once, in the order of the file; a model that gives no
answer has made a mistake. Nothing is tuned: ours have their defaults (arow and ahpatron+, which
need a scale and a σ, `--scale standard --sigma auto`), river's models the settings of river's own
benchmark. Each pair has a process of its own, which first runs 50 random rows. Time is the
processor time of the whole pass, reading the CSV file included; memory is how much the process
grows (Linux).

`report` writes docs/benchmark.json, from which docs/make_reference.py and docs/make_pictures.py
make the tables and the picture: rates to 0.1 points, times relative to metron's. It also has the
figures that river published and those of MOA, which are not measured here.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import json
import lzma
import multiprocessing
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

for library in ("OPENBLAS", "OMP", "MKL", "VECLIB", "BLIS"):  # before NumPy: as the command does
    os.environ[f"{library}_NUM_THREADS"] = "1"

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests"))
SAMPLES = REPOSITORY / "sample_data"
FIGURES = REPOSITORY / "docs/benchmark.json"
WARM_UP = 50
ROWS_OF_A_FILE = 10_000

Row = tuple[dict[str, float], str]

OURS = {
    "metron": ("-l", "metron"),
    "metron, tracker=off": ("-l", "metron", "-p", "tracker=off"),
    "arow": ("-l", "arow", "--scale", "standard", "--sigma", "auto"),
    "ahpatron+": ("-l", "ahpatron+", "--scale", "standard", "--sigma", "auto"),
}
BASELINES = ("no change", "majority")


def linear(kind: str, classes: int) -> Any:
    """A linear model of river behind standard scaling, one against rest with several classes."""
    from river import linear_model, multiclass, optim, preprocessing

    if kind == "logistic":
        model = linear_model.LogisticRegression(optimizer=optim.SGD(0.005))
    else:
        model = linear_model.ALMAClassifier()
    scaler = preprocessing.StandardScaler()
    return scaler | (multiclass.OneVsRestClassifier(model) if classes > 2 else model)


def nearest() -> Any:
    """river's nearest neighbours among the last 1,000 rows, found by a search of all of them."""
    from river import neighbors, preprocessing

    engine = neighbors.LazySearch(window_size=1000)
    return preprocessing.StandardScaler() | neighbors.KNNClassifier(engine=engine)


def bagged(kind: str) -> Any:
    """Ten Hoeffding trees of river under online bagging."""
    from river import ensemble, tree

    return getattr(ensemble, kind)(tree.HoeffdingTreeClassifier(), seed=42)


def of_river(name: str, module: str, **settings: Any) -> Callable[[int], Any]:
    """What builds a model of river from its name."""

    def build(classes: int) -> Any:
        import river.ensemble
        import river.forest
        import river.naive_bayes
        import river.tree

        return getattr(getattr(river, module), name)(**settings)

    return build


def metron_in_river(classes: int) -> Any:
    """metron behind river's interface, which learns one row at a time."""
    from ahpatron_cli.river import KernelClassifier

    return KernelClassifier(budget=400)


RIVER: dict[str, Callable[[int], Any]] = {
    "logistic regression": lambda classes: linear("logistic", classes),
    "ALMA": lambda classes: linear("alma", classes),
    "naive Bayes": of_river("GaussianNB", "naive_bayes"),
    "Hoeffding tree": of_river("HoeffdingTreeClassifier", "tree"),
    "Hoeffding adaptive tree": of_river("HoeffdingAdaptiveTreeClassifier", "tree", seed=42),
    "k nearest neighbours": lambda classes: nearest(),
    "Mondrian forest": of_river("AMFClassifier", "forest", seed=42),
    "adaptive random forest": of_river("ARFClassifier", "forest", seed=42),
    "random patches": of_river("SRPClassifier", "ensemble", seed=42),
    "ADWIN bagging": lambda classes: bagged("ADWINBaggingClassifier"),
    "leveraging bagging": lambda classes: bagged("LeveragingBaggingClassifier"),
    "metron, row by row": metron_in_river,
}
MODELS = (*BASELINES, *OURS, *RIVER)
RIVERS_STREAMS = ("Bananas", "Phishing", "ImageSegments")
KINDS = {
    "river": ("Bananas", "elec", "Phishing", "ImageSegments"),
    "in order of time": ("weather", "outdoor", "keystroke", "usenet2"),
    "with drift": ("sea", "movingsquares", "transchess", "RBF"),
}
"""Streams by kind; all others are files in random order."""
SAME_AS_RIVERS = ("bananas", "riverphishing", "segments")
"""Files of a folder of streams that hold a stream of river."""


PUBLISHED_BY_RIVER = """
ADWIN bagging            0.625967 0.823773 0.893515 0.777826
ALMA                     0.506415 0.906427 0.8256   -
adaptive random forest   0.88696  0.876608 0.907926 0.818536
Mondrian forest          0.889413 0.849904 0.904724 0.901689
Hoeffding adaptive tree  0.616531 0.821258 0.874299 0.774361
Hoeffding tree           0.642197 0.795635 0.879904 0.776094
leveraging bagging       0.828269 0.892653 0.894315 0.778259
logistic regression      0.543208 0.822144 0.8872   -
naive Bayes              0.61521  0.728741 0.884708 0.731919
stacking                 0.876203 0.885458 0.895116 0.867908
random patches           0.871674 0.868884 0.913531 0.766999
voting                   0.872617 0.84368  0.896717 0.80641
no change                0.50953  0.853303 0.515612 0.148116
k nearest neighbours     0.885073 0.853148 0.881505 0.873538
"""
"""Accuracies on the streams of KINDS["river"] (docs/benchmarks in river's repository, 2023)."""

MOA = {
    "models": ["ARF", "SRP", "LevBag", "HAT", "SAM-kNN"],
    "errors": {
        "elec": [10.9, 11.6, 10.7, 17.1, 17.2],
        "weather": [21.8, 21.1, 21.9, 26.5, 21.7],
        "outdoor": [36.1, 31.4, 39.7, 42.7, 11.8],
        "keystroke": [8.3, 6.9, 13.6, 21.8, 9.1],
        "usenet2": [26.0, 25.7, 24.4, 33.1, 29.0],
        "Bananas": [11.6, 12.7, None, 34.7, 10.7],
        "ImageSegments": [21.5, None, None, 21.7, 10.3],
        "Phishing": [9.3, None, None, 12.5, 13.3],
        "sea": [11.7, None, None, None, 12.2],
        "movingsquares": [33.8, None, None, None, 2.7],
        "transchess": [24.6, None, None, None, 7.4],
        "RBF": [28.2, None, None, None, 12.5],
    },
}
"""Mistakes in per cent on the same rows, of MOA's own implementations: ten trees, SAM-kNN with
5,000 examples, one run each (2026-11-18)."""


def published() -> dict[str, dict[str, float]]:
    """Mistakes in per cent, to 0.1 points, as river published them."""
    errors: dict[str, dict[str, float]] = {}
    for line in PUBLISHED_BY_RIVER.strip().splitlines():
        *words, a, b, c, d = line.split()
        cells = zip(KINDS["river"], (a, b, c, d), strict=True)
        errors[" ".join(words)] = {
            stream: round(100 * (1 - float(cell)), 1) for stream, cell in cells if cell != "-"
        }
    return errors


@dataclass(frozen=True)
class Stream:
    """A name, and how the file of its rows is made."""

    name: str
    rows: Callable[[], Iterator[Row]]

    def write_to(self, folder: Path) -> Path:
        """Write the rows as CSV with the label in the column `label`."""
        path = folder / f"{self.name}.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            for number, (features, label) in enumerate(self.rows()):
                if not number:
                    writer.writerow([*features, "label"])
                writer.writerow([*features.values(), label])
        return path


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a CSV file that `Stream.write` wrote, or of FOLDER/NAME.csv.xz."""
    with lzma.open(path, "rt") if path.suffix == ".xz" else path.open() as file:
        for cells in csv.DictReader(file):
            label = cells.pop("label")
            yield {name: float(cell) for name, cell in cells.items()}, label


def rivers_rows(name: str) -> Iterator[Row]:
    """The rows of a data set that river brings along."""
    from river import datasets

    for features, label in getattr(datasets, name)():
        yield features, str(label)


def permuted_rows(path: Path) -> Iterator[Row]:
    """The first rows of permutation 0 of a LIBSVM file; absent features are 0."""
    import numpy as np
    from common import permutation
    from sklearn.datasets import load_svmlight_file

    with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
        X, y = load_svmlight_file(file)
    for row in permutation(len(y))[:ROWS_OF_A_FILE]:
        values = np.asarray(X[row].todense()).ravel().tolist()
        yield {f"x{i}": value for i, value in enumerate(values, 1)}, f"{y[row]:g}"


def streams(folder: Path | None) -> list[Stream]:
    """River's streams and those of a folder."""
    found = [Stream(name, lambda name=name: rivers_rows(name)) for name in RIVERS_STREAMS]
    for path in sorted(folder.glob("*.csv.xz")) if folder else []:
        name = path.name.partition(".")[0]
        if name not in SAME_AS_RIVERS:
            found.append(Stream(name, lambda path=path: read_rows(path)))
    return found


def files(folder: Path | None) -> list[Stream]:
    """Files of the sample data and of a folder, in random order."""
    paths = [SAMPLES / "breast_cancer.svm", SAMPLES / "rings.svm"]
    if folder:
        paths += sorted(folder.glob("*.svm.xz"))
    return [
        Stream(path.name.partition(".")[0], lambda path=path: permuted_rows(path)) for path in paths
    ]


def mistakes_of_a_baseline(name: str, rows: Iterator[Row]) -> int:
    """Mistakes of always answering with the last label, or with the most frequent one so far."""
    counts: Counter[str] = Counter()
    last = None
    mistakes = 0
    for _, label in rows:
        answer = last if name == "no change" else next(iter(counts.most_common(1)), (None,))[0]
        mistakes += answer != label
        counts[label] += 1
        last = label
    return mistakes


def mistakes_of_river(name: str, rows: Iterator[Row], labels: set[str]) -> int:
    """Mistakes of a model of river. Two labels are given to it as False and True."""
    model = RIVER[name](len(labels))
    positive = max(labels)
    mistakes = 0
    for features, text in rows:
        label = text == positive if len(labels) == 2 else text
        mistakes += model.predict_one(features) != label
        model.learn_one(features, label)
    return mistakes


def mistakes_of_ours(name: str, path: Path) -> int:
    """Mistakes of a learner of ours, as `ahpatron run` counts them."""
    from support.command import Ahpatron

    words = ("run", path, "--label", "label", *OURS[name], "--quiet")
    run = Ahpatron(path.parent).json(*words)["runs"][0]
    return int(run["mistakes"])


def memory(field: str) -> int:
    """KiB of this process: VmRSS now, or VmHWM since the last reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{field}:")).split()[1])


def measure(pair: tuple[Path, str]) -> dict[str, Any]:
    """One pass of a model over a file, after one over a few of its rows."""
    path, name = pair
    rows = list(read_rows(path))
    labels = {label for _, label in rows}
    total = len(rows)
    few = random.Random(0).sample(rows, WARM_UP)  # labels may repeat at regular distances
    del rows
    first = Stream("few", lambda: iter(few)).write_to(path.parent)

    def mistakes(of: Path) -> int:
        if name in BASELINES:
            return mistakes_of_a_baseline(name, read_rows(of))
        if name in OURS:
            return mistakes_of_ours(name, of)
        return mistakes_of_river(name, read_rows(of), labels)

    mistakes(first)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again
    before = memory("VmRSS")
    begun = time.process_time()
    made = mistakes(path)
    return {
        "stream": path.stem,
        "model": name,
        "rows": total,
        "classes": len(labels),
        "mistakes": made,
        "microseconds": round(1e6 * (time.process_time() - begun) / total, 1),
        "megabytes": round(max(memory("VmHWM") - before, 0) / 1024, 1),
        "version": version("ahpatron-cli" if name in OURS else "river"),
    }


def run(given: argparse.Namespace) -> None:
    """Measure what is missing: streams before files, the small ones first."""
    out = given.results
    done = set()
    if out.exists():
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        done = {(one["stream"], one["model"]) for one in lines}
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for some in (streams(given.streams), files(given.files)):
            written = [stream.write_to(Path(folder)) for stream in some]
            paths += sorted(written, key=lambda path: path.stat().st_size)
        pairs = [pair for pair in product(paths, MODELS) if (pair[0].stem, pair[1]) not in done]
        import_all()
        forking = multiprocessing.get_context("fork")
        with forking.Pool(1, maxtasksperchild=1) as pool, out.open("a") as file:
            for one in pool.imap(measure, pairs):
                line = json.dumps(one)
                print(line, flush=True)
                file.write(f"{line}\n")
                file.flush()


def import_all() -> None:
    """Import what the processes share."""
    for name in ("river.ensemble", "river.forest", "ahpatron_cli.river", "support.command"):
        importlib.import_module(name)


def measured(results: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """The lines of a results file by model and stream."""
    found: dict[str, dict[str, dict[str, Any]]] = {model: {} for model in MODELS}
    for line in results.read_text().splitlines():
        one = json.loads(line)
        found[one["model"]][one["stream"]] = one
    return {model: own for model, own in found.items() if own}


def error(one: dict[str, Any]) -> float:
    """Mistakes in per cent, to 0.1 points."""
    return round(100 * one["mistakes"] / one["rows"], 1)


def beside(
    own: dict[str, dict[str, Any]], metron: dict[str, dict[str, Any]], streams: list[str]
) -> dict[str, Any]:
    """The mistakes of metron over those of a model, and on how many streams there are fewer."""
    common = [name for name in streams if name in own]
    ratios = [metron[name]["mistakes"] / own[name]["mistakes"] for name in common]
    signs = [error(own[name]) - error(metron[name]) for name in common]
    return {
        "all": common == streams,
        "ratio": round(statistics.geometric_mean(ratios), 2) if ratios else None,
        "fewer": sum(sign > 0 for sign in signs),
        "as many": sum(sign == 0 for sign in signs),
        "more": sum(sign < 0 for sign in signs),
    }


def report(results: Path) -> None:
    """Write docs/benchmark.json."""
    found = measured(results)
    metron = found["metron"]
    kinds = {kind: [name for name in names if name in metron] for kind, names in KINDS.items()}
    streams = [name for names in kinds.values() for name in names]
    kinds["files"] = [name for name in metron if name not in streams]
    models = {}
    for model, own in found.items():
        common = [name for name in own if name in metron]
        times = [own[name]["microseconds"] / metron[name]["microseconds"] for name in common]
        models[model] = {
            "errors": {name: error(one) for name, one in own.items()},
            "on streams": beside(own, metron, streams),
            "on files": beside(own, metron, kinds["files"]),
            "time": float(f"{statistics.median(times):.2g}"),
            "megabytes": round(statistics.median(one["megabytes"] for one in own.values())),
        }
    document = {
        "river": version("river"),
        "kinds": kinds,
        "rows": {name: one["rows"] for name, one in metron.items()},
        "classes": {name: one["classes"] for name, one in metron.items()},
        "models": models,
        "published by river": published(),
        "MOA": MOA,
    }
    FIGURES.write_text(f"{json.dumps(document, indent=1)}\n")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    asked = parser.add_subparsers(dest="what", required=True)
    measuring = asked.add_parser("run")
    measuring.add_argument("results", type=Path)
    measuring.add_argument("--streams", type=Path)
    measuring.add_argument("--files", type=Path)
    asked.add_parser("report").add_argument("results", type=Path)
    given = parser.parse_args()
    if given.what == "run":
        run(given)
    else:
        report(given.results)


if __name__ == "__main__":
    main()
