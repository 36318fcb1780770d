"""Rows of a stream and rows in memory: the same examples, prepared by the same encoder."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from ahpatron_cli.core import BLOCK
from ahpatron_cli.core.rows import compressed
from ahpatron_cli.data.batch import Batch
from ahpatron_cli.data.dataset import BATCH_ROWS, Dataset, RowsInMemory, mapped
from ahpatron_cli.data.labels import NewLabelError
from ahpatron_cli.data.libsvm.reader import CHUNK_BYTES
from ahpatron_cli.data.opening import load, stream
from ahpatron_cli.data.preparation import Preparation
from ahpatron_cli.data.source import Source, open_source
from ahpatron_cli.errors import UserError
from ahpatron_cli.settings import Data

ROUNDS = 3 * BLOCK + 5
EVERY_ROW = Data()


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A file whose rows become wider after the second block."""
    lines = []
    for number in range(ROUNDS):
        label = (-1) ** number
        features = f"1:{number} 2:1"
        if number >= 2 * BLOCK:
            features += " 3:0.5"
        lines.append(f"{label} {features}\n")
    file = tmp_path / "a.svm"
    file.write_text("".join(lines))
    return str(file)


def piped(text: bytes) -> Source:
    """A pipe with this text, whose writer has ended."""
    receive, send = os.pipe()
    os.write(send, text)
    os.close(send)
    return Source(os.fdopen(receive, "rb", buffering=0), "pipe", closes=True)


def loaded(path: str, data: Data = EVERY_ROW) -> RowsInMemory:
    with open_source(path) as source:
        return load(source, Preparation(data))


def whole(dataset: Dataset, **options: object) -> Batch:
    """All examples of a data set."""
    batches = list(dataset.batches(**options))  # type: ignore[arg-type]  # of any type
    rows = [Batch(compressed(one.rows), labels=one.labels, lines=one.lines) for one in batches]
    return Batch.concatenate(rows)


def dense(batch: Batch) -> np.ndarray:
    return batch.stored.dense(4)


@pytest.mark.parametrize("scale", ["none", "minmax", "standard", "unit"])
def test_a_stream_has_the_same_rows_as_the_file_in_memory(path: str, scale: str) -> None:
    in_memory = whole(loaded(path, Data(scale=scale)))
    with open_source(path) as source:
        streamed = whole(stream(source, Preparation(Data(scale=scale))))
    assert np.array_equal(dense(streamed), dense(in_memory))
    assert np.array_equal(streamed.labels, in_memory.labels)
    assert np.array_equal(streamed.lines, in_memory.lines)


def test_the_encoder_of_a_stream_is_known_before_its_rows_are_read(path: str) -> None:
    with open_source(path) as source:
        encoder = stream(source, Preparation(Data(scale="minmax"))).encoder
    assert encoder.dense
    assert encoder.classes is None
    assert encoder.scaler is not None


def test_a_stream_of_a_model_is_encoded_as_the_model_was(path: str) -> None:
    encoder = loaded(path, Data(scale="standard", limit=BLOCK)).encoder
    with open_source(path) as source:
        continued = stream(source, Preparation(), encoder)
        first = dense(whole(continued))[:1]
    assert np.array_equal(first, encoder.convert(np.array([[0.0, 0.0, 1.0, 0.0]])))


def test_rows_in_memory_are_read_in_any_order(path: str) -> None:
    dataset = loaded(path)
    order = np.arange(ROUNDS)[::-1]
    assert whole(dataset, order=order).lines.tolist() == (order + 1).tolist()


def test_rows_in_memory_are_read_repeatedly(path: str) -> None:
    dataset = loaded(path)
    assert np.array_equal(dense(whole(dataset)), dense(whole(dataset)))
    assert dataset.finish().record.rounds == ROUNDS


def test_a_block_is_only_as_wide_as_the_rows_so_far(path: str) -> None:
    widths = [batch.stored.width for batch in loaded(path).batches(rows=BLOCK)]
    assert widths == [3, 3, 4, 4]


def test_batches_end_at_the_blocks_of_the_engine(path: str) -> None:
    with open_source(path) as source:
        batches = stream(source, Preparation()).batches(first_round=10, rows=BLOCK)
        sizes = [len(batch.labels) for batch in batches]
    assert sizes == [BLOCK - 10, BLOCK, BLOCK, 15]


def test_batches_are_small_enough_for_signals(tmp_path: Path) -> None:
    file = tmp_path / "long.svm"
    file.write_text("-1 1:1\n1 1:2\n" * BATCH_ROWS)
    with open_source(str(file)) as source:
        sizes = [len(batch.labels) for batch in stream(source, Preparation()).batches()]
    assert max(sizes) <= BATCH_ROWS
    assert sum(sizes) == 2 * BATCH_ROWS


def test_the_rounds_of_a_file_are_counted_by_a_scan(path: str) -> None:
    with open_source(path) as source:
        assert stream(source, Preparation()).count_rounds() == ROUNDS


def test_the_rounds_of_a_pipe_are_not_known() -> None:
    with piped(b"1 1:1\n-1 1:2\n") as source:
        assert stream(source, Preparation()).count_rounds() is None


def test_the_summary_of_a_stream_is_that_of_the_file_in_memory(path: str) -> None:
    with open_source(path) as source:
        dataset = stream(source, Preparation())
        whole(dataset)
        findings = dataset.finish()
    assert findings == loaded(path).finish()
    assert (findings.record.rounds, findings.record.features) == (ROUNDS, 3)


def test_rows_without_a_label_are_yielded_and_counted() -> None:
    with piped(b"1 1:1\n? 1:2\n-1 1:3\n") as source:
        dataset = stream(source, Preparation(may_lack_labels=True))
        assert np.isnan(whole(dataset).labels).tolist() == [False, True, False]
        assert dataset.finish().unlabelled == 1


def test_the_warm_up_has_only_rows_with_a_label_and_batches_repeat_it() -> None:
    with piped(b"? 1:9\n1 1:1\n-1 1:3\n") as source:
        dataset = stream(source, Preparation(Data(warm_up=2), may_lack_labels=True))
        rows, labels = dataset.warm_up()
        assert labels.tolist() == [1, -1]
        assert np.array_equal(rows, [[0, 1], [0, 3]])
        assert len(whole(dataset).labels) == 3


def test_a_file_is_not_scanned_if_the_caller_can_start_again(tmp_path: Path) -> None:
    file = tmp_path / "late.svm"
    file.write_text("-1 1:1\n1 1:2\n" * (CHUNK_BYTES // 10) + "7 1:1\n")
    with open_source(str(file)) as source, pytest.raises(NewLabelError, match="the label 7"):
        whole(stream(source, Preparation(), may_restart=True))
    with open_source(str(file)) as source:
        assert stream(source, Preparation()).encoder.classes == (-1, 1, 7)


def test_a_pipe_with_a_third_label_is_refused() -> None:
    text = b"1 1:1\n-1 1:2\n3 1:1\n"
    with piped(text) as source, pytest.raises(UserError, match="an unexpected label: 3"):
        whole(stream(source, Preparation()))


def test_processes_share_rows_that_were_saved(path: str, tmp_path: Path) -> None:
    dataset = loaded(path, Data(scale="minmax"))
    folder = tmp_path / "mapped"
    folder.mkdir()
    dataset.save(folder)
    shared = mapped("elsewhere/a.svm", folder)
    assert shared.name == "elsewhere/a.svm"
    assert np.array_equal(dense(whole(shared)), dense(whole(dataset)))
    assert shared.finish().record.sha256 == dataset.finish().record.sha256


def test_a_file_that_changed_since_it_was_hashed_is_refused(path: str) -> None:
    with open_source(path) as source, pytest.raises(UserError, match="changed"):
        load(source, Preparation(), sha256="0" * 64)
