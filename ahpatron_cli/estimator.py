"""scikit-learn interface to the learners: same engine, seeds and mistake counts as the CLI."""

from __future__ import annotations

import warnings
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
from ahpatron_cli.data.cells import LabelKind
from ahpatron_cli.data.dataset import DENSE_SHARE, DENSE_WIDTH, Preparation, StreamState
from ahpatron_cli.data.frames import column_names, frame_cells
from ahpatron_cli.data.geometry import MOST_TRIED_ROWS, auto_sigma
from ahpatron_cli.data.labels import show
from ahpatron_cli.data.schema import Column, Schema, Unseen
from ahpatron_cli.errors import UserError
from ahpatron_cli.models import load_model, model_of, to_bytes
from ahpatron_cli.output.predictions import OTHER, chosen, label_names
from ahpatron_cli.runner import LearnerSpec, generator_seed

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
    learner : str
        Name as in `ahpatron learners`, or of a registered class of your own, or `FILE.py:Class`.
    kernel : str
        Name as in `ahpatron learners`.
    budget, epsilon, sigma, horizon : number or None
        Parameters of the learner or the kernel; None selects the default. A parameter that
        neither has is an error. `horizon` is the number of rounds, for learners whose defaults
        depend on it; `fit` sets it to the number of rows. `sigma="auto"` selects the best of five
        widths on the first 1,000 rows (with `partial_fit`, of the first call); see `sigma_`.
        `kernel` and `sigma` have no effect on learners with a kernel of their own (metron).
    params : dict or None
        Other parameters of the learner and the kernel, by name.
    n_passes : int
        Number of passes of `fit` over the rows. Counts are summed over the passes.
    shuffle : bool
        Whether each pass of `fit` visits the rows in a new random order.
    class_weight : dict, "balanced" or None
        Weight of the examples of each class, 1 by default; "balanced" is n/(k·n_c) for n_c of n
        rows in class c of k, and is for `fit` only. Same as `--cost` on the command line.
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
        """Reset the estimator, then learn from these rows in the given order.

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
        """Continue learning with these rows, in the given order.

        Several calls give the predictions of one `fit` on all rows up to rounding, and identical
        ones if the number of rows per call is a multiple of 64. Learners whose defaults depend on
        the number of rounds require `horizon` for this. Invalid rows leave the estimator unchanged;
        if an update fails, the estimator becomes unfitted.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
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
        """Sample weights times class weights, one per row; None if all are 1."""
        if self.class_weight is None:
            return weights
        own = compute_class_weight(self.class_weight, classes=classes, y=labels)
        by_row = _looked_up(labels, dict(zip(classes.tolist(), own, strict=True)))
        return by_row if weights is None else by_row * weights

    def _forget(self) -> None:
        """Remove all fitted attributes, so that the estimator is unfitted."""
        for name in [name for name in vars(self) if name[-1] == "_"]:
            delattr(self, name)

    def _examples(
        self, X: Any, y: Any, weights: ArrayLike | None, first: bool
    ) -> tuple[Rows, NDArray[Any], Floats | None]:
        """Validated rows, labels and weights, without the rows of weight 0."""
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
        """Whether X is valid already, so that scikit-learn's slow validation can be skipped.

        Only used after the first call, which validates X and sets `n_features_in_`.
        """
        if type(X) is not np.ndarray or hasattr(self, "feature_names_in_"):
            return False
        fits = X.dtype == np.float64 and X.shape[1:] == (self.n_features_in_,) and len(X) > 0
        return fits and bool(np.isfinite(X).all())

    def _rows(self, X: Any, y: Any = NO_LABELS, first: bool = False) -> tuple[Rows, Any]:
        """Rows and labels, validated by scikit-learn or converted by the schema of the model."""
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
        """Numeric rows of a DataFrame with the columns of the model's table; None for other X."""
        schema: Schema | None = self._known.schema
        if schema is None or not hasattr(X, "columns"):
            return None
        schema = msgspec.structs.replace(schema, id=None)
        names = [column.name for column in schema.columns]
        given = column_names(X)
        if not {*names} <= {*given} and {*schema.features} <= {*given}:
            return None  # X has numeric features already: scikit-learn checks them
        unseen = Unseen()
        with _as_value_errors():
            schema.check_columns(given, "X")
            cells = frame_cells(X, names, schema.text_columns(), "X")
            rows = schema.encode(cells, "X", unseen).stored
        for note in unseen.notes:
            warnings.warn(note, UserWarning, stacklevel=4)
        return replace(rows, columns=rows.columns - 1, width=rows.width - 1)

    def _begin(
        self, classes: NDArray[Any], rows: Rows, encoded: Floats, y: Any, horizon: int | None
    ) -> None:
        """Create the `Player` (learner, kernel, classes, seed) before the first row is learned."""
        self._preparation = Preparation()
        self._target_name = getattr(y, "name", None)
        dense = True
        if isinstance(rows, CsrRows):  # made dense by the same rule as in `ahpatron run`
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
        """Rows of X in the engine's numbering: feature j is column j + 1, as in LIBSVM files."""
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
        """Learn from the rows in this order; return f(x) of each round before its update."""
        scores = []
        try:
            for start in range(0, len(encoded), PIECE):
                part: Any = slice(start, start + PIECE)
                part = part if isinstance(order, slice) else order[part]
                own = None if weights is None else weights[part]
                piece = self._ready(_part(rows, part))
                scores.append(_on_one_thread(self.player_.feed, piece, encoded[part], own))
        except BaseException as error:  # f may contain updates of a block that was not counted
            self._forget()
            if isinstance(error, NumericalError):
                raise _named(error, np.arange(len(encoded))[part]) from None
            if isinstance(error, CoreError):
                raise ValueError(str(error)) from None
            raise
        return scores[0] if len(scores) == 1 else np.concatenate(scores)

    # Predicting ---------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """Value of the current f at each row, without learning.

        An array of shape (n_samples,), or (n_samples, n_classes) with more than two classes.
        """
        check_is_fitted(self)
        rows = X if self._is_plain(X) else self._rows(X)[0]
        try:
            scores: Floats = _on_one_thread(self.player_.scores, self._ready(rows))
        except NumericalError as error:
            raise _named(error, np.arange(len(rows))) from None
        return scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicted class of each row: `classes_[1]` if f(x) >= 0; of more than two, the argmax."""
        numbers = chosen(self.decision_function(X))
        labels: NDArray[Any] = self.classes_[numbers]
        return labels

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class, in the order of `classes_`, of shape (n_samples, n_classes).

        The probabilities come from a logistic link, fitted to the scores of all rounds so far as
        they were before each update. The link has an offset, so with two classes the more probable
        class can differ from that of `predict` if f(x) is near 0.
        """
        scores = self.decision_function(X)
        return self.player_.calibration.probabilities(scores)

    # Models -------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write a model file that `load`, `ahpatron predict` and `run --resume` read.

        Column j of X is saved as feature j + 1 of a LIBSVM file. If X was a DataFrame, or if the
        labels are not numbers, the model expects a table with the same columns (or x0, x1, …).
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
        """Table schema of X, if its columns have names or its labels are not numbers; else None."""
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
        return Schema(
            columns=columns,
            label=target,
            labels=numbers,
            missing="refuse",
            label_kind=_kind_of(self.classes_),
        )

    @classmethod
    def load(cls, path: str | PathLike[str], learner: str | None = None) -> Self:
        """Load a fitted estimator from a model file of `save` or `ahpatron run --save`.

        `partial_fit` continues learning. If the model was trained on a table, X must be a
        DataFrame with the columns of that table.

        Parameters
        ----------
        path : path of the .npz file
        learner : `FILE.py:Class`, required if the model's learner is defined in a file of your own
        """
        Path(path).stat()  # raises an OSError if there is no such file
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
        new.n_features_in_ = of.width - (of.features < of.width)  # indices of files may start at 0
        kind = of.schema.label_kind if of.schema else "number"
        new.classes_ = _label_array(label_names(of.labels, of.schema), kind)
        new._codes = _codes(new.classes_)
        if of.costs is not None:
            new.class_weight = dict(zip(new.classes_.tolist(), of.costs, strict=True))
        if of.schema:
            new.feature_names_in_ = np.array(of.schema.features, dtype=object)
        return new

    # Counts -------------------------------------------------------------------------------------

    def plot_learning_curve_(self, ax: Any = None) -> Any:
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
        ax = pyplot.gca() if ax is None else ax
        rounds, scores = np.arange(1, len(self._labels) + 1), self.online_scores_
        true = self._labels > 0 if scores.ndim == 1 else self._labels
        mistakes = np.cumsum(chosen(scores) != true)
        ax.plot(rounds, 100 * mistakes / rounds, label=self.player_.learner.name)
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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "player_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def configured(
    learner: str, kernel: str, given: Mapping[str, Value | None]
) -> tuple[Learner, Kernel]:
    """Create a learner and a kernel with the given parameters; None selects the default."""
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
    """Return `compute(*arguments)`, run with one BLAS thread as on the command line."""
    # not by `BLAS.limit`, which takes as long as learning from a row
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
    """ValueError that names the row of X; `numbers` are the rows of X that the engine was given."""
    return ValueError(f"row {numbers[error.row]} of X cannot be computed: {error}")


@contextmanager
def _as_value_errors() -> Iterator[None]:
    try:
        yield
    except UserError as error:
        raise ValueError(str(error)) from None


def _part(rows: Rows, part: slice | Integers) -> Rows:
    """The rows selected by a slice or an array of row numbers."""
    return rows.take(np.arange(len(rows))[part]) if isinstance(rows, CsrRows) else rows[part]


def _classes(labels: Any) -> NDArray[Any]:
    distinct = np.unique(labels)
    if len(distinct) < 2:
        raise ValueError(f"y has one class only, {distinct.tolist()[0]!r}: nothing to learn")
    if len(distinct) > MAX_CLASSES:
        raise ValueError(f"at most {MAX_CLASSES:,} classes are possible, got {len(distinct):,}")
    return distinct


def _codes(classes: NDArray[Any]) -> dict[Any, float]:
    """Code of each class for the engine: -1 and +1, or 0, 1, … if there are more than two."""
    numbers = (-1.0, 1.0) if len(classes) == 2 else range(len(classes))
    return dict(zip(classes.tolist(), numbers, strict=True))


def _looked_up(labels: NDArray[Any], table: Mapping[Any, float]) -> Floats:
    """Code of each label, looked up in `table`; a ValueError for a label that it does not have."""
    try:
        return np.fromiter(map(table.__getitem__, labels.tolist()), np.float64, len(labels))
    except KeyError as error:
        problem = f"y has labels that are not among the classes {[*table]!r}"
        raise ValueError(f"{problem}: {error.args[0]!r}") from None


def _label_array(names: list[str], kind: LabelKind) -> NDArray[Any]:
    """Labels from their names in a model file, as numbers or booleans if they are; else as text."""
    if OTHER in names or kind not in ("number", "boolean"):
        return np.array(names)
    if kind == "boolean":
        return np.array([name == "True" for name in names])
    floats = np.array([float(name) for name in names])
    return floats.astype(np.int64) if (floats % 1 == 0).all() else floats


def _kind_of(classes: NDArray[Any]) -> LabelKind:
    """What labels with this dtype are in a table."""
    if classes.dtype.kind == "b":
        return "boolean"
    return "number" if classes.dtype.kind in "iuf" else "text"
