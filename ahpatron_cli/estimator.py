"""scikit-learn interface to the learners: same engine, seeds and mistake counts as the CLI."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, TypeGuard, TypeVar

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _clone_parametrized
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_is_fitted,
    validate_data,
)
from threadpoolctl import ThreadpoolController

from ahpatron_cli.atomic import write_atomically
from ahpatron_cli.class_labels import (
    LabelCoding,
    are_plain_numbers,
    check_labels,
    check_present,
    distinct_labels,
    kind_of,
    label_texts,
    labels_from_texts,
    type_name,
)
from ahpatron_cli.configured import configured, warn_user
from ahpatron_cli.core import BLOCK, Player
from ahpatron_cli.core.errors import CoreError, NumericalError, ParameterError
from ahpatron_cli.core.parameters import Value
from ahpatron_cli.core.rows import (
    CsrRows,
    Floats,
    Integers,
    Rows,
    as_rows,
    compressed,
    unit_rows,
)
from ahpatron_cli.core.tally import chosen
from ahpatron_cli.data.cells import Cells, LabelKind, Spelling
from ahpatron_cli.data.encoder import Encoder
from ahpatron_cli.data.frames import (
    Frame,
    Record,
    Records,
    as_frame,
    bare_name,
    column_names,
    frame_cells,
)
from ahpatron_cli.data.inference import infer_schema_without_labels
from ahpatron_cli.data.label_codes import LabelCodes
from ahpatron_cli.data.layout import is_dense
from ahpatron_cli.data.schema import Column, FeatureColumns, Schema, Unseen, listed
from ahpatron_cli.data.table_options import hint_in_python, options_in_python, unknown_drops
from ahpatron_cli.errors import UserError
from ahpatron_cli.explanation import column_relevances
from ahpatron_cli.model_file import Header, damaged, load_model, model_of, to_bytes
from ahpatron_cli.output.predictions import label_names
from ahpatron_cli.runner import generator_seed
from ahpatron_cli.sigma import MOST_TRIED_ROWS, auto_sigma

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class SparseMatrix(Protocol):
    """A sparse matrix or array of SciPy."""

    def tocsr(self) -> object:
        """The matrix as compressed rows."""
        ...


MatrixLike: TypeAlias = ArrayLike | SparseMatrix | Sequence[Record] | Record
"""An array, a DataFrame, a list of dicts or a sparse matrix, of shape (n_samples, n_features)."""
Examples: TypeAlias = Rows | FeatureColumns
"""Rows of X: numbers, or the columns of a table."""
Labels: TypeAlias = NDArray[Any]
"""Labels of any type, in an array."""
Result = TypeVar("Result")

BLAS = ThreadpoolController().select(user_api="blas")
"""The loaded BLAS library. Cached, because a lookup takes longer than one round of learning."""
PIECE = 64 * BLOCK
"""Number of rows converted at a time, so that X may be a memory map larger than memory."""
MOST_COLUMNS = 2**31 - 2
NAMED = ("budget", "epsilon", "sigma", "horizon")
NO_LABELS = "no_validation"
"""Value of `y` that tells scikit-learn's `validate_data` that there are no labels."""


class OnlineKernelClassifier(ClassifierMixin, BaseEstimator):
    """Budgeted online kernel classifier for 2 to 1,000 classes.

    `fit` passes over the rows in the given order: predict, see the label, update. `mistakes_` is
    the count of `ahpatron run` on the same rows with the same parameters and seed. More than two
    classes are learned one-vs-rest, with one learner and one budget per class, or on one shared
    active set (parameter `multiclass`); the class with the largest f(x) is predicted.

    Parameters
    ----------
    learner : str or None
        Name as in `ahpatron learners`, or of a registered class of your own, or `FILE.py:Class`.
        None selects metron, which needs no kernel, no σ and no scaling; parameters that it does
        not have are then refused, because they are meant for another learner.
    kernel : str or None
        Name as in `ahpatron learners`; None selects the Gaussian kernel.
    budget, epsilon, sigma, horizon : number or None
        Parameters of the learner or the kernel; None selects the default. A parameter that
        neither has is an error. `horizon` is the number of rounds, for learners whose defaults
        depend on it; `fit` sets it to the number of rows. `sigma="auto"` selects the best of five
        widths on the first 1,000 rows (with `partial_fit`, of the first call); see `sigma_`.
        On learners with a kernel of their own (`learner="metron"`), `kernel` and `sigma` have no
        effect, with a warning.
    params : dict or None
        Other parameters of the learner and the kernel, by name.
    table : dict or None
        Options for DataFrames and lists of dicts, as on the command line: `missing`, `category`,
        `drop`, `na`, `decimal`, `date_format`. Arrays are not affected.
    n_passes : int
        Number of passes of `fit` over the rows. Counts are summed over the passes.
    shuffle : bool
        Whether each pass of `fit` visits the rows in a new random order.
    class_weight : dict, "balanced" or None
        Weight of the examples of each class, 1 by default; "balanced" is n/(k·n_c) for n_c of n
        rows in class c of k, and is for `fit` only. Same as `--weight` on the command line.
    random_state : int, RandomState or None
        Seed of the permutations and of the learner; an int has the same effect as `--seed`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The sorted labels. With two classes, the second one is encoded as +1.
    player_ : Player
        The engine's state: the learner, its hypothesis `f` and the counts in `tally`.
    online_scores_ : array of shape (n_rounds,), or (n_rounds, n_classes) if there are more than two
        f(x) of each round of the last `fit` or `partial_fit`, before the update of that round.
    mistakes_, n_updates_ : int
        Number of mistakes and of updates in all rounds so far.
    mistake_rate_ : float
    support_size_ : int or None
        |S|, the number of support examples.
    sigma_ : float or None
        Width of the kernel, as given or as selected by "auto".
    relevances_ : array of shape (n_features_in_,)
        Relevance of each column of X, above what all features get alike; only of metron.
    schema_ : Schema or None
        How the columns of a table become features: `schema_.columns`, and the names of the
        features, `schema_.features`. None if X was an array.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns of X, if they have names.

    Examples
    --------
    >>> import numpy as np
    >>> from ahpatron_cli import OnlineKernelClassifier
    >>> X = np.array([[0.0], [1.0], [0.1], [0.9]])
    >>> model = OnlineKernelClassifier("arow", budget=10).fit(X, ["no", "yes", "no", "yes"])
    >>> model.mistakes_, model.predict([[0.8]]).tolist()
    (2, ['yes'])
    """

    def __init__(
        self,
        learner: str | None = None,
        *,
        kernel: str | None = None,
        budget: int | None = None,
        epsilon: float | None = None,
        sigma: float | str | None = None,
        horizon: int | None = None,
        params: Mapping[str, Value] | None = None,
        table: Mapping[str, Any] | None = None,
        n_passes: int = 1,
        shuffle: bool = False,
        class_weight: Mapping[Any, float] | str | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.learner = learner
        self.kernel = kernel
        self.budget = budget
        self.epsilon = epsilon
        self.sigma = sigma
        self.horizon = horizon
        self.params = params
        self.table = table
        self.n_passes = n_passes
        self.shuffle = shuffle
        self.class_weight = class_weight
        self.random_state = random_state

    # Learning -----------------------------------------------------------------------------------

    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Reset the estimator, then learn from these rows in the given order.

        A call that is refused or interrupted leaves the estimator unchanged.

        Parameters
        ----------
        X : array, DataFrame, list of dicts or sparse matrix of shape (n_samples, n_features)
            The columns of a DataFrame (pandas, polars) and the keys of dicts are those of a table:
            numbers, text, dates, booleans and missing cells are treated as in `ahpatron run`.
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            Weights > 0, for learners that take costs.

        Returns
        -------
        self
        """
        with self._unchanged_if_it_fails():
            self._forget()
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        """Learn from these rows as an unfitted estimator."""
        self._warn_of_lost_options()
        rows, labels, weights = self._examples(X, y, weights=sample_weight, first=True)
        is_whole = isinstance(self.n_passes, int | np.integer)
        if not is_whole or self.n_passes < 1:
            raise ValueError(f"n_passes must be a whole number >= 1, got {self.n_passes!r}")
        coding = LabelCoding.of(distinct_labels(labels))
        encoded = coding.encode(labels)
        weights = self._by_class(weights, labels=labels, encoded=encoded, coding=coding)
        horizon = len(labels) * self.n_passes
        self._begin(rows, encoded, coding=coding, y=y, horizon=horizon)
        scores: list[Floats] = []
        seen: list[Floats] = []
        for i in range(self.n_passes):
            order = self._order_of_pass(i, len(labels))
            scores_of_pass = self._feed(rows, encoded, weights, order=order)
            scores.append(scores_of_pass)
            seen.append(encoded[order])
        self.online_scores_ = np.concatenate(scores)
        self._labels = np.concatenate(seen)

    def _order_of_pass(self, number: int, rows: int) -> Integers | slice:
        """The order in which a pass visits the rows, as in the repeats of `run --shuffle`."""
        if not self.shuffle:
            return slice(None)
        generator = np.random.default_rng([self._seed, number])
        return generator.permutation(rows)

    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        check_input: bool = True,
    ) -> Self:
        """Continue learning with these rows, in the given order.

        Several calls give the predictions of one `fit` on all rows up to rounding, and identical
        ones if the number of rows per call is a multiple of 64. Learners whose defaults depend on
        the number of rounds require `horizon` for this. The first call decides the columns and
        categories of a table. Invalid rows leave the estimator unchanged, as does a first call that
        fails. If a later one fails, `player_.tally.rounds` counts the rows of complete blocks.

        Parameters
        ----------
        X : array, DataFrame, list of dicts or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array of shape (n_classes,), optional
            All labels; required in the first call.
        sample_weight : array of shape (n_samples,), optional
            Weights > 0, for learners that take costs.
        check_input : bool, default=True
            If False, X is validated in the first call only; in later calls it must be a float64
            array of shape (n_samples, `n_features_in_`) without NaN or infinity.

        Returns
        -------
        self
        """
        if self.__sklearn_is_fitted__():
            self._continue(
                X, y, classes=classes, sample_weight=sample_weight, check_input=check_input
            )
        else:
            with self._unchanged_if_it_fails():
                self._start(X, y, classes=classes, sample_weight=sample_weight)
        return self

    def _start(
        self,
        X: MatrixLike,
        y: ArrayLike,
        *,
        classes: ArrayLike | None,
        sample_weight: ArrayLike | None,
    ) -> None:
        """The first call of `partial_fit`."""
        rows, labels, weights = self._examples(X, y, weights=sample_weight, first=True)
        if classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if isinstance(self.class_weight, str):
            raise ValueError(f"class_weight={self.class_weight!r} is for `fit` only")
        coding = LabelCoding.of(distinct_labels(classes))
        encoded = coding.encode(labels)
        weights = self._by_class(weights, labels=labels, encoded=encoded, coding=coding)
        self._begin(rows, encoded, coding=coding, y=y, horizon=None)
        self.online_scores_ = self._feed(rows, encoded, weights)
        self._labels = encoded

    def _continue(
        self,
        X: MatrixLike,
        y: ArrayLike,
        *,
        classes: ArrayLike | None,
        sample_weight: ArrayLike | None,
        check_input: bool,
    ) -> None:
        """A later call of `partial_fit`."""
        if check_input or not isinstance(X, np.ndarray):
            rows, labels, weights = self._examples(X, y, weights=sample_weight, first=False)
        else:
            rows = np.asarray(X)
            labels = np.asarray(y)
            weights = None
            if sample_weight is not None:
                weights = np.asarray(sample_weight)
        coding = self._coding
        if classes is not None and not coding.has_classes(classes):
            raise ValueError(f"classes={classes!r} are not those of before, {self.classes_!r}")
        encoded = coding.encode(labels)
        weights = self._by_class(weights, labels=labels, encoded=encoded, coding=coding)
        if len(encoded) > BLOCK:
            self._check_computable(rows)
        self.online_scores_ = self._feed(rows, encoded, weights)
        self._labels = encoded

    def _check_computable(self, rows: Examples) -> None:
        """Raise a ValueError if a row overflows, before earlier blocks are learned."""
        numbers = np.arange(len(rows))
        conversion = self.player_.conversion.copy()
        for start in range(0, len(rows), PIECE):
            part = slice(start, start + PIECE)
            ready = self._ready(_part(rows, part))
            try:
                conversion.convert(ready)
            except NumericalError as error:
                raise _named(error, numbers[part]) from None

    def _by_class(
        self,
        weights: Floats | None,
        *,
        labels: Labels,
        encoded: Floats,
        coding: LabelCoding,
    ) -> Floats | None:
        """Sample weights times class weights, one per row; None if all are 1."""
        given = self.class_weight
        if given is None:
            return weights
        of_classes: Floats
        if isinstance(given, Mapping):
            weight_by_class = _weights_of(coding.classes, given)
            of_classes = np.array(weight_by_class)
        else:
            of_classes = compute_class_weight(given, classes=coding.classes, y=labels)
        of_rows = of_classes[coding.numbers(encoded)]
        if weights is None:
            return of_rows
        return of_rows * weights

    @contextmanager
    def _unchanged_if_it_fails(self) -> Iterator[None]:
        """Restore all attributes if the block fails. It must not change the player itself."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _forget(self) -> None:
        """Remove all fitted attributes, so that the estimator is unfitted."""
        fitted = [name for name in vars(self) if name.endswith("_")]
        for name in fitted:
            delattr(self, name)

    def _examples(
        self, X: MatrixLike, y: ArrayLike, *, weights: ArrayLike | None, first: bool
    ) -> tuple[Examples, Labels, Floats | None]:
        """Validated rows, labels and weights, without the rows of weight 0."""
        if not first and weights is None and self._is_plain(X):
            labels = np.asarray(y)
            if labels.shape == (len(X),):
                return X, labels, None
        check_present(y)
        rows, labels = self._rows(X, y, first=first)
        check_labels(labels, y)
        if first:  # later, labels must be among the classes
            kind = type_of_target(labels, input_name="y", raise_unknown=True)
            if kind not in ("binary", "multiclass"):
                raise ValueError(f"Unknown label type: {kind}. Labels must be those of classes.")
        if weights is None:
            return rows, labels, None
        if not np.asarray(weights).any():
            if first:
                raise ValueError("Sample weights must contain at least one non-zero number.")
            nothing = slice(0)  # which is no fault of a stream
            return _part(rows, nothing), labels[nothing], None
        checked = _check_sample_weight(weights, labels, dtype=np.float64, ensure_non_negative=True)
        positive = np.flatnonzero(checked)
        kept = np.asarray(checked[positive])
        return _part(rows, positive), labels[positive], kept

    def _is_plain(self, X: MatrixLike) -> TypeGuard[Floats]:
        """Whether X is valid already, so that scikit-learn's slow validation can be skipped.

        Only used after the first call, which validates X and sets `n_features_in_`.
        """
        if type(X) is not np.ndarray or hasattr(self, "feature_names_in_"):
            return False
        has_shape = X.shape[1:] == (self.n_features_in_,)
        if X.dtype != np.float64 or not has_shape:
            return False
        if not len(X):
            return False
        return bool(np.isfinite(X).all())

    def _rows(
        self, X: MatrixLike, y: ArrayLike = NO_LABELS, first: bool = False
    ) -> tuple[Examples, Labels]:
        """Rows and labels, validated by scikit-learn or converted by the schema of the table."""
        has_labels = not isinstance(y, str)
        with _as_value_errors():
            frame = as_frame(X)
            table = None
            if frame is not None:
                table = self._table(X, frame, first=first)
        if table is not None:
            if not has_labels:
                return table, np.empty(0)
            labels = _check_y(y, multi_output=False, estimator=self)
            check_consistent_length(table, labels)
            return table, labels
        if first:
            self._fitted_schema: Schema | None = None
        elif not self._takes_arrays():
            names = listed(self.feature_names_in_)
            raise ValueError(f"X must be a DataFrame or a list of dicts with the columns {names}")
        with _naming_tables(first=first, is_frame=frame is not None):
            found = validate_data(self, X, y, reset=first, accept_sparse="csr", dtype=np.float64)
        rows = found
        labels = np.empty(0)
        if has_labels:
            rows, labels = found
        width = rows.shape[1]
        if not isinstance(rows, np.ndarray) and width > MOST_COLUMNS:
            raise ValueError(f"sparse X may have {MOST_COLUMNS} columns at most, got {width}")
        return as_rows(rows), labels

    def _takes_arrays(self) -> bool:
        """Whether arrays have the features of the model: always, unless it is that of a table."""
        schema = self.schema_
        return schema is None or schema.is_numeric

    def _table(self, X: MatrixLike, frame: Frame, *, first: bool) -> FeatureColumns | None:
        """The columns of a DataFrame, converted; None if it counts as an array."""
        names = column_names(frame)
        if first:
            are_names = [isinstance(name, str) for name in frame.columns]
            if not all(are_names):
                return None
            schema, cells = self._inferred(X, frame, list(names))
        elif self.schema_ is None:
            return None
        else:
            schema = self.schema_
            # scikit-learn wants columns of numbers in the order of `fit`
            if self._checks_names and hasattr(X, "columns"):
                validate_data(self, X, reset=False, skip_check_array=True)
            used = [column.name for column in schema.columns]
            if isinstance(frame, Records):
                frame.with_columns(used)
                names = column_names(frame)
            schema.check_columns(names, "X")
            spelling = self._spelling_of_rows(schema)
            cells = spelling.cleaned(
                frame_cells(frame, used, text=schema.text_columns(), path="X"),
                by_name=schema.columns_of_names(),
            )
        unseen = Unseen()
        table = schema.to_feature_columns(cells, "X", unseen)
        for note in unseen.notes:
            warn_user(note)
        return table

    def _spelling_of_rows(self, schema: Schema) -> Spelling:
        """How cells of later rows are written: as `table` says, unless it is that of the model."""
        said = self.table
        if said is None or said is getattr(self, "_table_of_model", None):
            return schema.spelling()
        return schema.spelling(said.get("decimal"), said.get("date_format"))

    def _inferred(self, X: MatrixLike, frame: Frame, names: list[str]) -> tuple[Schema, Cells]:
        """The schema of a new table, whose columns are noted, and its cells."""
        if hasattr(X, "columns"):
            validate_data(self, X, skip_check_array=True)
        else:
            self.feature_names_in_ = np.array(names, dtype=object)
            self.n_features_in_ = len(names)
        options = options_in_python(self.table, names)
        for note in unknown_drops(options, names):
            warn_user(note)
        used = [name for name in names if name not in options.drop]
        raw = frame_cells(frame, used, text=options.category, path="X")
        cells = options.spelling.cleaned(raw, by_name=options.category)
        schema, warnings_of_columns = infer_schema_without_labels(names, options, [cells], path="X")
        for note in warnings_of_columns:
            warn_user(note)
        self._fitted_schema = schema
        self._table_of_model: Mapping[str, Any] | None = None
        self._checks_names = schema.is_numeric  # as scikit-learn does for columns of numbers
        return schema, cells

    def _begin(
        self,
        rows: Examples,
        encoded: Floats,
        *,
        coding: LabelCoding,
        y: ArrayLike,
        horizon: int | None,
    ) -> None:
        """Create the `Player` (learner, kernel, classes, seed) before the first row is learned."""
        self._target_name = getattr(y, "name", None)
        schema = self._fitted_schema
        features = self.n_features_in_
        if schema is not None:
            features = len(schema.features)
        self._encoder = Encoder(
            labels=LabelCodes("option", coding.stored),
            dense=_are_made_dense(rows),
            width=features + 1,
            schema=schema,
        )

        def select_sigma(kernel: str) -> float:
            return self._selected_sigma(rows, encoded, kernel)

        given = self._given_params()
        learner, kernel = configured(self.learner, self.kernel, given, select_sigma=select_sigma)
        self._seed = self._new_seed()
        seed = generator_seed(self._seed, 0, learner.name)
        classes = len(coding.classes)
        try:
            player = Player(learner, kernel, classes=classes, seed=seed, horizon=horizon)
        except ParameterError as error:
            hint = ": set horizon" if error.kind == "missing" else ""
            raise ValueError(f"{learner.name}: {error}{hint}") from None
        self.player_ = player
        self.classes_ = coding.classes
        self._coding = coding
        self._label_type: str | None = type_name(coding.classes)

    def _selected_sigma(self, rows: Examples, encoded: Floats, kernel: str) -> float:
        """The width of the kernel that `sigma="auto"` selects on the first rows."""
        tried = slice(0, MOST_TRIED_ROWS)
        tried_rows = self._ready(_part(rows, tried))
        found = auto_sigma(tried_rows, encoded[tried], kernel)
        if isinstance(found, str):
            raise ValueError(f"sigma='auto' cannot choose: {found}")
        return found

    def _new_seed(self) -> int:
        """The seed that `random_state` gives."""
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        generator = check_random_state(self.random_state)
        return int(generator.randint(2**31 - 1))

    def _given_params(self) -> dict[str, Any]:
        """Parameters of the learner and the kernel, given by themselves or in `params`."""
        others = self.params
        if others is None:
            others = {}
        if not isinstance(others, Mapping):
            raise ValueError(f"params must be a dict of parameters, got {others!r}")
        given: dict[str, Any] = {}
        for name in NAMED:
            value = getattr(self, name)
            if value is not None:
                given[name] = value
        twice = given.keys() & others.keys()
        if twice:
            raise ValueError(f"{min(twice)} is given twice, by itself and in params")
        return {**given, **others}

    def _ready(self, rows: Examples) -> Rows:
        """Rows of X in the engine's numbering: feature j is column j + 1, as in LIBSVM files."""
        encoder = self._encoder
        if isinstance(rows, FeatureColumns):
            return encoder.convert(rows.rows(), encoder.width)
        first = encoder.width - self.n_features_in_
        if isinstance(rows, CsrRows):
            columns = rows.columns + np.int32(first)
            width = rows.width + first
            rows = replace(rows, columns=columns, width=width)
            if encoder.dense:
                rows = rows.dense()
        elif first:
            empty = np.zeros((len(rows), 1))
            rows = np.concatenate((empty, rows), axis=1)
        if encoder.scale == "unit":
            rows = unit_rows(rows)
        if encoder.scaler is not None:
            rows = encoder.scaler(rows)
        return rows

    def _feed(
        self,
        rows: Examples,
        encoded: Floats,
        weights: Floats | None,
        order: Integers | slice = slice(None),
    ) -> Floats:
        """Learn from the rows in this order; return f(x) of each round before its update."""
        scores: list[Floats] = []
        part: Integers | slice = order
        try:
            last = max(len(encoded), 1)
            for start in range(0, last, PIECE):
                piece = slice(start, start + PIECE)
                part = piece
                if not isinstance(order, slice):
                    part = order[piece]
                own = None
                if weights is not None:
                    own = weights[part]
                ready = self._ready(_part(rows, part))
                labels = encoded[part]
                feed = partial(self.player_.feed, ready, labels, own)
                scores.append(_on_one_thread(feed))
        except BaseException as error:
            if not self.player_.is_intact:
                self._forget()
            if isinstance(error, NumericalError):
                numbers = np.arange(len(encoded))
                raise _named(error, numbers[part]) from None
            if isinstance(error, CoreError):
                raise ValueError(str(error)) from None
            raise
        if len(scores) == 1:
            return scores[0]
        return np.concatenate(scores)

    # Predicting ---------------------------------------------------------------------------------

    def decision_function(self, X: MatrixLike) -> Floats:
        """Value of the current f at each row, without learning.

        An array of shape (n_samples,), or (n_samples, n_classes) with more than two classes.
        """
        check_is_fitted(self)
        rows: Examples
        if self._is_plain(X):
            rows = X
        else:
            rows, _ = self._rows(X)
        scores = []
        for start in range(0, max(len(rows), 1), PIECE):
            stop = min(start + PIECE, len(rows))
            part = slice(start, stop)
            scores.append(self._scores(rows, part))
        if len(scores) == 1:
            return scores[0]
        return np.concatenate(scores)

    def _scores(self, rows: Examples, part: slice) -> Floats:
        """f(x) of some rows."""
        try:
            ready = self._ready(_part(rows, part))
            return _on_one_thread(lambda: self.player_.scores(ready))
        except NumericalError as error:
            numbers = np.arange(part.start, part.stop)
            raise _named(error, numbers) from None

    def predict(self, X: MatrixLike) -> Labels:
        """Predicted class of each row: `classes_[1]` if f(x) >= 0; of more than two, the argmax."""
        numbers = chosen(self.decision_function(X))
        labels: Labels = self.classes_[numbers]
        return labels

    def predict_proba(self, X: MatrixLike) -> Floats:
        """Probability of each class, in the order of `classes_`, of shape (n_samples, n_classes).

        The probabilities come from a logistic link, fitted to scores as they were before each
        update: one step after every 256 rounds. Of fewer rounds, it is 1/(1 + exp(-f(x))), or
        softmax of f(x). The link has an offset, so with two classes the more probable class can
        differ from that of `predict` if f(x) is near 0.
        """
        scores = self.decision_function(X)
        return self.player_.calibration.probabilities(scores)

    # Models -------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write a model file that `load`, `ahpatron predict` and `run --resume` read.

        Column j of an array is saved as feature j + 1 of a LIBSVM file. If X was a DataFrame, or if
        the labels are not numbers, the model expects a table with the same columns (or x0, x1, …).
        """
        check_is_fitted(self)
        encoder = self._encoder
        weights = None
        if isinstance(self.class_weight, Mapping):
            weights = _weights_of(self.classes_, self.class_weight)
        model = model_of(
            self.player_,
            encoder.scaler,
            seed=self._seed,
            labels=encoder.labels.labels,
            positive=encoder.labels.positive,
            weights=weights,
            label_type=self._label_type,
            scale=encoder.scale,
            features=self._features(),
            dense=encoder.dense,
            width=encoder.width,
            rounds=self.player_.tally.rounds,
            schema=self._saved_schema(),
        )
        with _as_value_errors():
            write_atomically(Path(path), to_bytes(model))

    def _features(self) -> int:
        """Number of features: the columns of an array, or what a table makes of its columns."""
        if self.schema_ is None:
            return self.n_features_in_
        return len(self.schema_.features)

    def _saved_schema(self) -> Schema | None:
        """Schema of the table with its labels, or of an array whose labels are not numbers."""
        schema = self.schema_
        if schema is not None and schema.labels:
            return schema  # of a loaded model
        if schema is None and are_plain_numbers(self.classes_):
            return None
        if schema is None:
            numbered = range(self.n_features_in_)
            columns = [Column(f"x{j}", "number") for j in numbered]
            schema = Schema(columns, label="", labels={}, missing="refuse")
        names = [column.name for column in schema.columns]
        target = self._target_name
        if not isinstance(target, str) or target in names:
            target = "label"
        texts = label_texts(self.classes_)
        codes = self._encoder.labels.labels
        numbers: dict[str, Any] = dict(zip(texts, codes, strict=True))
        kind = kind_of(self.classes_)
        return msgspec.structs.replace(schema, label=target, labels=numbers, label_kind=kind)

    @classmethod
    def load(cls, path: str | PathLike[str], learner: str | None = None) -> Self:
        """Load a fitted estimator from a model file of `save` or `ahpatron run --save`.

        `partial_fit` continues learning. If the model was trained on a table, X is a DataFrame with
        the columns of that table, in any order; missing cells are treated as in training.

        Parameters
        ----------
        path : path of the .npz file
        learner : `FILE.py:Class`, required if the model's learner is defined in a file of your own
        """
        Path(path).stat()  # raises an OSError if there is no such file
        with _as_value_errors():
            model = load_model(str(path), learner)
            player = model.run("X").player
        header = model.header
        params = dict(header.params)
        if header.kernel:
            params.update(header.kernel_params)
        named: dict[str, Any] = {}
        for name in NAMED:
            if name in params:
                named[name] = params.pop(name)
        name = learner or header.learner
        new = cls(name, kernel=header.kernel, params=params or None, **named)
        new.random_state = header.seed
        new._seed = header.seed
        new.player_ = player
        new._encoder = model.encoder
        new._checks_names = False
        new.n_features_in_ = header.width
        if header.features < header.width:  # indices of the file start at 1
            new.n_features_in_ -= 1
        new._set_classes(header, str(path))
        if header.weights is not None:
            classes = new.classes_.tolist()
            new.class_weight = dict(zip(classes, header.weights, strict=True))
        if header.schema:
            new._set_columns(header.schema)
        return new

    def _set_columns(self, schema: Schema) -> None:
        """Take the columns and the options of a table from the schema of its model."""
        names = [column.name for column in schema.columns]
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        self.table = schema.options_in_python() or None
        self._table_of_model = self.table

    @property
    def schema_(self) -> Schema | None:
        """How the columns of a table become features; None if X was an array."""
        return self._encoder.schema

    def __sklearn_clone__(self) -> Self:
        self._warn_of_lost_options()
        clone: Self = _clone_parametrized(self)
        return clone

    def _warn_of_lost_options(self) -> None:
        """Warn of options of a loaded model that `fit` does not have."""
        encoder: Encoder | None = getattr(self, "_encoder", None)
        if encoder is None:
            return
        lost = []
        if encoder.scale != "none":
            lost.append(f"--scale {encoder.scale}")
        positive = encoder.labels.positive
        schema = encoder.schema
        if schema is not None and schema.positive is not None:
            lost.append(f"--positive {schema.positive}")
        elif positive is not None:
            lost.append(f"--positive {positive:g}")
        if lost:
            options = " and ".join(lost)
            warn_user(f"fit and clone do not keep {options} of the loaded model")

    def _set_classes(self, header: Header, path: str) -> None:
        """Set the classes and their codes from the header of the model at this path."""
        kind: LabelKind = "number"
        positive: float | str | None = header.positive
        if header.schema:
            kind = header.schema.label_kind
            positive = header.schema.positive
        try:
            names = label_names(header.labels, header.schema)
            self.classes_ = labels_from_texts(names, header.label_type, kind)
        except (OverflowError, TypeError, ValueError) as error:
            problem = damaged(f"its labels: {error}", path)
            raise ValueError(str(problem)) from None
        self._label_type = header.label_type
        compared_as = None
        if header.label_type is None:  # as the formats of tables compare
            compared_as = kind
        others = positive is not None
        self._coding = LabelCoding.of(self.classes_, kind=compared_as, others=others)

    # Counts -------------------------------------------------------------------------------------

    def plot_learning_curve_(self, ax: Axes | None = None) -> Axes:
        """Plot the cumulative mistake rate over the rounds of the last `fit` or `partial_fit`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; the current axes if None.

        Returns
        -------
        ax : matplotlib.axes.Axes
        """
        from matplotlib import pyplot

        check_is_fitted(self, "online_scores_")
        if ax is None:
            ax = pyplot.gca()
        last = len(self._labels)
        rounds = np.arange(1, last + 1)
        scores = self.online_scores_
        true: Labels = self._labels
        if scores.ndim == 1:
            true = true > 0
        wrong = chosen(scores) != true
        mistakes = np.cumsum(wrong)
        rates = 100 * mistakes / rounds
        learner = self.player_.learner
        ax.plot(rounds, rates, label=learner.name)
        ax.set(xlabel="round", ylabel="mistakes so far (%)")
        return ax

    @property
    def mistakes_(self) -> int:
        """Number of rounds so far with a wrong prediction (|M_T|)."""
        return self.player_.tally.mistakes

    @property
    def mistake_rate_(self) -> float:
        """Mistakes per round so far."""
        return self.mistakes_ / self.player_.tally.rounds

    @property
    def n_updates_(self) -> int:
        """Number of rounds so far in which f was updated."""
        return self.player_.tally.updates

    @property
    def sigma_(self) -> float | None:
        """Width σ of the kernel, as given or as selected by "auto"; None for kernels without σ."""
        return getattr(self.player_.kernel, "sigma", None)

    @property
    def support_size_(self) -> int | None:
        """Number of support examples |S|; with one learner per class, the largest of these.

        None for learners whose f is not a sum over examples.
        """
        size: int | None = self.player_.size
        return size

    @property
    def relevances_(self) -> Floats:
        """Relevance of each column of X for the metric of metron: shares, which sum to 1.

        They are shares of what is above the part that all features get alike, which would favour
        columns with many categories; 0 for all if nothing is. Categories of a column are summed.
        Learners without a metric have no such attribute.
        """
        if self.player_.learner.name != "metron":
            learner = self.player_.learner.name
            raise AttributeError(f"relevances_: {learner} does not learn how relevant columns are")
        relevances = column_relevances(self.player_, self.schema_)
        found = {one.column: one.above_uniform for one in relevances}
        if self.schema_ is None:
            first = self._encoder.width - self.n_features_in_
            numbers = range(first, first + self.n_features_in_)
            names = list(map(str, numbers))
        else:
            names = [bare_name(name) for name in self.feature_names_in_]
        in_order = [found.get(name, 0.0) for name in names]
        return np.array(in_order)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "player_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _are_made_dense(rows: Examples) -> bool:
    """Whether rows are learned as dense ones, by the same rule as in `ahpatron run`."""
    first = slice(0, min(BLOCK, len(rows)))
    if isinstance(rows, FeatureColumns):
        head = compressed(rows.take(first).rows())
        last = int(head.columns.max(initial=-1))
        return is_dense(len(head), width=last + 1, stored=len(head.values))
    if not isinstance(rows, CsrRows):
        return True
    head = rows.slice(0, first.stop)
    last = int(head.columns.max(initial=-1))
    return is_dense(len(head), width=last + 2, stored=len(head.values))


def _on_one_thread(compute: Callable[[], Result]) -> Result:
    """Return `compute()`, run with one BLAS thread as on the command line."""
    # not by `BLAS.limit`, which takes as long as learning from a row
    several: list[tuple[Any, int]] = []
    for library in BLAS.lib_controllers:
        count = library.get_num_threads()
        if count != 1:
            several.append((library, count))
            library.set_num_threads(1)
    try:
        return compute()
    finally:
        for library, count in several:
            library.set_num_threads(count)


def _named(error: NumericalError, numbers: Integers) -> ValueError:
    """ValueError that names the row of X; `numbers` are the rows of X that the engine was given."""
    row = numbers[error.row]
    return ValueError(f"row {row} of X cannot be computed: {error}")


@contextmanager
def _as_value_errors() -> Iterator[None]:
    """Raise errors for users as ValueErrors that name row and column of X, if these are known."""
    try:
        yield
    except UserError as error:
        message = str(error)
        place = error.place
        if place is not None and place.line is not None and place.field is not None:
            message = f"row {place.line} of X: {message}"
        hint = hint_in_python(error)
        if hint is not None:
            message += f": {hint}"
        raise ValueError(message) from None


@contextmanager
def _naming_tables(*, first: bool, is_frame: bool) -> Iterator[None]:
    """Say what takes text, if rows that count as an array have a cell that is not a number.

    A DataFrame counts as an array if its columns have numbers for names.
    """
    try:
        yield
    except ValueError as error:
        if "could not convert string to float" not in str(error):
            raise
        hint = "X must have numbers only, as in fit"
        if first and is_frame:
            hint = (
                "columns with text must have names that are text: X.columns = X.columns.astype(str)"
            )
        elif first:
            hint = (
                "arrays must have numbers only; give text in a DataFrame or a list of dicts, or "
                "convert it"
            )
        raise ValueError(f"{error}: {hint}") from None


def _part(rows: Examples, part: slice | Integers) -> Examples:
    """The rows selected by a slice or an array of row numbers."""
    if isinstance(rows, FeatureColumns):
        return rows.take(part)
    if isinstance(rows, CsrRows):
        numbers = np.arange(len(rows))
        return rows.take(numbers[part])
    return rows[part]


def _weights_of(classes: Labels, by_label: Mapping[Any, float]) -> tuple[float, ...]:
    """Weight of each class, 1 by default; a ValueError if a label may be misspelt.

    The rule of scikit-learn, whose `compute_class_weight` takes "3" for the number 3.
    """
    labels = classes.tolist()
    unweighted = [label for label in labels if label not in by_label]
    unknown = by_label.keys() - set(labels)
    if unweighted and unknown:
        raise ValueError(f"The classes, {unweighted}, are not in class_weight")
    weights = [float(by_label.get(label, 1.0)) for label in labels]
    for weight in weights:
        if not 0.0 < weight < math.inf:
            raise ValueError(f"class_weight must have finite weights > 0, got {by_label!r}")
    return tuple(weights)
