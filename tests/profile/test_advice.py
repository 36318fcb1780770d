"""What follows from a profile: how labels are played, which scaling, which command next."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from ahpatron_cli.profile.profile import TriedSigma, advice, next_commands
from support.profiles import Matrix, profile, to_text


def test_which_scaling_is_advised() -> None:
    rng = np.random.default_rng(6)
    y = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    X = rng.random((200, 6))

    def advised(X: Matrix) -> str:
        return profile(to_text(X, y)).scaling.advised

    assert advised(X) == "none"
    assert advised(255 * X) == "none"
    assert advised(X * [1, 1, 1, 50, 1, 1000]) == "minmax"
    heavy = X * [1, 1, 1, 50, 1, 1000]
    heavy[0] = heavy[0] * 100 + 100
    assert advised(heavy) == "standard"
    sparse = np.where(rng.random((200, 60)) < 0.05, 30 * rng.random((200, 60)), 0.0)
    assert advised(sparse * np.geomspace(1, 1000, 60)) == "unit"
    unit = rng.normal(size=(200, 3))
    assert advised(np.hstack((unit / np.linalg.norm(unit, axis=1)[:, None], 0 * unit))) == "none"


def test_labels_and_how_they_are_played() -> None:
    two = profile(b"2 1:1\n4 1:2\n2 1:3\n").labels
    assert (two.negative, two.positive, two.grouped) == (2.0, 4.0, False)
    assert [(one.label, one.rows) for one in two.counts] == [(2.0, 2), (4.0, 1)]
    assert profile(b"2 1:1\n2 1:2\n4 1:3\n").labels.grouped
    three = profile(b"1 1:1\n2 1:2\n3 1:3\n2 1:4\n")
    assert (three.labels.positive, three.labels.problem) == (None, None)
    assert "--positive" in three.unknown[-1]
    assert three.alignments == ()
    chosen = profile(b"1 1:1\n2 1:2\n3 1:3\n2 1:4\n", positive=2.0)
    assert (chosen.labels.negative, chosen.labels.positive) == (None, 2.0)
    assert chosen.alignments
    assert "no row has the label 9" in str(profile(b"1 1:1\n", positive=9.0).labels.problem)
    many = profile("".join(f"{i} 1:{i}\n" for i in range(3000)).encode()).labels
    assert (len(many.counts), many.complete, many.grouped) == (1000, False, False)


def test_the_command_to_go_on_with() -> None:
    plain = profile(b"1 1:1\n-1 1:2\n1 1:3\n")
    assert next_commands(plain) == ["ahpatron run data.svm -l metron"]
    file = replace(plain, from_pipe=False, path="my data.svm")
    assert next_commands(file)[1].startswith(
        "ahpatron sweep 'my data.svm' -l ahpatron+ -g sigma=log:0.409:6.24:7"
    )
    other = profile(b"2 1:1 2:900\n4 1:2 2:1\n4 1:3 2:5000\n")
    assert next_commands(other) == ["ahpatron run data.svm --positive 4 -l metron --shuffle"]
    tried = (TriedSigma(0.5, 1000, 0.1, 0.5), TriedSigma(1.12, 1000, 0.11, 0.5))
    for rate, words in (
        (0.11, "-l metron"),  # within a standard error of the best
        (0.2, "--scale minmax -l arow --sigma 1.12"),
    ):
        (command,) = next_commands(replace(other, tried=tried, tried_metron=rate))
        assert command == f"ahpatron run data.svm --positive 4 {words} --shuffle"
    assert next_commands(profile(b"1 1:1\nx\n-1 1:2\n")) == []
    assert next_commands(profile(b"1 1:1\n1 1:2\n")) == []
    assert "correct the faulty lines" in advice(profile(b"1 1:1\nx\n-1 1:2\n"))[0]
