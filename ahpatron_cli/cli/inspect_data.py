"""What `ahpatron inspect DATA` does: from options to a profile."""

from __future__ import annotations

from ahpatron_cli.cli.console import Conversation
from ahpatron_cli.cli.parameters import parse, parse_label
from ahpatron_cli.cli.shown import ProfileShown
from ahpatron_cli.core import KERNELS
from ahpatron_cli.data.scaling import SCALES
from ahpatron_cli.data.source import open_source
from ahpatron_cli.errors import ExitCode, one_of, usage
from ahpatron_cli.output.formats import FORMATS
from ahpatron_cli.profile.profiler import Profiler, Wanted

DATA_FORMATS = ("table", "json")


def check_format(format: str, what: str) -> None:
    """Refuse the formats that only results can be shown in."""
    one_of("format", format, FORMATS)
    if format not in DATA_FORMATS:
        hint = "--format table is for people, --format json for programs"
        raise usage(f"{what} cannot be shown as {format}", hint)


def wanted(
    max_faults: int,
    max_features: int,
    positive: str | None,
    scale: str | None,
    sigma: str | None,
    seed: int,
) -> Wanted:
    """What the options ask for, checked."""
    width = None
    if sigma is not None:
        width = float(parse("--sigma", KERNELS["gaussian"].specs()["sigma"], sigma))
    if scale is not None:
        one_of("scale", scale, SCALES)
    return Wanted(max_faults, max_features, parse_label(positive), scale, width, seed)


def look(path: str, asked: Wanted, format: str, talk: Conversation) -> ProfileShown:
    """Read the file once; the exit code says whether a line is faulty."""
    with open_source(path) as source, talk.progress(source.size, source.name) as line:
        profile = Profiler(source, asked).run(
            lambda rows: line.show(source.position, f"{rows:,} rows", "")
        )
    return ProfileShown(profile, format, ExitCode.BAD_DATA if profile.faults.count else ExitCode.OK)
