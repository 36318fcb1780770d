"""Draw the pictures of README and docs/ into docs/pictures.

    python docs/make_pictures.py [PICTURE...]
    python docs/make_pictures.py budget RESULTS.jsonl
    python docs/make_pictures.py drift STREAM.csv

- benchmark: metron beside no change and models of river on twelve streams, from
  docs/benchmark.json, which `python tests/benchmarks/field.py` writes
- mistakes: of metron and others on six data sets, from the table in docs/metron.md
- budget: AMR against B, from docs/pictures/budget.csv. With RESULTS.jsonl, which
  `python tests/benchmarks/metron.py run FOLDER RESULTS.jsonl --only curve` writes, that is updated.
- drift: mistake rate of the last 2,000 rounds on elec, from docs/pictures/drift.csv. With
  STREAM.csv, the stream with its label in the column `label`, that is measured again.
- certificate: mistakes made and certified on longer and longer beginnings of rings
- data_way: from bytes to a table

SVG is written by hand: small, its text is text, and it has colours for dark pages, too.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path
from statistics import fmean
from typing import Any

for library in ("OPENBLAS", "OMP", "MKL", "VECLIB", "BLIS"):  # before NumPy: as the command does
    os.environ[f"{library}_NUM_THREADS"] = "1"

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDER = REPOSITORY / "docs/pictures"
BUDGETS = FOLDER / "budget.csv"
DRIFT = FOLDER / "drift.csv"
sys.path.insert(0, str(REPOSITORY / "tests"))

from ahpatron_cli.output.pictures import spread  # noqa: E402

SHOWN = ("phishing", "ijcnn1")
"""The data sets of the README's picture."""
HIGHEST = {"phishing": 12, "ijcnn1": 10, "susy": 34}
"""Where the axis of AMR ends; what is worse is left out."""
LEARNERS = ("arow", "ahpatron+", "ahpatron", "projectron++", "nogd", "pomdr", "bogd++")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#999999")
"""Okabe and Ito's, which stand on white and on black."""
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .pale { fill: #59636e }
  .page { fill: #ffffff } .grid { stroke: #d1d9e0 } .axis { stroke: #59636e }
  .box { fill: #f6f8fa; stroke: #59636e } .arrow { stroke: #59636e; fill: none }
  .mono { font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, monospace; white-space: pre }
  .small { font-size: 11.5px } .bold { font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .pale { fill: #9198a1 } .page { fill: #0d1117 } .grid { stroke: #3d444d }
    .axis, .arrow { stroke: #9198a1 } .box { fill: #151b23; stroke: #9198a1 }
  }
"""


class Canvas:
    """Shapes on a page of this size, in pixels."""

    def __init__(self, width: float, height: float, description: str) -> None:
        self.size = (width, height)
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
            f'width="{width:g}" height="{height:g}" role="img" xml:space="preserve">',
            f"<title>{escape(description)}</title><style>{STYLE}</style>",
            f'<rect class="page" width="{width:g}" height="{height:g}" rx="6"/>',
        ]

    def text(self, x: float, y: float, text: str, kind: str = "", **more: str) -> None:
        rest = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}"{rest}>{escape(text)}</text>'
        )

    def line(self, points: Sequence[tuple[float, float]], kind: str = "", **more: str) -> None:
        rest = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" class="{kind}"{rest}/>')

    def box(self, x: float, y: float, width: float, height: float) -> None:
        self.parts.append(
            f'<rect class="box" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>'
        )

    def dot(self, x: float, y: float, colour: str, radius: float = 3) -> None:
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{colour}"/>')

    def write(self, name: str) -> None:
        (FOLDER / name).write_text("\n".join([*self.parts, "</svg>", ""]), encoding="utf-8")


class Axes:
    """A panel of a canvas, and where data lie in it."""

    def __init__(
        self,
        canvas: Canvas,
        place: tuple[float, float, float, float],
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        logarithmic: bool = False,
    ) -> None:
        self.canvas, self.place, self.x, self.y = canvas, place, x, y
        self.scale: Callable[[float], float] = math.log if logarithmic else float

    def at(self, x: float, y: float) -> tuple[float, float]:
        left, top, width, height = self.place
        low, high = map(self.scale, self.x)
        across = (self.scale(x) - low) / (high - low)
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return left + across * width, top + (1 - up) * height

    def frame(self, title: str, label: str, xs: Iterable[float], ys: Iterable[float]) -> None:
        left, top, width, height = self.place
        self.canvas.text(left, top - 12, title, "bold")
        for y in ys:
            _, level = self.at(self.x[0], y)
            self.canvas.line([(left, level), (left + width, level)], "grid")
            self.canvas.text(left - 6, level + 4, f"{y:g}", "small pale", text_anchor="end")
        for x in xs:
            across, _ = self.at(x, self.y[0])
            middle = {"text_anchor": "middle"}
            self.canvas.text(across, top + height + 16, f"{x:g}", "small pale", **middle)
        self.canvas.line([(left, top + height), (left + width, top + height)], "axis")
        place = (left + width / 2, top + height + 34)
        self.canvas.text(*place, label, "small pale", text_anchor="middle")

    def curve(self, points: Sequence[tuple[float, float]], colour: str, width: float) -> None:
        seen = [self.at(x, y) for x, y in points if self.y[0] <= y <= self.y[1]]
        self.canvas.line(seen, stroke=colour, stroke_width=f"{width:g}")
        for place in seen:
            self.canvas.dot(*place, colour)


def aggregate(results: Path) -> None:
    """Means over permutations, the best setting of each learner in hindsight, as a small CSV."""
    runs = defaultdict(list)
    for line in results.read_text().splitlines():
        one = json.loads(line)
        if one["experiment"] == "curve":
            settings = json.dumps(one["params"], sort_keys=True)
            runs[one["data"], one["learner"], settings].append(one)
    best: dict[tuple[str, str, float], tuple[float, float, int]] = {}
    for (data, learner, _), found in runs.items():
        kept = round(fmean(run["support_size"] for run in found))  # projectron++ has no budget
        place = (data, learner, found[0]["params"].get("budget", kept))
        rounds = sum(run["rounds"] for run in found)
        rate = 100 * sum(run["mistakes"] for run in found) / rounds
        row = (rate, 1e6 * sum(run["seconds"] for run in found) / rounds, len(found))
        best[place] = min(best.get(place, row), row)
    with BUDGETS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["data", "learner", "budget", "amr", "microseconds", "orders"])
        for place, (rate, microseconds, orders) in sorted(best.items()):
            writer.writerow([*place, f"{rate:.3f}", f"{microseconds:.1f}", orders])


BESIDE = (
    "metron",
    "Mondrian forest",
    "k nearest neighbours",
    "logistic regression",
    "no change",
)
"""The models of river, and the learner of ours, in the picture of the benchmark."""
OF_MOA = {"ARF": "adaptive random forest", "SAM-kNN": "SAM-kNN"}
"""The models of MOA there, and their names."""


def compared(document: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Mistakes in per cent of the models in the picture of the benchmark, on each stream."""
    found = {}
    for model in BESIDE:
        own = model in ("metron", "no change")
        found[model if own else f"{model}, river"] = document["models"][model]["errors"]
    for model, name in OF_MOA.items():
        place = document["MOA"]["models"].index(model)
        cells = {stream: own[place] for stream, own in document["MOA"]["errors"].items()}
        found[f"{name}, MOA"] = cells
    return found


def benchmark() -> None:
    """Mistakes of models on twelve streams, relative to those of metron, a row per stream."""
    document = json.loads((REPOSITORY / "docs/benchmark.json").read_text(encoding="utf-8"))
    errors = compared(document)
    streams = [
        name for kind, names in document["kinds"].items() if kind != "files" for name in names
    ]
    left, top, width, height = 124, 156, 416, 26
    bottom = top + height * len(streams)
    canvas = Canvas(560, bottom + 44, "Mistakes on twelve streams, relative to those of metron")
    canvas.text(14, 26, "Mistakes on twelve streams, relative to those of metron", "bold")
    axes = Axes(canvas, (left, top, width, bottom - top), (0.5, 8), (0, 1), logarithmic=True)
    for x in (0.5, 1, 2, 4, 8):
        across, _ = axes.at(x, 0)
        canvas.line([(across, top), (across, bottom)], "axis" if x == 1 else "grid")
        canvas.text(across, bottom + 18, f"{x:g} x", "small pale", text_anchor="middle")
    for number, (model, own) in enumerate(errors.items()):
        colour = COLOURS[number]
        x = 22 + 270 * (number % 2)
        y = 52 + 24 * (number // 2)
        radius = 7 if model == "metron" else 5
        canvas.dot(x, y - 4, colour, radius)
        canvas.text(x + 13, y, model, "bold" if model == "metron" else "")
        for row, stream in enumerate(streams):
            if stream in own:
                ratio = min(max(own[stream] / errors["metron"][stream], 0.5), 8)
                canvas.dot(axes.at(ratio, 0)[0], top + (row + 0.5) * height, colour, radius)
    for row, stream in enumerate(streams):
        y = top + (row + 0.5) * height
        canvas.text(left - 14, y + 4, stream, text_anchor="end")
        canvas.parts.insert(3, f'<polyline points="{left},{y} {left + width},{y}" class="grid"/>')
    canvas.text(
        left, bottom + 36, "One pass, nothing tuned; dots at 8 x lie there or beyond", "small pale"
    )
    canvas.write("benchmark.svg")


def mistakes() -> None:
    """Mistakes of each learner on each data set, as a share of those of the paper's Ahpatron."""
    page = (REPOSITORY / "docs/metron.md").read_text(encoding="utf-8")
    head, _, *lines = re.findall(r"^\|.*\|$", page.partition("## Measured")[2], re.MULTILINE)
    names = [cell.strip() for cell in head.split("|")[2:-1]]
    rates: dict[str, list[float]] = {}
    for line in lines[:7]:
        learner, *cells = [cell.strip(" `") for cell in line.split("|")[1:-1]]
        rates[learner.replace("`", "")] = [float(cell) for cell in cells]
    paper = rates.pop("ahpatron, best")
    canvas = Canvas(870, 316, "Mistakes on six data sets: metron makes the fewest")
    left, top, width, height = 95, 46, 560, 34
    axes = Axes(canvas, (left, top, width, height * 6), (20, 170), (0, 1))
    canvas.text(left, 24, "Mistakes, as a percentage of those of the paper's Ahpatron", "bold")
    for x in range(25, 171, 25):
        across, _ = axes.at(x, 0)
        kind = "axis" if x == 100 else "grid"
        canvas.line([(across, top), (across, top + 6 * height)], kind)
        label = (across, top + 6 * height + 18)
        canvas.text(*label, f"{x} %", "small pale", text_anchor="middle")
    for row, name in enumerate(names):
        y = top + (row + 0.5) * height
        canvas.text(left - 10, y + 4, name, text_anchor="end")
        canvas.line([(left, y), (left + width, y)], "grid")
    for number, (learner, own) in enumerate(rates.items()):  # the largest dots are behind
        colour = COLOURS[number]
        for row, (rate, unit) in enumerate(zip(own, paper, strict=True)):
            across, _ = axes.at(min(100 * rate / unit, 170), 0)
            canvas.dot(across, top + (row + 0.5) * height, colour, 8 if learner == "metron" else 5)
        y = top + 12 + 26 * number
        canvas.dot(left + width + 36, y, colour, 8 if learner == "metron" else 5)
        bold = "bold" if learner == "metron" else ""
        canvas.text(left + width + 52, y + 4, learner, bold)
    note = 'Same budgets and permutations; "best" means the best step in hindsight'
    canvas.text(left, 300, note, "small pale")
    canvas.write("mistakes.svg")


def budget() -> None:
    """AMR against the budget on two data sets, and on three against the time per round, too."""
    with BUDGETS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    title = "Mistakes against the budget: arow and ahpatron+ with learners of the paper"
    canvas = Canvas(870, 330, title)
    for number, data in enumerate(SHOWN):
        panel(canvas, 45 + 425 * number, 40, rows, data, "budget", "budget B")
    canvas.write("budget.svg")
    canvas = Canvas(1295, 660, f"{title}, and against the time per round")
    for number, data in enumerate((*SHOWN, "susy")):
        panel(canvas, 45 + 425 * number, 40, rows, data, "budget", "budget B")
        panel(canvas, 45 + 425 * number, 370, rows, data, "microseconds", "µs a round")
    canvas.write("budget_and_time.svg")


def panel(
    canvas: Canvas, left: float, top: float, rows: list[dict[str, str]], data: str, x: str, on: str
) -> None:
    """AMR on one data set against `x`, a line per learner with its name at its end."""
    mine: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: float(row["budget"])):
        if row["data"] == data and float(row["budget"]) >= 50:
            mine[row["learner"]].append((float(row[x]), float(row["amr"])))
    mine = {name: mine[name] for name in LEARNERS if name in mine}
    highest = HIGHEST[data]
    low = 2 * math.floor(0.47 * min(y for points in mine.values() for _, y in points))
    xs = [x for points in mine.values() for x, y in points if y <= highest]
    place = (left, top, 275, 230)
    axes = Axes(canvas, place, (min(xs), max(xs)), (low, highest), logarithmic=True)
    ticks = [x for x in (5, 20, 50, 200, 800, 3000) if min(xs) <= x <= max(xs)]
    axes.frame(f"{data}: mistakes, %", on, ticks, range(low, highest + 1, 2))
    ends = {}
    for name, points in mine.items():
        colour = COLOURS[LEARNERS.index(name)]
        axes.curve(points, colour, 3 if name in ("arow", "ahpatron+") else 1.5)
        seen = [point for point in points if low <= point[1] <= highest]
        if seen:
            ends[name] = axes.at(*seen[-1])
    heights = spread([y for _, y in ends.values()], gap=15, low=top, high=top + 230)
    for (name, (end, y)), height in zip(ends.items(), heights, strict=True):
        colour = COLOURS[LEARNERS.index(name)]
        right = left + place[2]
        path = [(end + 4, y), (right + 12, height), (right + 22, height)]
        if end > right - 20:  # a leader across the panel would look like data
            canvas.line(path, stroke=colour, stroke_width="1.5")
        bold = "bold" if name in ("arow", "ahpatron+") else ""
        canvas.text(right + 26, height + 4, name, bold, style=f"fill:{colour}")


WINDOW = 2000
"""Rounds of which the picture of drift shows the mistake rate."""
STREAMED = {
    "ahpatron+": ("-l", "ahpatron+", "--scale", "standard", "--sigma", "auto"),
    "metron 1.0 (tracker=off)": ("-l", "metron", "-p", "tracker=off"),
    "metron, two memories": ("-l", "metron"),
}


def measure_drift(stream: Path) -> None:
    """Mistake rates of the last rounds along a stream, every 500 rounds, as a small CSV."""
    from support.command import Ahpatron

    with tempfile.TemporaryDirectory() as folder, DRIFT.open("w", newline="") as file:
        ahpatron = Ahpatron(Path(folder))
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["learner", "round", "rate"])
        for name, options in STREAMED.items():
            windowed = ("--label", "label", "--window", WINDOW, "--curve", "c.csv")
            ahpatron.succeed("run", stream.resolve(), *windowed, *options)
            for row in csv.DictReader(ahpatron.read("c.csv").splitlines()):
                if int(row["round"]) % 512 == 0 and int(row["round"]) >= WINDOW:
                    writer.writerow([name, row["round"], f"{100 * float(row['recent_rate']):.2f}"])


def drift() -> None:
    """Mistake rate of the last rounds along elec, a line per learner."""
    with DRIFT.open(newline="") as file:
        rows = list(csv.DictReader(file))
    curves: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        curves[row["learner"]].append((float(row["round"]), float(row["rate"])))
    title = f"Mistakes of the last {WINDOW:,} rounds on elec: two memories make the fewest"
    canvas = Canvas(870, 330, title)
    last = max(x for points in curves.values() for x, _ in points)
    axes = Axes(canvas, (45, 40, 620, 230), (0, last), (0, 25))
    axes.frame(
        f"elec: mistakes of the last {WINDOW:,} rounds, %",
        "round",
        range(0, 45001, 5000),
        range(0, 26, 5),
    )
    ends = {name: axes.at(*points[-1])[1] for name, points in curves.items()}
    heights = spread(list(ends.values()), gap=18, low=40, high=270)
    for (name, points), height, colour in zip(curves.items(), heights, COLOURS, strict=False):
        path = [axes.at(x, min(y, 25)) for x, y in points]
        bold = "bold" if name == "metron, two memories" else ""
        canvas.line(path, stroke=colour, stroke_width="3" if bold else "1.5")
        canvas.text(675, height + 4, name, bold, style=f"fill:{colour}")
    canvas.write("drift.svg")


def certificate() -> None:
    """Mistakes made and certified on the first N rows of rings."""
    from support.command import Ahpatron

    sizes = range(200, 2001, 150)
    made: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for size in sizes:
        done = Ahpatron(REPOSITORY)(
            *("run", "sample_data/rings.svm", "-l", "ahpatron", "-l", "perceptron"),
            *("--sigma", "0.1", "--limit", size, "--certify", "--format", "json"),
        )
        for run in json.loads(done.out)["runs"]:
            found = run["certificate"]
            made[f"{run['learner']}: made"].append((size, found["count"]))
            made[f"{run['learner']}: certified"].append((size, found["bound"]))
            if run["learner"] == "perceptron":
                made["trivial: all rounds"].append((size, size))
    canvas = Canvas(760, 330, "Mistakes made and certified on rings, as the stream grows")
    axes = Axes(canvas, (50, 40, 470, 230), (sizes[0], sizes[-1]), (0, 800))
    ticks = range(200, 2001, 600)
    axes.frame("rings: mistakes, made and certified", "rounds", ticks, range(0, 801, 200))
    looks = {
        "trivial: all rounds": ("#999999", 1.5),
        "ahpatron: certified": (COLOURS[0], 1.5),
        "ahpatron: made": (COLOURS[0], 3),
        "perceptron: certified": (COLOURS[1], 1.5),
        "perceptron: made": (COLOURS[1], 3),
    }
    ends = {}
    for name, (colour, width) in looks.items():
        axes.curve(made[name], colour, width)
        if made[name][-1][1] <= 800:
            ends[name] = axes.at(*made[name][-1])
        else:  # it leaves the picture
            x, y = axes.at(*[point for point in made[name] if point[1] <= 800][-1])
            canvas.text(x + 8, y + 14, name, "pale")
    heights = spread([y for _, y in ends.values()], gap=16, low=40, high=270)
    for (name, (x, y)), height in zip(ends.items(), heights, strict=True):
        colour = looks[name][0]
        path = [(x + 5, y), (530, y), (538, height), (548, height)]
        canvas.line(path, stroke=colour, stroke_width="1", stroke_dasharray="2 3")
        canvas.text(552, height + 4, name, "bold" if name.endswith("made") else "")
    canvas.write("certificate.svg")


def data_way() -> None:
    """Boxes and arrows: what becomes of an example, and the modules that do it."""
    canvas = Canvas(1072, 250, "From bytes to a table")
    steps = (
        ("bytes", "data/source.py", "decompress, hash"),
        ("rows or cells", "data/libsvm/, …", "parse, locate faults"),
        ("features, labels", "data/schema.py", "of the columns of a table"),
        ("batches", "data/dataset.py", "stream, or in memory"),
        ("codes, layout, scale", "data/encoder.py", "as the first rows decide"),
        ("points", "core/conversion.py", "dense or sparse"),
        ("block", "core/engine.py", "64 rounds, one table K"),
        ("round", "core/learners/", "predict, label, update"),
        ("record", "runner.py, records.py", "counts of a pass"),
        ("table", "output/", "table, JSON, CSV, …"),
    )
    columns = 5
    for number, (name, module, text) in enumerate(steps):
        row, column = divmod(number, columns)
        x, y = 20 + 212 * column, 20 + 125 * row
        canvas.box(x, y, 180, 84)
        middle = {"text_anchor": "middle"}
        canvas.text(x + 90, y + 26, name, "bold", **middle)
        canvas.text(x + 90, y + 48, module, "small mono pale", **middle)
        canvas.text(x + 90, y + 69, text, "small", **middle)
        if column < columns - 1:
            path = [(x + 182, y + 42), (x + 209, y + 42)]
            head = [(x + 202, y + 37), (x + 209, y + 42), (x + 202, y + 47)]
        elif row == 0:
            path = [(x + 90, y + 86), (x + 90, y + 105), (110, y + 105), (110, y + 122)]
            head = [(105, y + 115), (110, y + 122), (115, y + 115)]
        else:
            continue
        canvas.line(path, "arrow", stroke_width="1.5")
        canvas.line(head, "arrow", stroke_width="1.5")
    canvas.write("data_way.svg")


DRAWN = (benchmark, mistakes, budget, drift, certificate, data_way)
PICTURES = {one.__name__: one for one in DRAWN}

if __name__ == "__main__":
    asked = sys.argv[1:]
    for given in [word for word in asked if word.endswith(".jsonl")]:
        aggregate(Path(given))
    for given in [word for word in asked if word.endswith(".csv")]:
        measure_drift(Path(given))
    for wanted in [word for word in asked if word in PICTURES] or PICTURES:
        PICTURES[wanted]()
