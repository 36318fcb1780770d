"""An encoder turns rows of a source into rows of a learner, and never changes."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from ahpatron_cli.core.rows import CsrRows, compressed
from ahpatron_cli.data.batch import Batch
from ahpatron_cli.data.encoder import Encoder
from ahpatron_cli.data.label_codes import LabelCodes, SeenLabels
from ahpatron_cli.data.labels import NewLabelError
from ahpatron_cli.data.layout import DENSE_WIDTH, is_dense
from ahpatron_cli.data.scaling import Scaler
from ahpatron_cli.data.schema import Schema
from ahpatron_cli.errors import UserError

PAIR = LabelCodes("scan", (-1, 1))
ROWS = np.array([[0.0, 3.0, 4.0], [0.0, 0.0, 2.0]])


def examples(rows: np.ndarray, labels: list[float]) -> Batch:
    """Rows as a reader yields them: sparse, from line 1 on."""
    lines = np.arange(1, len(labels) + 1)
    return Batch(compressed(rows), labels=np.array(labels), lines=lines)


def test_an_encoder_cannot_be_changed() -> None:
    encoder = Encoder(labels=PAIR, dense=True)
    with pytest.raises(FrozenInstanceError):
        encoder.dense = False  # type: ignore[misc]


def test_encoding_gives_codes_and_rows_and_keeps_line_numbers() -> None:
    encoder = Encoder(labels=LabelCodes("scan", (2, 5)), dense=True)
    encoded = encoder.encode(examples(ROWS, [5, 2]))
    assert encoded.labels.tolist() == [1, -1]
    assert encoded.lines.tolist() == [1, 2]
    assert np.array_equal(encoded.rows, ROWS)


def test_dense_rows_are_arrays_with_at_least_the_given_number_of_columns() -> None:
    rows = Encoder(labels=PAIR, dense=True).convert(compressed(ROWS), width=5)
    assert isinstance(rows, np.ndarray)
    assert rows.shape == (2, 5)
    assert np.array_equal(rows[:, :3], ROWS)


def test_sparse_rows_are_as_wide_as_dense_ones() -> None:
    rows = Encoder(labels=PAIR, dense=False).convert(ROWS, width=5)
    assert isinstance(rows, CsrRows)
    assert rows.width == 5
    assert np.array_equal(rows.dense()[:, :3], ROWS)


def test_scale_unit_divides_each_row_by_its_length() -> None:
    rows = Encoder(labels=PAIR, dense=True, scale="unit").convert(compressed(ROWS))
    assert np.allclose(rows, [[0, 0.6, 0.8], [0, 0, 1]])


def test_a_fitted_scale_is_applied_to_every_row() -> None:
    scaler = Scaler.fitted(ROWS, "minmax")
    encoder = Encoder(labels=PAIR, dense=True, scale="minmax", scaler=scaler)
    assert np.allclose(encoder.convert(compressed(ROWS)), [[0, 1, 1], [0, 0, 0]])


def test_a_feature_that_the_model_does_not_know_is_refused_at_its_line() -> None:
    encoder = Encoder(labels=PAIR, dense=False, width=2, refuses_new_features=True)
    known = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 7.0]])
    with pytest.raises(UserError, match="not in the model: 2, and 1 is the largest") as refusal:
        encoder.check_width(examples(known, [1, -1]), "a.svm")
    assert refusal.value.place is not None
    assert refusal.value.place.line == 2


def test_a_stored_zero_of_an_unknown_feature_is_not_refused() -> None:
    encoder = Encoder(labels=PAIR, dense=False, width=2, refuses_new_features=True)
    columns = np.array([2], dtype=np.int32)
    rows = CsrRows(np.array([0, 1]), columns=columns, values=np.zeros(1), width=3)
    encoder.check_width(Batch(rows, labels=np.ones(1), lines=np.ones(1, dtype=int)), "a.svm")


def test_rows_that_are_too_wide_to_be_dense_are_refused() -> None:
    wide = np.zeros((1, DENSE_WIDTH + 1))
    wide[0, -1] = 1.0
    with pytest.raises(UserError, match="too wide to be dense"):
        Encoder(labels=PAIR, dense=True).check_width(examples(wide, [1]), "a.svm")
    Encoder(labels=PAIR, dense=False).check_width(examples(wide, [1]), "a.svm")


def test_weights_are_in_the_order_of_the_labels() -> None:
    encoder = Encoder(labels=LabelCodes("scan", (1, 2, 3)), dense=True)
    assert encoder.weights({3: 5.0}, (1, 2, 3)) == (1, 1, 5)


def test_labels_of_a_table_are_weighed_by_name() -> None:
    schema = Schema(columns=[], label="y", labels={"no": -1.0, "yes": 1.0})
    encoder = Encoder(labels=LabelCodes("schema", (-1, 1)), dense=True, schema=schema)
    assert encoder.weights({"yes": 4.0}, (-1, 1)) == (1, 4)


def test_a_weight_of_a_label_that_the_data_lack_is_refused() -> None:
    with pytest.raises(UserError, match="--weight names the label 7"):
        Encoder(labels=PAIR, dense=True).weights({7: 2.0}, (-1, 1))


@pytest.mark.parametrize(
    ("width", "stored", "expected"),
    [(10, 10, True), (10, 9, False), (DENSE_WIDTH, 10 * DENSE_WIDTH, True)],
)
def test_rows_are_dense_from_a_tenth_of_the_values_on(
    width: int, stored: int, expected: bool
) -> None:
    assert is_dense(10, width, stored=stored) is expected


def test_rows_wider_than_the_limit_are_sparse_however_full_they_are() -> None:
    width = DENSE_WIDTH + 1
    assert not is_dense(10, width, stored=10 * width)


# Codes of labels ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codes", "labels", "encoded"),
    [
        (LabelCodes("scan", (-1, 1)), [-1, 1], [-1, 1]),
        (LabelCodes("scan", (2, 5)), [5, 2], [1, -1]),
        (LabelCodes("pipe"), [0, 1, -1], [-1, 1, -1]),
        (LabelCodes("option", positive=3), [3, 8, 1], [1, -1, -1]),
        (LabelCodes("scan", (1, 4, 9)), [9, 1, 4], [2, 0, 1]),
        (LabelCodes("model", (None, 2.5), positive=2.5), [2.5, 7], [1, -1]),
    ],
)
def test_two_labels_are_minus_and_plus_one_and_more_are_numbers_from_zero(
    codes: LabelCodes, labels: list[float], encoded: list[float]
) -> None:
    assert codes.encode(np.array(labels)).tolist() == encoded


def test_a_row_without_a_label_has_no_code() -> None:
    assert np.isnan(PAIR.encode(np.array([np.nan, 1.0]))).tolist() == [True, False]


def test_only_three_and_more_labels_are_classes() -> None:
    assert PAIR.classes is None
    assert LabelCodes("scan", (1, 2, 3)).classes == (1, 2, 3)


def test_the_labels_seen_decide_which_plain_pair_it_is() -> None:
    seen = SeenLabels(LabelCodes("pipe"), "-")
    assert seen.labels() == (None, 1)
    seen.check(np.array([1.0, 0.0]), np.array([1, 2]))
    assert seen.labels() == (0, 1)


def test_a_label_without_a_code_is_refused_at_its_line() -> None:
    seen = SeenLabels(LabelCodes("model", (-1, 1)), "a.svm")
    with pytest.raises(UserError, match="not trained on the label 3") as refusal:
        seen.check(np.array([1.0, 3.0]), np.array([7, 8]))
    assert refusal.value.place is not None
    assert refusal.value.place.line == 8


def test_a_file_that_was_not_scanned_is_read_again_if_a_label_is_new() -> None:
    seen = SeenLabels(LabelCodes("file"), "a.svm")
    with pytest.raises(NewLabelError):
        seen.check(np.array([-1.0, 1.0, 2.0]), np.array([1, 2, 3]))


def test_rows_with_and_without_a_label_are_counted() -> None:
    seen = SeenLabels(PAIR, "a.svm")
    seen.count(np.array([1.0, np.nan, -1.0]))
    assert (seen.rows, seen.unlabelled) == (2, 1)


def test_one_class_alone_cannot_be_learned() -> None:
    seen = SeenLabels(LabelCodes("scan"), "a.svm")
    seen.check(np.array([1.0]), np.array([1]))
    with pytest.raises(UserError, match="nothing to learn"):
        seen.finish()
