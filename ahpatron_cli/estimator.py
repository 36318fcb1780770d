"""The learners as a scikit-learn classifier: the same core, the same seeds, the same mistakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from threadpoolctl import ThreadpoolController

from ahpatron_cli.atomic import write_atomically
from ahpatron_cli.core import BLOCK, KERNELS, REGISTRY, Kernel, Learner, Player, find_learner
from ahpatron_cli.core.errors import CoreError, NumericalError, ParameterError
from ahpatron_cli.core.learners import is_path
from ahpatron_cli.core.parameters import Value
from ahpatron_cli.core.rows import CsrRows, Floats, Integers, Rows, rows_from, unit_rows
from ahpatron_cli.core.tally import MAX_CLASSES
from ahpatron_cli.data.csv_text import Cells, number
from ahpatron_cli.data.dataset import DENSE_SHARE, DENSE_WIDTH, Preparation, StreamState
from ahpatron_cli.data.geometry import MOST_TRIED_ROWS, auto_sigma
from ahpatron_cli.data.labels import show
from ahpatron_cli.data.schema import Column, Schema
from ahpatron_cli.errors import UserError
from ahpatron_cli.models import load_model, model_of, to_bytes
from ahpatron_cli.output.predictions import chosen, label_names
from ahpatron_cli.runner import LearnerSpec, generator_seed

BLAS = ThreadpoolController().select(user_api="blas")
"""Found once: to look for it in every call would take longer than a round."""
PIECE = 64 * BLOCK
"""Rows that are prepared at once; X may be larger than memory."""
MOST_COLUMNS = 2**31 - 2
NAMED = ("budget", "epsilon", "sigma", "horizon")
NO_LABELS = "no_validation"
"""What scikit-learn's validation takes for y if there is none."""


class OnlineKernelClassifier(ClassifierMixin, BaseEstimator):
    """A budgeted online kernel learner for two classes, or for up to 1,000.

    `fit` runs on the rows once, in the order given: predict, see the label, update. What
    `ahpatron run` counts on the same rows with the same parameters and seed is `mistakes_`. More
    than two classes are learned as there: by one learner per class against the rest, each with its
    own budget, or on one active set (`multiclass`); the class with the largest f(x) is predicted.

    Parameters
    ----------
    learner : str
        Name as in `ahpatron learners`, or of a registered class of your own, or `FILE.py:Class`.
    kernel : str
        Name as in `ahpatron learners`.
    budget, epsilon, sigma, horizon : number or None
        Parameters of the learner or the kernel; None is its default. One that neither has is an
        error. `horizon` is the number of rounds, for learners whose defaults depend on it: `fit`
        sets it, `partial_fit` cannot. `sigma="auto"` is the best of five widths on the first
        1,000 rows that are fitted, of the first piece with `partial_fit`; see `sigma_`. Kernel and
        σ have no effect on a learner with a kernel of its own (metron).
    params : dict or None
        Other parameters of the learner and the kernel, by name.
    n_passes : int
        Number of passes of `fit` over the rows. The counts are those of all passes.
    shuffle : bool
        Whether each pass of `fit` has a random permutation of its own.
    class_weight : dict, "balanced" or None
        Weight of the examples of each class, 1 by default; "balanced" is n/(k·n_c) for n_c of n
        rows in class c of k, in `fit` only. As `--cost` on the command line.
    random_state : int, RandomState or None
        Seed of these permutations and of the learner's random generator; an int is `--seed`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels; of two, the second one is +1.
    player_ : Player
        The pass of the core: learner, hypothesis `f` and `tally`.
    online_scores_ : array of shape (n_rounds,), or (n_rounds, n_classes) if there are more than two
        f(x) of each round of the last `fit` or `partial_fit`, as it was predicted.
    mistakes_, n_updates_ : int
        Mistakes and updates of all rounds so far.
    mistake_rate_ : float
    support_size_ : int or None
        |S|, the number of examples that f keeps.
    sigma_ : float or None
        σ of the kernel, as given or as chosen.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)

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
        learner: str = "ahpatron",
        *,
        kernel: str = "gaussian",
        budget: int | None = None,
        epsilon: float | None = None,
        sigma: float | str | None = None,
        horizon: int | None = None,
        params: Mapping[str, Value] | None = None,
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
        self.n_passes = n_passes
        self.shuffle = shuffle
        self.class_weight = class_weight
        self.random_state = random_state

    # Learning -----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Start from scratch, and run on these rows.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            Weights > 0, for learners that take costs.

        Returns
        -------
        self
        """
        self._forget()
        rows, labels, weights = self._examples(X, y, sample_weight, first=True)
        if not isinstance(self.n_passes, int | np.integer) or self.n_passes < 1:
            raise ValueError(f"n_passes must be a whole number >= 1, got {self.n_passes!r}")
        known = _classes(labels)
        weights = self._by_class(weights, labels, known)
        encoded = _looked_up(labels, _codes(known))
        self._begin(known, rows, encoded, y, horizon=len(labels) * self.n_passes)
        scores: list[Floats] = []
        seen: list[Floats] = []
        for i in range(self.n_passes):
            order: Any = slice(None)
            if self.shuffle:  # as `run --shuffle` does in each repeat
                order = np.random.default_rng([self._seed, i]).permutation(len(labels))
            scores.append(self._feed(rows, encoded, weights, order))
            seen.append(encoded[order])
        self.online_scores_, self._labels = np.concatenate(scores), np.concatenate(seen)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        check_input: bool = True,
    ) -> Self:
        """Learn from these rows, in this order, after all rows before.

        Pieces give the predictions of one long `fit` up to rounding, and identical ones where their
        lengths are multiples of 64; learners whose defaults depend on the number of rounds have
        other defaults unless `horizon` is set. If rows are refused before learning begins, the
        estimator is not changed; if learning fails, it is not fitted any more.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array of shape (n_classes,), optional
            All labels; required in the first call.
        sample_weight : array of shape (n_samples,), optional
            Weights > 0, for learners that take costs.
        check_input : bool, default=True
            With False, X must be an array of float64 with `n_features_in_` finite columns, and is
            not checked, except in the first call.

        Returns
        -------
        self
        """
        first = not self.__sklearn_is_fitted__()
        found: Any = X, np.asarray(y), sample_weight
        if first or check_input:
            found = self._examples(X, y, sample_weight, first)
        rows, labels, weights = found
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if first and isinstance(self.class_weight, str):
            raise ValueError(f"class_weight={self.class_weight!r} is for `fit` only")
        known = _classes(classes) if first else self.classes_
        codes = _codes(known) if first else self._codes
        if not first and classes is not None and {*np.asarray(classes).tolist()} != {*codes}:
            raise ValueError(f"classes={classes!r} are not those of before, {known!r}")
        encoded = _looked_up(labels, codes)
        weights = self._by_class(weights, labels, known)
        if first:
            self._begin(known, rows, encoded, y, horizon=None)
        self.online_scores_, self._labels = self._feed(rows, encoded, weights), encoded
        return self

    def _by_class(self, weights: Any, labels: NDArray[Any], classes: NDArray[Any]) -> Any:
        """Weights of the rows multiplied by those of their classes; None if all are 1."""
        if self.class_weight is None:
            return weights
        own = compute_class_weight(self.class_weight, classes=classes, y=labels)
        by_row = _looked_up(labels, dict(zip(classes.tolist(), own, strict=True)))
        return by_row if weights is None else by_row * weights

    def _forget(self) -> None:
        """Be an estimator that is not fitted."""
        for name in [name for name in vars(self) if name[-1] == "_"]:
            delattr(self, name)

    def _examples(
        self, X: Any, y: Any, weights: ArrayLike | None, first: bool
    ) -> tuple[Rows, NDArray[Any], Floats | None]:
        """Rows, labels and weights; rows of weight 0 are left out."""
        if not first and weights is None and self._is_plain(X):
            labels = np.asarray(y)
            if labels.shape == (len(X),):
                return X, labels, None
        rows, labels = self._rows(X, y, first)
        kind = type_of_target(labels, input_name="y", raise_unknown=True)
        if kind not in ("binary", "multiclass"):
            raise ValueError(f"Unknown label type: {kind}. Labels must be those of classes.")
        if weights is None:
            return rows, labels, None
        checked = _check_sample_weight(weights, labels, dtype=np.float64, ensure_non_negative=True)
        kept = np.flatnonzero(checked)
        return _part(rows, kept), labels[kept], np.asarray(checked[kept])

    def _is_plain(self, X: Any) -> bool:
        """Whether scikit-learn's validation, which takes longer than a round, would change nothing.

        It is for later calls only: the first one sets `n_features_in_`.
        """
        if type(X) is not np.ndarray or hasattr(self, "feature_names_in_"):
            return False
        fits = X.dtype == np.float64 and X.shape[1:] == (self.n_features_in_,) and len(X) > 0
        return fits and bool(np.isfinite(X).all())

    def _rows(self, X: Any, y: Any = NO_LABELS, first: bool = False) -> tuple[Rows, Any]:
        """Rows and labels as scikit-learn validates them, or by the schema of a loaded model."""
        table = None if first else self._table(X)
        if table is not None:
            if isinstance(y, str):
                return table, y
            check_consistent_length(X, y)
            return table, column_or_1d(y)
        options = {"reset": first, "accept_sparse": "csr", "dtype": np.float64}
        found = validate_data(self, X, y, **options)
        rows, labels = (found, y) if isinstance(y, str) else found
        if not isinstance(rows, np.ndarray) and rows.shape[1] > MOST_COLUMNS:
            raise ValueError(
                f"sparse X may have {MOST_COLUMNS} columns at most, got {rows.shape[1]}"
            )
        return rows_from(rows), labels

    def _table(self, X: Any) -> Rows | None:
        """The rows of a DataFrame with the columns of the table that a model was trained on."""
        schema: Schema | None = self._known.schema
        if schema is None or not hasattr(X, "columns"):
            return None
        names = [column.name for column in schema.columns]
        if schema.features == names or not {*names} <= {*X.columns}:
            return None  # it has features, which scikit-learn checks
        cells = Cells(np.arange(len(X)), {name: _cells(X[name]) for name in names})
        with _as_value_errors():
            rows = msgspec.structs.replace(schema, id=None).encode(cells, "X", Counter()).stored
        return replace(rows, columns=rows.columns - 1, width=rows.width - 1)

    def _begin(
        self, classes: NDArray[Any], rows: Rows, encoded: Floats, y: Any, horizon: int | None
    ) -> None:
        """Make a new player."""
        self._preparation = Preparation()
        self._target_name = getattr(y, "name", None)
        dense = True
        if isinstance(rows, CsrRows):  # becomes dense by the rule of `ahpatron run`
            head = rows.slice(0, min(BLOCK, len(rows)))
            width = int(head.columns.max(initial=-1)) + 2
            dense = width <= DENSE_WIDTH and len(head.values) >= DENSE_SHARE * len(head) * width
        codes = _codes(classes)
        labels = map(float, codes if classes.dtype.kind in "iuf" else codes.values())
        self._known = StreamState(tuple(labels), None, dense, self.n_features_in_ + 1)
        others = {} if self.params is None else self.params
        if not isinstance(others, Mapping):
            raise ValueError(f"params must be a dict of parameters, got {others!r}")
        given = {name: getattr(self, name) for name in NAMED if getattr(self, name) is not None}
        if twice := given.keys() & others.keys():
            raise ValueError(f"{min(twice)} is given twice, by itself and in params")
        given.update(others)
        if given.get("sigma") == "auto" and self.kernel in KERNELS:
            tried = slice(0, MOST_TRIED_ROWS)
            found = auto_sigma(self._ready(_part(rows, tried)), encoded[tried], self.kernel)
            if isinstance(found, str):
                raise ValueError(f"sigma='auto' cannot choose: {found}")
            given["sigma"] = found
        learner, kernel = configured(self.learner, self.kernel, given)
        if isinstance(self.random_state, int | np.integer):
            self._seed = int(self.random_state)
        else:
            self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        seed = generator_seed(self._seed, 0, learner.name)
        try:
            player = Player(learner, kernel, classes=len(codes), seed=seed, horizon=horizon)
        except ParameterError as error:
            hint = ": set horizon" if error.kind == "missing" else ""
            raise ValueError(f"{learner.name}: {error}{hint}") from None
        self.player_, self._codes, self.classes_ = player, codes, classes

    def _ready(self, rows: Rows) -> Rows:
        """Rows of X as the core takes them: as in LIBSVM files, column 0 is empty."""
        known = self._known
        first = known.width - self.n_features_in_
        if isinstance(rows, CsrRows):
            columns = rows.columns + np.int32(first)
            rows = replace(rows, columns=columns, width=rows.width + first)
            rows = rows.dense() if known.dense else rows
        elif first:
            rows = np.concatenate((np.zeros((len(rows), 1)), rows), axis=1)
        rows = unit_rows(rows) if self._preparation.scale == "unit" else rows
        return rows if known.scaler is None else known.scaler(rows)

    def _feed(
        self, rows: Rows, encoded: Floats, weights: Any, order: Integers | slice = slice(None)
    ) -> Floats:
        """Learn from these rows, in this order; f(x) of each round."""
        scores = []
        try:
            for start in range(0, len(encoded), PIECE):
                part: Any = slice(start, start + PIECE)
                part = part if isinstance(order, slice) else order[part]
                own = None if weights is None else weights[part]
                piece = self._ready(_part(rows, part))
                scores.append(_on_one_thread(self.player_.feed, piece, encoded[part], own))
        except BaseException as error:  # f may have learned from rows of a block that do not count
            self._forget()
            if isinstance(error, NumericalError):
                raise _named(error, np.arange(len(encoded))[part]) from None
            if isinstance(error, CoreError):
                raise ValueError(str(error)) from None
            raise
        return scores[0] if len(scores) == 1 else np.concatenate(scores)

    # Predicting ---------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """f, as it is now, at each row; nothing is learned.

        More than two classes have a column each, in the order of `classes_`.
        """
        check_is_fitted(self)
        rows = X if self._is_plain(X) else self._rows(X)[0]
        try:
            scores: Floats = _on_one_thread(self.player_.scores, self._ready(rows))
        except NumericalError as error:
            raise _named(error, np.arange(len(rows))) from None
        return scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row: of two, the second if f(x) >= 0; else that of the largest f(x)."""
        numbers = chosen(self.decision_function(X))
        labels: NDArray[Any] = self.classes_[numbers]
        return labels

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class, in the order of `classes_`, of shape (n_samples, n_classes).

        By a logistic link that is fitted to the scores of the rounds so far, each predicted before
        its label was seen. It has an offset, so that of two classes the more probable one need not
        be the one that `predict` returns where f(x) is near 0.
        """
        scores = self.decision_function(X)
        return self.player_.calibration.probabilities(scores)

    # Models -------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write a model file that `load`, `ahpatron predict` and `run --resume` read.

        Column j of X is feature j + 1 of a LIBSVM file. If X was a DataFrame, its columns are those
        of a table; labels that are not numbers make X a table with columns x0, x1, ….
        """
        check_is_fitted(self)
        known, costs = self._known, None
        if isinstance(self.class_weight, Mapping):
            own = self.class_weight
            costs = tuple(float(own.get(label, 1.0)) for label in self.classes_.tolist())
        model = model_of(
            self.player_,
            known.scaler,
            seed=self._seed,
            labels=known.labels,
            positive=self._preparation.positive,
            costs=costs,
            scale=self._preparation.scale,
            features=self.n_features_in_,
            dense=known.dense,
            width=known.width,
            rounds=self.player_.tally.rounds,
            schema=known.schema or self._schema(),
        )
        with _as_value_errors():
            write_atomically(Path(path), to_bytes(model))

    def _schema(self) -> Schema | None:
        """X as a table, if its columns or labels have names."""
        names, classes = getattr(self, "feature_names_in_", None), self.classes_.tolist()
        numeric = self.classes_.dtype.kind in "iuf"
        if names is None and numeric:
            return None
        names = [f"x{j}" for j in range(self.n_features_in_)] if names is None else names
        target = self._target_name
        target = target if isinstance(target, str) and target not in names else "label"
        shown = map(show if numeric else str, classes)
        numbers: dict[str, Any] = dict(zip(shown, self._known.labels, strict=True))
        columns = [Column(str(name), "number") for name in names]
        return Schema(columns, target, numbers, missing="refuse")

    @classmethod
    def load(cls, path: str | PathLike[str], learner: str | None = None) -> Self:
        """A fitted estimator from a model that `save` or `ahpatron run --save` wrote.

        `partial_fit` continues its stream. The model of a table takes a DataFrame with the columns
        of the table.

        Parameters
        ----------
        path : path of the .npz file
        learner : `FILE.py:Class` of the model's learner, if it is in a file.
        """
        Path(path).stat()  # an OSError is what Python programs expect
        with _as_value_errors():
            model = load_model(str(path), learner)
            player = model.run("X").player
        of = model.header
        params = of.params | (of.kernel_params if of.kernel else {})
        named: dict[str, Any] = {name: params.pop(name) for name in NAMED if name in params}
        kernel, others = of.kernel or "gaussian", params or None
        new = cls(learner or of.learner, kernel=kernel, params=others, **named)
        new.random_state = new._seed = of.seed
        new.player_ = player
        new._preparation, new._known = model.prepared(Preparation())
        new.n_features_in_ = of.width - (of.features < of.width)  # files may count from 0
        new.classes_ = _label_array(label_names(of.labels, of.schema))
        new._codes = _codes(new.classes_)
        if of.costs is not None:
            new.class_weight = dict(zip(new.classes_.tolist(), of.costs, strict=True))
        if of.schema:
            new.feature_names_in_ = np.array(of.schema.features, dtype=object)
        return new

    # What was counted ---------------------------------------------------------------------------

    def plot_learning_curve_(self, ax: Any = None) -> Any:
        """Draw the mistake rate so far in each round of the last `fit` or `partial_fit`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; the current axes if None.

        Returns
        -------
        ax : matplotlib.axes.Axes
        """
        from matplotlib import pyplot

        check_is_fitted(self, "online_scores_")
        ax = pyplot.gca() if ax is None else ax
        rounds, scores = np.arange(1, len(self._labels) + 1), self.online_scores_
        true = self._labels > 0 if scores.ndim == 1 else self._labels
        mistakes = np.cumsum(chosen(scores) != true)
        ax.plot(rounds, 100 * mistakes / rounds, label=self.player_.learner.name)
        ax.set(xlabel="round", ylabel="mistakes so far (%)")
        return ax

    @property
    def mistakes_(self) -> int:
        """|M_T|: rounds so far whose label was not the one predicted."""
        return self.player_.tally.mistakes

    @property
    def mistake_rate_(self) -> float:
        """Mistakes per round so far."""
        return self.mistakes_ / self.player_.tally.rounds

    @property
    def n_updates_(self) -> int:
        """Rounds so far that changed f."""
        return self.player_.tally.updates

    @property
    def sigma_(self) -> float | None:
        """σ of the kernel, as given or as chosen; None for kernels without one."""
        return getattr(self.player_.kernel, "sigma", None)

    @property
    def support_size_(self) -> int | None:
        """|S|: the examples that f keeps, for several classes the largest number of one of them.

        None where f is not made of examples.
        """
        size: int | None = self.player_.size
        return size

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "player_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def configured(
    learner: str, kernel: str, given: Mapping[str, Value | None]
) -> tuple[Learner, Kernel]:
    """A learner and a kernel with these parameters; None is a default."""
    if not isinstance(learner, str) or not (learner in REGISTRY or is_path(learner)):
        raise ValueError(f"unknown learner {learner!r}: one of {', '.join(REGISTRY)}")
    if kernel not in KERNELS:
        raise ValueError(f"unknown kernel {kernel!r}: one of {', '.join(KERNELS)}")
    kind = find_learner(learner)
    of_learner, of_kernel = kind.specs(), KERNELS[kernel].specs()
    if unknown := given.keys() - of_learner.keys() - of_kernel.keys():
        raise ValueError(
            f"{kind.name} with the {kernel} kernel has no parameter {min(unknown)!r}: "
            f"one of {', '.join([*of_learner, *of_kernel])}"
        )
    known = {name: value for name, value in given.items() if value is not None}
    own, its = ({n: v for n, v in known.items() if n in specs} for specs in (of_learner, of_kernel))
    source = learner if is_path(learner) else None
    spec = LearnerSpec(kind.name, own, None if kind.own_kernel else kernel, its, source)
    try:
        return spec.build()
    except ParameterError as error:
        raise ValueError(f"{kind.name}: {error}") from None


def _on_one_thread(compute: Callable[..., Any], *arguments: Any) -> Any:
    """What `compute` returns, on one BLAS thread, as on the command line."""
    # `BLAS.limit` would take as long as learning from a row
    threads = [(library, library.get_num_threads()) for library in BLAS.lib_controllers]
    several = [(library, count) for library, count in threads if count != 1]
    for library, _ in several:
        library.set_num_threads(1)
    try:
        return compute(*arguments)
    finally:
        for library, count in several:
            library.set_num_threads(count)


def _named(error: NumericalError, numbers: Integers) -> ValueError:
    """The error for a row of X, of which the core saw those with these numbers."""
    return ValueError(f"row {numbers[error.row]} of X cannot be computed: {error}")


@contextmanager
def _as_value_errors() -> Iterator[None]:
    try:
        yield
    except UserError as error:
        raise ValueError(str(error)) from None


def _part(rows: Rows, part: slice | Integers) -> Rows:
    """A slice of the rows, or those with these numbers."""
    return rows.take(np.arange(len(rows))[part]) if isinstance(rows, CsrRows) else rows[part]


def _classes(labels: Any) -> NDArray[Any]:
    distinct = np.unique(labels)
    if len(distinct) < 2:
        raise ValueError(f"y has one class only, {distinct.tolist()[0]!r}: nothing to learn")
    if len(distinct) > MAX_CLASSES:
        raise ValueError(f"at most {MAX_CLASSES:,} classes are possible, got {len(distinct):,}")
    return distinct


def _codes(classes: NDArray[Any]) -> dict[Any, float]:
    """-1 and +1, or the numbers of the classes."""
    numbers = (-1.0, 1.0) if len(classes) == 2 else range(len(classes))
    return dict(zip(classes.tolist(), numbers, strict=True))


def _looked_up(labels: NDArray[Any], table: Mapping[Any, float]) -> Floats:
    """The number of each label."""
    try:
        return np.fromiter(map(table.__getitem__, labels.tolist()), np.float64, len(labels))
    except KeyError as error:
        problem = f"y has labels that are not among the classes {[*table]!r}"
        raise ValueError(f"{problem}: {error.args[0]!r}") from None


def _label_array(names: list[str]) -> NDArray[Any]:
    """Labels by their names in a model: numbers and booleans as such, other labels as text."""
    values = [number(name) for name in names]
    if None not in values:
        floats = np.array(values, dtype=np.float64)
        return floats.astype(np.int64) if (floats % 1 == 0).all() else floats
    return np.array([name == "True" for name in names] if {*names} == {"True", "False"} else names)


def _cells(column: Any) -> Floats | list[str]:
    """The cells of a DataFrame's column as a reader of tables has them."""
    values = np.asarray(column)
    if values.dtype.kind in "fiu":
        return values.astype(np.float64)
    if values.dtype.kind == "M":
        values = values.astype("datetime64[s]").astype(str)
    return [
        "" if cell is None or cell in ("NaT", np.nan) else str(cell) for cell in values.tolist()
    ]
