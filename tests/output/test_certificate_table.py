"""The sheet of certificates, from records made by hand."""

from dataclasses import replace

from ahpatron_cli.core.certificates import Certificate
from ahpatron_cli.output.formats import to_text
from ahpatron_cli.records import to_json
from support.trials import make_perceptron, make_report, make_run

CERTIFICATE = Certificate(
    "Theorem 5", "failures", 113, 241.0000001, 950, False, "SVM, C = 0.5", 99.94, 2.345
)


def test_bounds_are_rounded_up() -> None:
    certified = replace(make_report(), certified=[CERTIFICATE])
    lines = to_text([certified], "table").splitlines()
    assert lines[5:10] == [
        "a.svm: certified",
        "Learner   Count   Made  Bound  Trivial  By         Comparator f  L_T(f)   ‖f‖",
        "─" * 77,
        "ahpatron  |M'_T|   113    242      950  Theorem 5  SVM, C = 0.5    99.9  2.35",
        "",
    ]


def test_of_repeats_the_largest_bound_and_how_many_have_none() -> None:
    runs = [make_run(repeat=repeat) for repeat in range(3)]
    vacuous = replace(CERTIFICATE, bound=950.0, vacuous=True)
    none = ("Theorem 5 requires luck",)
    certified = [CERTIFICATE, none, vacuous]
    text = to_text([replace(make_report(*runs), certified=certified)], "table")
    assert "a.svm: certified; the largest bound of 3 permutations\n" in text
    assert " *950 " in text
    assert "Vacuous (*): the bound is not below the trivial one.\n" in text
    assert text.endswith("Not certified:\n  ahpatron (1 of 3 repeats): Theorem 5 requires luck\n")


def test_several_learners_and_files_keep_their_own() -> None:
    other = replace(CERTIFICATE, theorem="Theorem 1", counts="mistakes", bound=300.0)
    certified = [CERTIFICATE, other]
    both = replace(make_report(make_run(), make_perceptron()), certified=certified)
    text = to_text([both, make_report(path="b.svm")], "markdown")
    assert text.count("Data: ") == 3
    assert "| ahpatron | \\|M'\\_T\\| | 113 | 242 |" in text
    assert "| perceptron | \\|M\\_T\\| | 113 | 300 |" in text


def test_only_the_reason_if_no_learner_has_a_certificate() -> None:
    certified = [("no theorem covers it",)]
    text = to_text([replace(make_report(), certified=certified)], "table")
    assert "Bound" not in text
    assert text.endswith("Not certified:\n  ahpatron: no theorem covers it\n")


def test_without_certificates_nothing_changes() -> None:
    assert "certificate" not in to_json(make_report())["runs"][0]
    for format in ("table", "csv", "jsonl", "markdown", "latex"):
        assert "certif" not in to_text([make_report()], format)
