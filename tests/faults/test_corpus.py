"""Every file of the corpus, run here; and by the real command within 1 GiB of address space.

At most 2 s of CPU (bombs: 30 s) and 256 MB at the peak are limits that the command promises, so
they are tests and not benchmarks; CPU time does not grow on a busy machine as time on the wall
does, and it is taken twice before it fails a test. That half takes minutes, and is slow.
"""

import json
import socket
import unicodedata
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from ahpatron_cli.core import Ahpatron, play
from ahpatron_cli.data.source import BYTE_ORDER_MARK, Source
from faults.corpus import GOOD, MANY, Case, Oddity, oddities, packed, refusals
from faults.measured import measured
from faults.reading import Reading, check
from support.command import COMMAND, Outcome
from support.command import Ahpatron as Command

SECONDS = 2.0
BOMB_SECONDS = 30.0
MEGABYTES = 256
OUTPUTS = ("--out", "r.json", "--predictions", "p.csv", "--curve", "c.csv", "--save", "m.npz")


def run_here(folder: Path, *arguments: object, bomb: bool = False, stdin: bytes = b"") -> Outcome:
    return Command(folder)(*arguments, stdin=stdin)


def run_within_limits(
    folder: Path, *arguments: object, bomb: bool = False, stdin: bytes = b""
) -> Outcome:
    """In a process with its limits of time and memory."""
    seconds = BOMB_SECONDS if bomb else SECONDS
    for last in (False, True):
        done = measured([*COMMAND, *map(str, arguments)], folder, input=stdin)
        if done.cpu <= seconds:
            break
        assert not last, f"{done.cpu:.1f} s of CPU; {seconds} are allowed"
    assert done.megabytes <= MEGABYTES
    return Outcome(done.code, done.out.decode(), done.err)


Run = Callable[..., Outcome]


@pytest.fixture(
    params=[
        pytest.param(run_here, id="here"),
        pytest.param(run_within_limits, id="limits", marks=pytest.mark.slow),
    ]
)
def run(request: pytest.FixtureRequest) -> Run:
    """`ahpatron` in a folder."""
    call: Run = request.param
    return call


def as_params(cases: Sequence[Case]) -> list[object]:
    """Bombs take their time; of the faulty lines, which tests/data reads too, some will do."""
    number = 0
    params = []
    for case in cases:
        number += case.place.startswith(":3:")
        slow = case.bomb or (case.place.startswith(":3:") and number % 6)
        marks = [pytest.mark.slow] if slow else []
        params.append(pytest.param(case, id=case.name, marks=marks))
    return params


def assert_refused(done: Outcome, code: int, place: str) -> None:
    """One error with its place, nothing on stdout, and no character that a terminal would obey."""
    assert (done.code, done.out) == (code, ""), done.err
    message = done.err.splitlines()
    assert sum(line.startswith("error: ") for line in message) == 1
    shown = [line.strip() for line in message if line.lstrip().startswith("--> ")]
    assert shown == [f"--> {place}"], done.err
    assert "Traceback" not in done.err
    unseen = {unicodedata.category(character) for character in done.err.replace("\n", "")}
    assert not unseen & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@pytest.mark.parametrize("case", as_params([*refusals(), *packed()]))
def test_a_malformed_file_is_refused_with_its_place(run: Run, tmp_path: Path, case: Case) -> None:
    (tmp_path / "d.svm").write_bytes(case.content)
    outputs = OUTPUTS if "--repeats" not in case.options else OUTPUTS[:6]
    done = run(tmp_path, "run", "d.svm", *outputs, *case.options, bomb=case.bomb)
    assert_refused(done, 65, f"d.svm{case.place}")
    assert Command(tmp_path).files() == {"d.svm"}


@pytest.mark.parametrize("case", [*refusals()[:150:12], *packed()[:30:12]], ids=lambda c: c.name)
def test_refusal_by_the_other_commands(run: Run, tmp_path: Path, case: Case) -> None:
    """`sweep` reads the same way; `inspect` lists every faulty line and has the same exit code."""
    (tmp_path / "d.svm").write_bytes(case.content)
    done = run(tmp_path, "sweep", "d.svm", "--out", "r.jsonl", *case.options)
    assert_refused(done, 65, f"d.svm{case.place}")
    assert Command(tmp_path).files() == {"d.svm"}
    if case.place:
        assert run(tmp_path, "inspect", "d.svm").code == 65


@pytest.mark.parametrize("case", oddities(), ids=lambda case: case.name)
def test_an_odd_file_is_learned_as_scikit_learn_reads_it(
    run: Run, tmp_path: Path, case: Oddity
) -> None:
    """Rows and labels are scikit-learn's, mapped; so are the rounds, mistakes and f(x)."""
    assert isinstance(check(case.content), Reading)  # all values, to the bit
    (tmp_path / "d.svm").write_bytes(case.content)
    positive = () if case.positive is None else ("--positive", case.positive)
    options = ("-B", 20, "--format", "json", "--predictions", "p.csv", *positive)
    done = run(tmp_path, "run", "d.svm", *options)
    assert done.code == 0, done.err
    assert case.said in done.err
    assert case.said or done.err.count("\n") <= done.err.count("warning: ahpatron: |f(x)| < 1e-9")
    report = json.loads(done.out)
    X, y = loaded(case.content)
    top = case.positive if case.positive is not None else float(y.max())
    signs = np.where(y == top, 1.0, -1.0)
    assert (report["data"]["rounds"], report["data"]["labels"][1]) == (len(y), top)
    player = play(Ahpatron(budget=20), X, signs)
    assert report["runs"][0]["mistakes"] == player.tally.mistakes
    assert len((tmp_path / "p.csv").read_text().splitlines()) == len(y) + 1


def loaded(content: bytes) -> tuple[np.ndarray, np.ndarray]:
    """What scikit-learn makes of the unpacked text; wide data without the columns in between."""
    source = Source(BytesIO(content), "bytes", closes=True)
    text = b"".join(iter(lambda: source.read1(1 << 16), b"")).removeprefix(BYTE_ORDER_MARK)
    X, y = load_svmlight_file(BytesIO(text), zero_based=True)
    used = np.unique(X.indices)
    return (X[:, used].toarray() if len(used) else np.zeros((len(y), 1))), y


PLACES = {
    **dict.fromkeys(["none.svm", "", "none/data.svm", "folder", "good.svm/data"], 66),
    **dict.fromkeys(["dangling", "loop", "x" * 300, "socket", "http://localhost/d.svm"], 66),
    **dict.fromkeys(["/dev/null", "/dev/zero", "/dev/urandom"], 65),
    "/proc/self/mem": 74,
}


@pytest.mark.parametrize(("path", "code"), PLACES.items())
def test_what_is_no_data_file_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, code: int
) -> None:
    (tmp_path / "good.svm").write_bytes(GOOD)
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as unix:
        monkeypatch.chdir(tmp_path)  # the address of a socket may not be long
        unix.bind("socket")
    before = Command(tmp_path).files()
    done = run(tmp_path, "run", path, *OUTPUTS)
    assert (done.code, done.out) == (code, ""), done.err
    assert f"--> {path}" in done.err
    assert Command(tmp_path).files() == before


STREAMS = [
    (b"", "<stdin>"),
    (b"1 1:x\n", "<stdin>:1:5"),
    ("1 1:1\n".encode("utf-16"), "<stdin>:1:1"),
    (b"0.5 1:1\n1 1:2\n", "<stdin>:1"),
    (b"\x1f\x8b\x08", "<stdin>"),
    (b"1" * (17 << 20), "<stdin>:1:1"),
]


@pytest.mark.parametrize(("data", "place"), STREAMS, ids=lambda value: str(value)[:20])
def test_malformed_standard_input_is_refused_with_its_place(
    run: Run, tmp_path: Path, data: bytes, place: str
) -> None:
    assert_refused(run(tmp_path, "run", "-", *OUTPUTS, stdin=data), 65, place)
    assert Command(tmp_path).files() == set()


@pytest.mark.slow
def test_valid_files_need_as_little(tmp_path: Path) -> None:
    """Small rows, wide rows, and the first rows of a bomb: what comes behind is not unpacked."""
    bomb = next(case for case in packed() if case.name == "bomb-rows")
    lines = (
        b"%d %d:1 %d:0.5 %d:2\n"
        % ((-1) ** (n % 3), n % 9 + 1, n * 37 % 9999 + 10, 990_000 + n % 9999)
        for n in range(20_000)  # as dense rows, 100 of them alone were 800 MB
    )
    for content, rounds, words in (
        (MANY * 100, 30_000, ("-B", 40)),
        (b"".join(lines), 20_000, ("-B", 100)),
        (bomb.content, 1000, ("--limit", 1000, "--positive", 1)),
    ):
        (tmp_path / "d.svm").write_bytes(content)
        done = run_within_limits(tmp_path, "run", "d.svm", *words, "--json", bomb=rounds > 1000)
        assert json.loads(done.out)["data"]["rounds"] == rounds
