"""Rows with labels of every kind, as LIBSVM text and as a table."""

import csv
import io
import random
from collections.abc import Sequence

NUMBERS = {"-1/+1": ("-1", "1"), "0/1": ("0", "1"), "1/2": ("1", "2"), "0/1/2": ("0", "1", "2")}
"""Labels that LIBSVM text and tables can have, in increasing order."""
TEXTS = {"text": ("no", "yes"), "text classes": ("setosa", "versicolor", "virginica")}
"""Labels that only tables can have."""
EVERY = NUMBERS | TEXTS
ROWS = 150


def drawn(labels: Sequence[str], rows: int = ROWS, seed: int = 0) -> list[tuple[str, float, float]]:
    """Random rows: the label and two features; the first one mostly shows the label.

    The last of two labels is the rarer one.
    """
    draw = random.Random(seed)
    weights = [3, 1] if len(labels) == 2 else None
    found = []
    for label in draw.choices(labels, weights, k=rows):
        shift = 2 * labels.index(label)
        found.append((label, round(draw.gauss(shift, 1), 3), round(draw.gauss(0, 1), 3)))
    return found


def libsvm(labels: Sequence[str], rows: int = ROWS, seed: int = 0) -> str:
    """Such rows as LIBSVM text."""
    return "".join(f"{label} 1:{a} 2:{b}\n" for label, a, b in drawn(labels, rows, seed))


def table(labels: Sequence[str], rows: int = ROWS, seed: int = 0) -> str:
    """Such rows as CSV, with the columns name, a, b and y."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["name", "a", "b", "y"])
    for number, (label, a, b) in enumerate(drawn(labels, rows, seed)):
        writer.writerow([f"row {number}", a, b, label])
    return text.getvalue()
