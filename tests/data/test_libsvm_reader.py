"""The fast reader, the strict definition and scikit-learn's loader agree bit for bit."""

import math
import random
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ahpatron_cli.data.libsvm import fast as plain
from ahpatron_cli.data.libsvm import reader as reader_module
from ahpatron_cli.data.libsvm.reader import scan
from faults.reading import Reading, check, made_up, read
from support.effort import examples


def values(numbers: Iterable[str]) -> list[float]:
    found = read(("1 1:" + "\n1 1:".join(numbers) + "\n").encode())
    assert isinstance(found, Reading)
    return found.values


digits = st.text("0123456789", max_size=20)
spelled = st.builds(
    lambda sign, whole, point, part, exponent: f"{sign}{whole}{point}{part}{exponent}",
    st.sampled_from(["", "", "-", "+"]),
    digits,
    st.sampled_from(["", ".", "."]),
    digits,
    st.sampled_from(["", "", "", "e5", "E-7", "e+30", "e-300", "e-320", "e00"]),
).filter(lambda text: any(map(str.isdigit, text.lower().partition("e")[0])))
finite = st.floats(allow_nan=False, allow_infinity=False)
number = st.one_of(
    spelled, finite.map(repr), finite.map("{:.17e}".format), st.integers(-999, 999).map(str)
).filter(lambda text: abs(float(text)) < float("inf"))
made = st.integers(0, 2**64).map(lambda seed: made_up(random.Random(seed)))
valid = made.filter(lambda text: isinstance(read(text), Reading))


@examples(300)
@given(valid)
def test_valid_text_reads_alike_everywhere(text: bytes) -> None:
    found = check(text)
    for chunk_bytes in (64, 7, 1):
        assert read(text, chunk_bytes) == found
    with pytest.MonkeyPatch.context() as patch:  # valid text never needs the slow reader
        patch.setattr(reader_module, "parse_line", None)
        assert read(text) == found


@examples(300)
@given(st.lists(number, min_size=1, max_size=50))
@example(["9007199254740993", "9007199254740992", "0.1234567890123456", "00000000.00000001"])
@example(["12345678", "123456789", "1234567890123456", "12345678901234567", "0.000000000000000001"])
@example(["0.1257302210933933", "0.0001257302210933933", "0.0000000000000000000001", "1" * 25])
@example(["0.9007199254740991", "0.9007199254740993", "0.09999999999999999", "0." + "0" * 23 + "1"])
@example(["-0", "-0.0", "+.0", "1e-400", "-1e-400", "4.9e-324", "2.2250738585072011e-308"])
def test_numbers_are_those_of_float(numbers: list[str]) -> None:
    assert repr(values(numbers)) == repr([*map(float, numbers)])


@pytest.mark.parametrize("wide", [True, False])
def test_many_random_decimals_are_those_of_float(
    wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain, "_HAS_64_BIT_FLOATS", wide and plain._HAS_64_BIT_FLOATS)
    random.seed(5)
    numbers = [
        f"{random.choice(['', '-'])}{random.randrange(10 ** random.randrange(1, 12))}"
        f".{random.randrange(10**12):0{random.randrange(1, 13)}d}"
        for _ in range(15_000)
    ]
    numbers += [repr(random.gauss()) for _ in range(15_000)]
    numbers += [f"{random.gauss():.17g}" for _ in range(15_000)]
    numbers += list(half_way_cases())
    assert values(numbers) == [*map(float, numbers)]


def half_way_cases() -> Iterable[str]:
    """17 and 18 digits as near as can be to the middle of two doubles: rounding twice errs here."""
    for _ in range(20_000):
        decimals = random.randrange(14, 18)
        number = Fraction(random.uniform(2, 9))
        middle = (number + Fraction(math.nextafter(float(number), math.inf))) / 2
        near = round(middle * 10**decimals)
        whole, part = divmod(near, 10**decimals)
        yield f"{whole}.{part:0{decimals}d}"
    for exponent in range(54, 60):  # whole numbers in the middle, and beside it
        for _ in range(500):
            middle = (random.randrange(2**52, 2**53) * 2 + 1) * 2 ** (exponent - 54)
            yield from (str(middle - 1), str(middle), str(middle + 1))


@st.composite
def rectangle(draw: st.DrawFn) -> str:
    """Dense data: every line spells the same indices."""
    width = draw(st.integers(1, 12))
    first = draw(st.integers(0, 100))
    step = draw(st.integers(1, 40))
    spelling = draw(st.sampled_from(["{}", "{}", "{:02}", "{:05}"]))
    indices = [spelling.format(first + step * place) for place in range(width)]
    lines = [
        " ".join([draw(number), *(f"{index}:{draw(number)}" for index in indices)])
        for _ in range(draw(st.integers(2, 5)))
    ]
    return "\n".join(lines) + "\n"


@examples(500)
@given(rectangle(), st.integers(0, 10**6), st.sampled_from(b"0123456789 :.\n"))
@example("1 1:5 2:5\n1 1:5 3:5\n", 0, ord("1"))  # the same length, another index
@example("1 1:5 2:5\n1 1:5 12:5\n", 0, ord("1"))  # the same last digit
@example("1 1:5 10:5\n1 10:5 1:5\n", 0, ord("1"))
@example("1 1:5 2:5\n1 2:5 2:5\n", 0, ord("1"))
@example("1 1:5 2:5\n1\n1 1:1 2:1 3:1 4:1\n", 0, ord("1"))
def test_dense_lines_with_one_other_byte_read_as_defined(text: str, place: int, byte: int) -> None:
    changed = bytearray(text.encode())
    changed[place % len(changed)] = byte
    check(bytes(changed))


@examples(100)
@given(valid)
def test_scan_agrees_with_the_reader(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "scanned.svm"
    path.write_bytes(text)
    found = scan(str(path))
    rows = read(text)
    assert isinstance(rows, Reading)
    assert found.rows == len(rows.labels)
    labels, counts = np.unique(rows.labels, return_counts=True)
    assert found.counts == dict(zip(labels.tolist(), counts.tolist(), strict=True))
