import io
import os
import pty
import re
import subprocess
import sys
import textwrap

import pytest
from rich.console import Console

from ahpatron_cli.output.formats import to_text
from ahpatron_cli.output.run_table import run_page
from ahpatron_cli.output.terminal import print_page
from ahpatron_cli.records import Report, ThisFile
from support.terminal import without_style
from support.trials import make_report, make_run

TABLE = """\
a.svm: 1,000 rounds, 18 features, labels 0 → -1, 1 → +1
Learner     AMR %  |M_T|  |N_T|  Support  Halvings       ζ̂  Seconds
───────────────────────────────────────────────────────────────────
ahpatron    11.20    112     50  314/400         3  0.0123    0.051
perceptron  14.00    140      0     2325         –       –    0.051
"""

REPEATED = """\
a.svm: 1,000 rounds, 18 features; mean ± sd over 2 permutations
Learner            AMR %  |M_T|  |N_T|    Support  Halvings       ζ̂  Seconds
────────────────────────────────────────────────────────────────────────────
ahpatron    11.05 ± 1.48  110.5     50  314.5/400         3  0.0123    0.051
perceptron  14.00 ± 0.00    140      0       2325         –       –    0.051
"""

ASCII = """\
a.svm: 1,000 rounds, 18 features; mean +- sd over 2 permutations
Learner             AMR %  |M_T|  |N_T|    Support  Halvings    zeta  Seconds
-----------------------------------------------------------------------------
ahpatron    11.05 +- 1.48  110.5     50  314.5/400         3  0.0123    0.051
perceptron  14.00 +- 0.00    140      0       2325         -       -    0.051
"""

RESUMED = """\
a.svm: 1,000 rounds, 18 features; 3,000 rounds in all
Learner              AMR %  |M_T|  |N_T|  Support  Halvings       ζ̂  Seconds
────────────────────────────────────────────────────────────────────────────
ahpatron, this file   5.00     50      –        –         –       –        –
ahpatron, in all      6.67    200     50  314/400         3  0.0123    0.051
"""

NARROW_TITLE = """\
a.svm:
  1,000 rounds, 18 features, labels
  0 → -1, 1 → +1
"""

STACKED = """\
ahpatron
  AMR %: 11.20
  |M_T|: 112
  |N_T|: 50
  Support: 314/400
  Halvings: 3
  ζ̂: 0.0123
  Seconds: 0.051
perceptron
  AMR %: 14.00
  |M_T|: 140
  |N_T|: 0
  Support: 2325
  Halvings: –
  ζ̂: –
  Seconds: 0.051
"""


def on_terminal(reports: list[Report], terminal: io.StringIO, width: int) -> str:
    print_page(run_page(reports), Console(file=terminal, width=width))
    return terminal.getvalue()


def in_encoding(reports: list[Report], encoding: str) -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    print_page(run_page(reports), Console(file=stream))
    return raw.getvalue().decode(encoding)


def test_plain_table(two_learners: Report) -> None:
    assert to_text([two_learners], "table") == TABLE


def test_plain_table_of_repeats(repeated: Report) -> None:
    assert to_text([repeated], "table") == REPEATED


def test_several_files_are_parted_by_a_blank_line(two_learners: Report, repeated: Report) -> None:
    assert to_text([two_learners, repeated], "table") == TABLE + "\n" + REPEATED


@pytest.mark.parametrize("width", [80, 200])
def test_a_terminal_that_is_wide_enough_shows_the_table(
    two_learners: Report, terminal: io.StringIO, width: int
) -> None:
    assert without_style(on_terminal([two_learners], terminal, width)) == TABLE


def test_a_narrow_terminal_shows_it_stacked(two_learners: Report, terminal: io.StringIO) -> None:
    assert without_style(on_terminal([two_learners], terminal, 40)) == NARROW_TITLE + STACKED


def test_the_table_gives_way_exactly_where_it_no_longer_fits(
    two_learners: Report, terminal: io.StringIO
) -> None:
    needed = len(TABLE.splitlines()[2])
    assert without_style(on_terminal([two_learners], terminal, needed)) == TABLE
    terminal.truncate(0), terminal.seek(0)
    assert without_style(on_terminal([two_learners], terminal, needed - 1)) == (
        TABLE.splitlines(keepends=True)[0] + STACKED
    )


def test_the_best_rate_is_bold_on_a_terminal(repeated: Report, terminal: io.StringIO) -> None:
    *_, best, other = on_terminal([repeated], terminal, 80).splitlines()
    assert "\x1b[1m11.05\x1b[0m ± 1.48" in best
    assert "\x1b" not in other


def test_a_single_learner_is_not_best(terminal: io.StringIO) -> None:
    assert "\x1b" not in on_terminal([make_report()], terminal, 80).splitlines()[-1]


def test_a_dumb_terminal_gets_no_escape_codes(
    repeated: Report, terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert on_terminal([repeated], terminal, 80) == REPEATED


def test_no_color_leaves_at_most_bold(
    repeated: Report, terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert set(re.findall(r"\x1b\[([0-9;]*)m", on_terminal([repeated], terminal, 80))) <= {"0", "1"}


@pytest.mark.parametrize("width", [10, 40, 80])
def test_a_pipe_has_no_width_and_no_colour(repeated: Report, width: int) -> None:
    stream = io.StringIO()
    print_page(run_page([repeated]), Console(file=stream, width=width))
    assert stream.getvalue() == REPEATED


def test_a_pipe_with_forced_colour_is_not_cut_either(
    repeated: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    stream = io.StringIO()
    print_page(run_page([repeated]), Console(file=stream))
    assert "\x1b[1m" in stream.getvalue()
    assert without_style(stream.getvalue()) == REPEATED


def test_long_names_are_never_cut(terminal: io.StringIO) -> None:
    path = "folder/" * 40 + "data.svm"
    assert path in to_text([make_report(path=path)], "table")
    assert path in without_style(on_terminal([make_report(path=path)], terminal, 40))


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("a[/red].svm", "a[/red].svm"),
        ("data[train].svm", "data[train].svm"),
        ("[link=x]:smile: a.svm", "[link=x]:smile: a.svm"),
        ("\x1b[31mred\n.svm", r"\x1b[31mred\n.svm"),
        ("caf\udce9 \u202egpj", r"caf\xe9 \u202egpj"),
    ],
)
def test_names_are_shown_literally(terminal: io.StringIO, path: str, shown: str) -> None:
    text = on_terminal([make_report(make_run(path), make_run("other"), path=path)], terminal, 200)
    assert without_style(text).startswith(shown + ": ")
    assert f"\n{shown} " in without_style(text)


def test_ascii_only_streams_get_ascii(repeated: Report) -> None:
    assert in_encoding([repeated], "ascii") == ASCII


def test_signs_degrade_together(repeated: Report) -> None:
    assert in_encoding([repeated], "latin-1") == ASCII


def test_names_beyond_the_encoding_are_written_out() -> None:
    assert in_encoding([make_report(path="żółw.svm")], "ascii").startswith(
        r"\u017c\xf3\u0142w.svm: "
    )


def test_labels_are_mapped_only_where_it_is_news() -> None:
    assert "labels" not in to_text([make_report()], "table")
    assert "labels 1 → -1, 2.5 → +1" in to_text([make_report(labels=(1.0, 2.5))], "table")


def test_a_resumed_run_shows_this_file_and_all_rounds() -> None:
    resumed = make_run(
        rounds=3000, mistakes=200, mistake_rate=2 / 30, this_file=ThisFile(1000, 50, 0.05)
    )
    assert to_text([make_report(resumed)], "table") == RESUMED
    header, row = to_text([make_report(resumed)], "csv").splitlines()
    assert "this_file_rounds,this_file_mistakes,this_file_mistake_rate" in header
    assert ",1000,50,0.05," in row
    frozen = make_run(this_file=ThisFile(1000, 112, 0.112))  # all of its rounds are this file's
    assert "in all" not in to_text([make_report(frozen)], "table")
    counted = make_run(rounds=3000, this_file=ThisFile(1000, 50, 0.05), baseline_mistakes=1200)
    title = to_text([make_report(counted)], "table").splitlines()[0]
    assert title.endswith("18 features; 3,000 rounds in all with baseline 40.00 %")


def test_a_closed_pipe_is_left_to_the_app(two_learners: Report) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    stream = os.fdopen(writer, "w", encoding="utf-8")
    with pytest.raises(BrokenPipeError):
        print_page(run_page([two_learners]), Console(file=stream))
    with pytest.raises(BrokenPipeError):
        stream.close()


def test_a_real_terminal_of_40_columns() -> None:
    """From outside: a pseudo-terminal, its own size, bold and stacked."""
    program = textwrap.dedent("""
        import os, sys, fcntl, termios, struct
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
        from ahpatron_cli.records import DataRecord, Report, RunRecord
        from ahpatron_cli.output.formats import write_reports
        rest = 1, 1, None, None, 3, 1.0, 0, 0.1
        runs = [RunRecord(name, {}, 0, 0, 10, int(10 * rate), rate, *rest)
                for name, rate in (("first", 0.1), ("second", 0.2))]
        data = DataRecord("x.svm", 10, 2, (-1.0, 1.0), None)
        write_reports([Report("0", data, runs, 0.0)], "table")
    """)
    leader, follower = pty.openpty()
    subprocess.run([sys.executable, "-c", program], stdout=follower, check=True, timeout=120)
    os.close(follower)
    text = os.read(leader, 10_000).decode()
    os.close(leader)
    assert "  AMR %: \x1b[1m10.00\x1b[0m\r\n" in text
    assert "  AMR %: 20.00\r\n" in text
