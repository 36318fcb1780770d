"""The overview of the columns of a table: `inspect TABLE`."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from support.command import Ahpatron
from support.terminal import in_terminal, lines_of

ROWS = 1200


def table(rows: int = ROWS, seed: int = 1, noise: int = 0) -> str:
    """A table with a leak, constants, ids and text that looks like dates and numbers."""
    rng = np.random.default_rng(seed)
    target = io.StringIO()
    writer = csv.writer(target)
    names = ["id", "amount", "country", "same", "empty", "paid", "when", "price", "since", "late"]
    writer.writerow([*names, *(f"noise_{i}" for i in range(noise)), "churn"])
    for i in range(rows):
        x = rng.normal()
        churn = bool(x + rng.normal() > 0.8)
        cells = [
            f"C{i:05}",
            f"{x:.3f}" if i % 10 else "",
            ["DE", "FR", "US"][int(rng.integers(3))],
            "EUR",
            "",
            f"{10 * churn + rng.random():.4f}",
            f"{rng.integers(1, 29)}.{rng.integers(1, 13)}.2024",
            f"{rng.integers(1, 40)},{rng.integers(10, 12)}",
            f"2024-{rng.integers(1, 13):02}-{rng.integers(1, 29):02}",
            "yes" if churn else "no",
        ]
        writer.writerow([*cells, *rng.normal(size=noise).round(3), ["stays", "leaves"][churn]])
    return target.getvalue()


DROPPED = ("--drop", "id")


def columns_of(ahpatron: Ahpatron, *arguments: Any, **options: Any) -> dict[str, dict[str, Any]]:
    done = ahpatron("inspect", *arguments, "--json", **options)
    return {one["name"]: one for one in json.loads(done.out)["columns"]}


@pytest.fixture(
    scope="module", params=[(), ("--label", "churn", "--id", "id")], ids=["plain", "labelled"]
)
def described(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """The columns of `table()` as `inspect` describes them, with and without a label."""
    ahpatron = Ahpatron(tmp_path_factory.mktemp("described"))
    ahpatron.write("t.csv", table())
    return columns_of(ahpatron, "t.csv", *request.param)


@pytest.fixture(scope="module")
def cells() -> list[dict[str, str]]:
    """The rows of `table()`."""
    return list(csv.DictReader(io.StringIO(table())))


def test_every_column_is_described_in_the_order_of_the_table(
    described: dict[str, dict[str, Any]], cells: list[dict[str, str]]
) -> None:
    assert list(described) == list(cells[0])


def test_only_the_column_of_ids_looks_like_an_id(described: dict[str, dict[str, Any]]) -> None:
    assert [name for name, one in described.items() if one["like_id"]] == ["id"]


@pytest.mark.parametrize(("rows", "looks_like_it"), [(19, False), (20, True)])
def test_few_rows_cannot_show_that_a_column_identifies_them(
    ahpatron: Ahpatron, rows: int, looks_like_it: bool
) -> None:
    ahpatron.write("t.csv", "id,x\n" + "".join(f"C{i},{i % 3}\n" for i in range(rows)))
    assert columns_of(ahpatron, "t.csv")["id"]["like_id"] == looks_like_it


def test_a_column_with_one_value_and_missing_cells_is_not_constant(ahpatron: Ahpatron) -> None:
    ahpatron.write("t.csv", "a,x\n" + "EUR,1\n,2\n" * 20)
    found = columns_of(ahpatron, "t.csv")["a"]
    assert (found["distinct"], found["missing"], found["constant"]) == (1, 20, False)


def test_missing_numbers_have_an_interval_of_their_own(ahpatron: Ahpatron) -> None:
    """Where the number is missing, the label is another than that of the largest numbers."""
    ahpatron.write("t.csv", "a,y\n" + "1,no\n2,no\n,yes\n2,no\n,yes\n" * 40)
    assert columns_of(ahpatron, "t.csv", "--label", "y")["a"]["mistake_rate"] < 0.05


def test_only_a_column_with_one_value_is_constant(described: dict[str, dict[str, Any]]) -> None:
    assert [name for name, one in described.items() if one["constant"]] == ["same"]


def test_a_column_without_values_is_empty(described: dict[str, dict[str, Any]]) -> None:
    empty = described["empty"]
    assert (empty["type"], empty["missing"]) == ("empty", ROWS)


def test_a_column_of_numbers_has_its_range_and_its_distinct_values(
    described: dict[str, dict[str, Any]], cells: list[dict[str, str]]
) -> None:
    amounts = [float(row["amount"]) for row in cells if row["amount"]]
    amount = described["amount"]
    assert (amount["type"], amount["missing"]) == ("number", ROWS // 10)
    assert (amount["low"], amount["high"]) == (min(amounts), max(amounts))
    assert amount["distinct"] == len(set(amounts))


def test_a_column_of_categories_has_its_most_frequent_text(
    described: dict[str, dict[str, Any]], cells: list[dict[str, str]]
) -> None:
    expected = Counter(row["country"] for row in cells).most_common(1)[0]
    country = described["country"]
    assert (country["most_frequent"], country["most_frequent_rows"]) == expected


def test_a_column_of_dates_has_its_first_day(
    described: dict[str, dict[str, Any]], cells: list[dict[str, str]]
) -> None:
    since = described["since"]
    assert (since["type"], since["low"]) == ("date", min(row["since"] for row in cells))


def test_text_like_dates_and_numbers_is_noticed(ahpatron: Ahpatron) -> None:
    rows = [f'{i % 28 + 1}/{i % 12 + 1}/24,"{i % 90},{i % 7}5",v{i % 3},{i % 2}' for i in range(99)]
    ahpatron.write("t.csv", "\n".join(["when,price,kind,y", *rows]) + "\n")
    found = columns_of(ahpatron, "t.csv")
    like = {name: one["like"] or one["type"] for name, one in found.items()}
    assert like["when"] in ("dates", "date")
    assert like["price"] in ("numbers", "number")
    assert like["kind"] == "category"


def test_a_column_that_is_said_to_have_categories_is_not_like_numbers(ahpatron: Ahpatron) -> None:
    ahpatron.write("t.csv", "zip,y\n" + "".join(f"1{i % 7:04},{i % 2}\n" for i in range(99)))
    options = ("--label", "y", "--category", "zip")
    found = columns_of(ahpatron, "t.csv", *options)
    assert (found["zip"]["type"], found["zip"]["like"]) == ("category", None)
    assert "numbers like" not in ahpatron.succeed("inspect", "t.csv", *options).out


@pytest.mark.parametrize("options", [(), ("--label", "y")], ids=["plain", "labelled"])
def test_the_option_that_reads_text_as_numbers_is_said_once(
    ahpatron: Ahpatron, options: tuple[str, ...]
) -> None:
    ahpatron.write("t.csv", "price;y\n" + "".join(f"{i % 9},25;{i % 2}\n" for i in range(99)))
    shown = ahpatron.succeed("inspect", "t.csv", *options).out
    assert shown.count("--decimal , reads numbers") == 1


@pytest.mark.parametrize("options", [(), ("--label", "y")], ids=["plain", "labelled"])
def test_codes_with_leading_zeros_are_noticed(ahpatron: Ahpatron, options: tuple[str, ...]) -> None:
    ahpatron.write("t.csv", "zip,y\n" + "".join(f"{i % 7:05},{i % 2}\n" for i in range(99)))
    shown = ahpatron.succeed("inspect", "t.csv", *options).out
    assert shown.count("if they are codes, --category zip") == 1


def test_shares_of_a_column_are_those_of_all_its_cells(ahpatron: Ahpatron) -> None:
    cells = ["1"] * 70 + ["x"] * 30
    rows = [f"{cell},{'a' if i % 2 else ''},{i % 2}" for i, cell in enumerate(cells)]
    ahpatron.write("t.csv", "\n".join(["n,k,y", *rows, ""]))
    shown = ahpatron("inspect", "t.csv", "--label", "y").out
    [kind] = [line for line in shown.splitlines() if line.startswith("k ")]
    assert kind.split()[2] == "50.00"
    assert "a (50.0 %)" in kind


def test_a_column_that_gives_the_label_away_shows(ahpatron: Ahpatron) -> None:
    ahpatron.write("t.csv", table())
    options = ("--label", "churn", "--id", "id", "--drop", "when", "--drop", "price")
    done = ahpatron.succeed("inspect", "t.csv", *options, "--json")
    document = json.loads(done.out)
    rates = {one["name"]: one["mistake_rate"] for one in document["columns"]}
    assert rates["late"] < 0.02
    assert rates["paid"] < 0.03
    assert rates["country"] > 0.8 * document["baseline"]
    assert rates["churn"] is rates["id"] is rates["when"] is None
    advice = " ".join(document["advice"])
    assert "--drop late" in advice
    assert "--drop paid" in advice
    assert "--drop country" not in advice


@pytest.mark.parametrize("labels", ["text", "numbers", "classes"])
def test_the_rule_on_a_column_is_nearly_that_of_counts_row_by_row(
    ahpatron: Ahpatron, labels: str
) -> None:
    rng = np.random.default_rng(5)
    names = {"text": ["no", "yes"], "numbers": ["0", "1"], "classes": ["a", "b", "c"]}[labels]
    kinds = rng.integers(0, 8, 3000)
    guess = (kinds + (rng.random(3000) < 0.3)) % len(names)
    rows = [f"k{k},{names[g]}" for k, g in zip(kinds, guess, strict=True)]
    ahpatron.write("t.csv", "\n".join(["kind,y", *rows]) + "\n")
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    mistakes = 0
    for kind, label in zip(kinds.tolist(), guess.tolist(), strict=True):
        before = counts[kind].most_common(1)
        mistakes += not before or before[0][0] != label
        counts[kind][label] += 1
    found = columns_of(ahpatron, "t.csv", "--label", "y")["kind"]["mistake_rate"]
    assert found == pytest.approx(mistakes / 3000, rel=0.1)


def test_a_pipe_is_described_too(ahpatron: Ahpatron) -> None:
    data = table(300).encode()
    options = ("--label", "churn", "--id", "id", "--drop", "when", "--drop", "price")
    ahpatron.write("t.csv", data)
    from_file = columns_of(ahpatron, "t.csv", *options)
    piped = columns_of(ahpatron, "-", *options, stdin=data)
    assert piped == {name: from_file[name] for name in piped}
    assert {"amount", "late", "churn"} <= set(piped)
    without_label = columns_of(ahpatron, "-", stdin=data)
    assert list(without_label) == list(from_file)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("noise", [0, 300])
def test_the_table_of_columns_fits_the_terminal(ahpatron: Ahpatron, width: int, noise: int) -> None:
    path = ahpatron.write("t.csv", table(200, noise=noise))
    shown, _ = in_terminal("inspect", path, columns=width)
    lines = lines_of(shown)
    assert max(map(len, lines)) <= width
    assert any(line.startswith("amount") for line in lines)
    assert len(lines) < 80
    plain = ahpatron.succeed("inspect", "t.csv")
    assert "\x1b" not in plain.out


def test_many_columns_show_those_that_need_a_look(ahpatron: Ahpatron) -> None:
    ahpatron.write("t.csv", table(200, noise=300))
    done = ahpatron("inspect", "t.csv", "--label", "churn", "--id", "id")
    shown = [line.split()[0] for line in done.out.splitlines() if line]
    assert {"same", "late", "paid", "empty"} <= set(shown)


def test_faults_of_rows_are_counted_without_a_label(ahpatron: Ahpatron) -> None:
    ahpatron.write("t.csv", "a,b\n1,2\n1,2,3\n4,5\n6\n")
    done = ahpatron("inspect", "t.csv", "--json")
    document = json.loads(done.out)
    assert (done.code, document["faults"], document["rows"]) == (65, 2, 2)


def test_distinct_values_are_counted_up_to_a_limit(ahpatron: Ahpatron) -> None:
    rows = "".join(f"{i},{i % 2}\n" for i in range(10_050))
    ahpatron.write("t.csv", "a,y\n" + rows)
    found = columns_of(ahpatron, "t.csv")
    assert (found["a"]["distinct"], found["a"]["like_id"]) == (None, True)
    assert found["y"]["distinct"] == 2


def test_no_weight_is_advised_that_lowers_f1_on_the_first_rows(ahpatron: Ahpatron) -> None:
    """Advice is tried on rows drawn at random, and again on the first rows."""
    rng = np.random.default_rng(0)
    for seed in range(3):
        x = rng.normal(size=(1500, 2))
        positive = rng.random(1500) < 1 / (1 + np.exp(4 - 1.5 * x[:, 0]))
        rows = [f"{a:.3f},{b:.3f},{int(p)}" for (a, b), p in zip(x, positive, strict=True)]
        ahpatron.write(f"{seed}.csv", "\n".join(["a,b,y", *rows]) + "\n")
        document = json.loads(
            ahpatron.succeed("inspect", f"{seed}.csv", "--label", "y", "--json").out
        )
        advises = any("--weight" in item for item in document["advice"])
        if advises:
            assert document["confirmed_cost"] is True
        assert document["confirmed_cost"] in (True, False)


def test_json_lines_are_described_like_a_table(ahpatron: Ahpatron) -> None:
    rows = list(csv.DictReader(io.StringIO(table(100))))
    ahpatron.write("t.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    found = columns_of(ahpatron, "t.jsonl")
    assert list(found) == list(rows[0])
    assert found["country"]["type"] == "category"
    labelled = columns_of(ahpatron, "t.jsonl", "--label", "churn", "--id", "id")
    assert labelled["late"]["mistake_rate"] < 0.1


def test_a_line_whose_label_is_an_object_is_not_described(ahpatron: Ahpatron) -> None:
    rows = [{"a": i, "y": i % 2} for i in range(20)]
    faulty = {"a": 20, "y": {"b": 1}}
    lines = [json.dumps(row) + "\n" for row in [*rows, faulty]]
    ahpatron.write("t.jsonl", "".join(lines))
    found = columns_of(ahpatron, "t.jsonl", "--label", "y")
    assert list(found) == ["a", "y"]
    assert found["y"]["missing"] == 0
    assert found["a"]["distinct"] == len(rows)
