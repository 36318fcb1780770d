"""Fuzz the reader: `python tests/faults/fuzz_reader.py [--executions N] [--seed S]`.

Lines are made of good and bad tokens, then cut, flipped, doubled and packed. `reading.check` judges
each input; the first that fails is written to `--crash` and ends the run.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import lzma
import random
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

LABELS = [b"1", b"-1", b"+1", b"0", b"2.5", b"1e0", b"-0", b"nan", b"inf", b"1e400", b"1_0", b"x"]
LABELS += [b"0x1", b"1,2", b"<a>", b"{", b"@r", b"|", b"", b".", b"1.", b".5", b"1e", b"--1"]
LABELS += [b"?", b"??", b"qid:1"]
INDICES = [b"1", b"2", b"3", b"7", b"0", b"01", b"10000000", b"10000001", b"-1", b"a", b"1.5"]
INDICES += [b"1_0", b"9" * 30, b"", b"qid", b"+1", b"4294967297", b"18446744073709551617"]
VALUES = [b"1", b"0.5", b"-2", b"+3", b"1e-400", b"5e-324", b"1.7976931348623157e308", b"1e309"]
VALUES += [b"0" * 30 + b"1", b"0." + b"3" * 30, b"9007199254740993", b"9007199254740993.0", b"nan"]
VALUES += [b"123456789012345678", b"1234567890123456789", b"0.1e1", b"1E5", b"-0", b"1,5", b"1_0"]
VALUES += [b"", b".", b"1.2.3", b"e5", b"0x10", b"4.35", b"2.675", b"18014398509481985.5"]
SPACES = [b" ", b" ", b" ", b" ", b"  ", b"\t", b"", b"\r", b"\x0b", b"\xa0", b"\xc2\xa0", b"\0"]
ENDS = [b"\n", b"\n", b"\n", b"\r\n", b" \n", b"\n\n", b"#\n", b" # \xc3\xa4 1:2\n", b"", b"\r"]
HEADS = [b"", b"", b"", b"", b"\xef\xbb\xbf", b"\xff\xfe", b"#\n", b"\n", b"\x1f\x8b", b"BZh9"]
PACKERS = (lambda text: gzip.compress(text, 1, mtime=0), bz2.compress, lzma.compress)


def made_up(generator: random.Random) -> bytes:
    """A text with the look of LIBSVM, good or bad."""
    hostility = generator.choice((0.0, 0.0, 0.02, 0.1, 0.5))
    labelled = generator.random() < 0.7

    def pick(choices: list[bytes], good: int) -> bytes:
        return generator.choice(choices if generator.random() < hostility else choices[:good])

    parts = [pick(HEADS, 4)]
    for _ in range(generator.choice((1, 1, 2, 3, 8))):
        parts.append(
            pick(LABELS, 7)
            if labelled or generator.random() < 0.5
            else generator.choice((b"?", b""))
        )
        index = 0
        if generator.random() < 0.1:
            parts.append(b" qid:%d" % generator.randrange(9))
        for _ in range(generator.choice((0, 1, 2, 3, 10))):
            index += generator.randrange(1, 5)
            spelled = pick(INDICES, 1) if generator.random() < hostility else b"%d" % index
            value = pick(VALUES, 7)
            if generator.random() < 0.5:
                value = f"{generator.uniform(-9, 9):.{generator.randrange(1, 20)}g}".encode()
            parts += [pick(SPACES, 4), spelled, b":", value]
        parts.append(pick(ENDS, 4))
    text = bytearray(b"".join(parts))
    while text and generator.random() < hostility:
        at = generator.randrange(len(text))
        match generator.randrange(4):
            case 0:
                text[at] = generator.randrange(256)
            case 1:
                del text[at]
            case 2:
                text[at:at] = text[generator.randrange(len(text)) :][: generator.randrange(20)]
            case _:
                del text[at:]
    data = bytes(text)
    if generator.random() < 0.02:
        data = generator.choice(PACKERS)(data)
        if generator.random() < 0.5:
            damaged = bytearray(data)
            damaged[generator.randrange(len(damaged))] ^= 1 << generator.randrange(8)
            data = bytes(damaged)
    return data


def fuzz(executions: int, seed: int, crash: Path) -> None:
    from faults.reading import check

    generator = random.Random(seed)
    outcomes: Counter[str] = Counter()
    began = time.monotonic()
    for number in range(executions):
        data = made_up(generator)
        try:
            found = check(data)
        except BaseException:
            crash.write_bytes(data)
            print(f"execution {number} failed; its input is in {crash}: {data[:200]!r}")
            raise
        outcomes[getattr(found, "problem", "accepted").split(":")[0]] += 1
    print(f"{executions:,} executions in {time.monotonic() - began:.0f} s, none failed")
    for outcome, count in outcomes.most_common():
        print(f"{count:>9,}  {outcome}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--executions", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--crash", type=Path, default=Path("fuzz_reader.crash"))
    asked = parser.parse_args()
    fuzz(asked.executions, asked.seed, asked.crash)


if __name__ == "__main__":
    main()
