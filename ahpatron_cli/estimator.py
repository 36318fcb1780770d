"""The learners as a scikit-learn classifier: the same core, the same seeds, the same mistakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
from ahpatron_cli.core.rows import CsrRows, Floats, Integers, Rows, rows_from, rows_of, unit_rows
from ahpatron_cli.core.tally import MAX_CLASSES, mistaken, predicted
from ahpatron_cli.data.csv_text import Cells, number
from ahpatron_cli.data.dataset import DENSE_SHARE, DENSE_WIDTH
from ahpatron_cli.data.geometry import MOST_TRIED_ROWS, auto_sigma
from ahpatron_cli.data.labels import Labels, show
from ahpatron_cli.data.scaling import Scaler
from ahpatron_cli.data.schema import Column, Schema
from ahpatron_cli.errors import UserError
from ahpatron_cli.models import learner_of, load_model, model_of, to_bytes
from ahpatron_cli.output.predictions import label_names
from ahpatron_cli.runner import generator_seed

BLAS = ThreadpoolController().select(user_api="blas")
"""Found once: to look for it in every call would take longer than a round."""
PIECE = 64 * BLOCK
"""Rows that are prepared at once; X may be larger than memory."""
MOST_COLUMNS = 2**31 - 2
NAMED = ("budget", "epsilon", "sigma", "horizon")
NEED_HORIZON = {"horizon", "cycle"}
"""Parameters that a learner cannot find without the number of rounds."""


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
        Whether each pass of `fit` has a random order of its own.
    class_weight : dict, "balanced" or None
        Weight of the examples of each class, 1 by default; "balanced" is n/(k·n_c) for n_c of n
        rows in class c of k, in `fit` only. As `--cost` on the command line.
    random_state : int, RandomState or None
        Seed of these orders and of the learner's random generator. An int is what `--seed` is.

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
        classes = _classes(labels)
        weights = self._by_class(weights, labels, classes)
        if not isinstance(self.n_passes, int | np.integer) or self.n_passes < 1:
            raise ValueError(f"n_passes must be a whole number >= 1, got {self.n_passes!r}")
        encoded, passes = _encoded(labels, classes), range(self.n_passes)
        self._begin(classes, rows, encoded, y, horizon=len(labels) * len(passes))
        orders: list[Integers | None] = [None for _ in passes]
        if self.shuffle:  # as `run --shuffle` does in each repeat
            generators = (np.random.default_rng([self._seed, i]) for i in passes)
            orders = [generator.permutation(len(labels)) for generator in generators]
        parts = [self._feed(rows, encoded, weights, order) for order in orders]
        self._labels = np.concatenate([encoded if o is None else encoded[o] for o in orders])
        self.online_scores_: Floats = np.concatenate(parts)
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
        estimator stays as it was; if learning fails, it is not fitted any more.

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
        if not first and classes is not None and {*np.unique(classes)} != {*known}:
            raise ValueError(f"classes={classes!r} are not those of before, {known!r}")
        encoded = _encoded(labels, known)
        weights = self._by_class(weights, labels, known)
        if first:
            self._begin(known, rows, encoded, y, horizon=None)
        self.online_scores_, self._labels = self._feed(rows, encoded, weights), encoded
        return self

    def _by_class(
        self, weights: ArrayLike | None, labels: NDArray[Any], classes: NDArray[Any]
    ) -> Any:
        """Weights of the rows multiplied by those of their classes; None if all are 1."""
        if self.class_weight is None:
            return weights
        ordered = np.unique(classes)
        own = compute_class_weight(self.class_weight, classes=ordered, y=labels)
        by_row = own[np.searchsorted(ordered, labels)]
        return by_row if weights is None else by_row * weights

    def _forget(self) -> None:
        """Be an estimator that is not fitted."""
        for name in [name for name in vars(self) if name[-1] == "_"]:
            delattr(self, name)

    def _examples(
        self, X: Any, y: Any, weights: ArrayLike | None, first: bool
    ) -> tuple[Rows, NDArray[Any], Floats | None]:
        """Rows, labels and weights; rows of weight 0 are left out."""
        # scikit-learn's validation takes several times as long as learning from a row
        plain = not first and type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2
        if plain and X.shape[1] == self.n_features_in_ and np.isfinite(X).all():
            labels = np.asarray(y)
            named = hasattr(self, "feature_names_in_")
            if labels.shape == (len(X),) and len(X) and weights is None and not named:
                return X, labels, None
        rows, labels = self._rows(X, y, first)
        kind = type_of_target(labels, input_name="y", raise_unknown=True)
        if kind not in ("binary", "multiclass"):
            raise ValueError(f"Unknown label type: {kind}. Labels must be those of classes.")
        if weights is None:
            return rows, labels, None
        checked = _check_sample_weight(weights, labels, dtype=np.float64, ensure_non_negative=True)
        chosen = np.flatnonzero(checked)
        if len(chosen) < len(labels):
            rows = _taken(rows, chosen)
        return rows, labels[chosen], np.asarray(checked[chosen])

    def _rows(self, X: Any, y: Any = "no_validation", first: bool = False) -> tuple[Rows, Any]:
        """Rows and labels as scikit-learn validates them, or by the schema of a loaded model."""
        table = None if first else self._form.encoded(X)
        if table is not None:
            labels = y if isinstance(y, str) else column_or_1d(y)
            check_consistent_length(X, None if isinstance(y, str) else y)
            return table, labels
        options = {"reset": first, "accept_sparse": "csr", "dtype": np.float64}
        found = validate_data(self, X, y, **options)
        X, labels = (found, y) if isinstance(y, str) else found
        if isinstance(X, np.ndarray):
            return X, labels
        if X.shape[1] > MOST_COLUMNS:
            raise ValueError(f"sparse X may have {MOST_COLUMNS} columns at most, got {X.shape[1]}")
        return rows_from(X), labels

    def _begin(
        self, classes: NDArray[Any], rows: Rows, encoded: Floats, y: Any, horizon: int | None
    ) -> None:
        """Make a new player."""
        self._form = _Form.of(rows, classes, getattr(self, "feature_names_in_", None), y)
        others = {} if self.params is None else self.params
        if not isinstance(others, Mapping):
            raise ValueError(f"params must be a dict of parameters, got {others!r}")
        given = {name: getattr(self, name) for name in NAMED if getattr(self, name) is not None}
        if twice := given.keys() & others.keys():
            raise ValueError(f"{min(twice)} is given twice, by itself and in params")
        given.update(others)
        if given.get("sigma") == "auto" and self.kernel in KERNELS:
            count = min(len(encoded), MOST_TRIED_ROWS)
            head = self._form(rows_of(rows, slice(0, count)))
            found = auto_sigma(head, encoded[:count], self.kernel)
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
            self.player_: Player = Player(
                learner, kernel, classes=len(classes), seed=seed, horizon=horizon
            )
        except ParameterError as error:
            if horizon is None and error.name in NEED_HORIZON:
                needs = "needs the number of rounds beforehand, which partial_fit does not know"
                raise ValueError(f"{learner.name} {needs}: set horizon") from None
            raise ValueError(f"{learner.name}: {error}") from None
        self.classes_ = classes

    def _feed(
        self, rows: Rows, encoded: Floats, weights: Floats | None, order: Integers | None = None
    ) -> Floats:
        """Learn from these rows, in this order; f(x) of each round."""
        count, scores = len(encoded), []
        # pieces end where blocks end, which gives the bits of one long piece
        begun = self.player_.tally.rounds % BLOCK if count > PIECE else 0
        try:
            for start in range(-begun, count, PIECE):
                part = slice(max(start, 0), min(start + PIECE, count))
                numbers = None if order is None else order[part]
                chosen: Any = part if numbers is None else numbers
                piece = rows_of(rows, part) if numbers is None else _taken(rows, numbers)
                own = None if weights is None else weights[chosen]
                with _computing(part.start, numbers):
                    scores.append(self.player_.feed(self._form(piece), encoded[chosen], own))
        except BaseException:  # f may have learned from some rows of a block that does not count
            self._forget()
            raise
        return scores[0] if len(scores) == 1 else np.concatenate(scores)

    # Predicting ---------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """f, as it is now, at each row; nothing is learned.

        More than two classes have a column each, in the order of `classes_`.
        """
        check_is_fitted(self)
        rows, _ = self._rows(X)
        with _computing():
            return self.player_.scores(self._form(rows))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row: of two, the second if f(x) >= 0; else that of the largest f(x)."""
        scores = self.decision_function(X)
        chosen = (scores >= 0).astype(int) if scores.ndim == 1 else predicted(scores)
        labels: NDArray[Any] = self.classes_[chosen]
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
        form, tally = self._form, self.player_.tally
        width = self.n_features_in_ + form.first
        costs = None
        if self.class_weight is not None and not isinstance(self.class_weight, str):
            weights = dict(self.class_weight)
            costs = tuple(float(weights.get(label, 1.0)) for label in self.classes_.tolist())
        about = {"seed": self._seed, "labels": form.labels, "positive": form.positive}
        about |= {"features": self.n_features_in_, "width": width, "dense": form.dense}
        about |= {"rounds": tally.rounds, "costs": costs, "scale": form.scale}
        model = model_of(self.player_, form.scaler, schema=form.schema, **about)
        with _as_value_errors():
            write_atomically(Path(path), to_bytes(model))

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
            header, state, scaler = load_model(str(path))
            kind = learner_of(header, str(path), learner)
        params = {**header.params, **({} if kind.own_kernel else header.kernel_params)}
        named: dict[str, Any] = {name: params.pop(name) for name in NAMED if name in params}
        model = cls(
            header.learner if learner is None else learner,
            kernel=header.kernel or "gaussian",
            params=params or None,
            random_state=header.seed,
            **named,
        )
        made = configured(model.learner, model.kernel, {**params, **named})
        seed = generator_seed(header.seed, 0, header.learner)
        try:
            player = Player(*made, classes=len(header.labels), seed=seed)
            model.player_ = player.load_state_dict(state)
        except CoreError as error:
            raise ValueError(f"{path} is damaged: {error}") from None
        first = 0 if header.features >= header.width else 1  # files may count from 0
        model._form = _Form(
            header.labels, first, header.dense, header.scale, scaler, header.schema, header.positive
        )
        model._seed, model.n_features_in_ = header.seed, header.width - first
        model.classes_ = _label_array(label_names(header.labels, header.schema))
        if header.costs is not None:
            model.class_weight = dict(zip(model.classes_.tolist(), header.costs, strict=True))
        if header.schema:
            model.feature_names_in_ = np.array(header.schema.features, dtype=object)
        return model

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
        rounds = np.arange(1, len(self._labels) + 1)
        scores, labels = self.online_scores_, self._labels
        wrong = (
            mistaken(labels, labels * scores) if scores.ndim == 1 else predicted(scores) != labels
        )
        mistakes = np.cumsum(wrong)
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


@dataclass(frozen=True)
class _Form:
    """How rows of X become rows of the core, and what a model file says about it."""

    labels: Labels = ()
    first: int = 1
    """The column of the first feature: as in LIBSVM files, column 0 is empty."""
    dense: bool = True
    scale: str = "none"
    scaler: Scaler | None = None
    schema: Schema | None = None
    positive: float | None = None

    @classmethod
    def of(cls, rows: Rows, classes: NDArray[Any], names: Any, y: Any) -> _Form:
        """The form of new rows: sparse ones become dense by the rule of `ahpatron run`."""
        dense = True
        if isinstance(rows, CsrRows):
            head = rows.slice(0, min(BLOCK, len(rows)))
            width = int(head.columns.max(initial=-1)) + 2
            dense = width <= DENSE_WIDTH and len(head.values) >= DENSE_SHARE * len(head) * width
        count = len(classes)
        labels = (-1.0, 1.0) if count == 2 else tuple(map(float, range(count)))
        if classes.dtype.kind in "iuf":
            labels = tuple(map(float, classes.tolist()))
        elif names is None:
            width = rows.width if isinstance(rows, CsrRows) else rows.shape[1]
            names = [f"x{j}" for j in range(width)]
        if names is None:
            return cls(labels, dense=dense)
        shown = map(show, labels) if classes.dtype.kind in "iuf" else map(str, classes.tolist())
        label = getattr(y, "name", None)
        label = label if isinstance(label, str) and label not in names else "label"
        columns = [Column(str(name), "number") for name in names]
        numbers = dict(zip(shown, labels, strict=True))
        return cls(labels, dense=dense, schema=Schema(columns, label, numbers, missing="refuse"))

    def __call__(self, rows: Rows) -> Rows:
        """Rows of X as the core takes them."""
        if isinstance(rows, CsrRows):
            columns = rows.columns + np.int32(self.first)
            rows = replace(rows, columns=columns, width=rows.width + self.first)
            rows = rows.dense() if self.dense else rows
        elif self.first:
            padded = np.zeros((len(rows), rows.shape[1] + 1))
            padded[:, 1:] = rows
            rows = padded
        rows = unit_rows(rows) if self.scale == "unit" else rows
        return rows if self.scaler is None else self.scaler(rows)

    def encoded(self, X: Any) -> Rows | None:
        """The rows of a DataFrame with the columns of the model's table, if it is one."""
        schema = self.schema
        if schema is None or not hasattr(X, "columns"):
            return None
        names = [column.name for column in schema.columns]
        if schema.features == names or not {*names} <= {*X.columns}:
            return None  # it has features, which scikit-learn checks
        cells = Cells(np.arange(len(X)), {name: _cells(X[name]) for name in names})
        with _as_value_errors():
            rows = msgspec.structs.replace(schema, id=None).encode(cells, "X", Counter()).rows
        assert isinstance(rows, CsrRows)
        return replace(rows, columns=rows.columns - 1, width=rows.width - 1)


def configured(
    learner: str, kernel: str, given: Mapping[str, Value | None]
) -> tuple[Learner, Kernel | None]:
    """A learner and a kernel with these parameters; None is a default."""
    if not isinstance(learner, str) or not (learner in REGISTRY or is_path(learner)):
        raise ValueError(f"unknown learner {learner!r}: one of {', '.join(REGISTRY)}")
    kind = find_learner(learner)
    if kernel not in KERNELS:
        raise ValueError(f"unknown kernel {kernel!r}: one of {', '.join(KERNELS)}")
    own, of_kernel = kind.specs(), KERNELS[kernel].specs()
    if unknown := given.keys() - own.keys() - of_kernel.keys():
        raise ValueError(
            f"{kind.name} with the {kernel} kernel has no parameter {min(unknown)!r}: "
            f"one of {', '.join([*own, *of_kernel])}"
        )
    chosen = {name: value for name, value in given.items() if value is not None}
    try:
        made = kind(**{name: value for name, value in chosen.items() if name in own})
        if kind.own_kernel is not None:
            return made, None
        return made, KERNELS[kernel](**{n: v for n, v in chosen.items() if n in of_kernel})
    except ParameterError as error:
        raise ValueError(f"{kind.name}: {error}") from None


@contextmanager
def _computing(start: int = 0, numbers: Integers | None = None) -> Iterator[None]:
    """One BLAS thread, as on the command line; faults of the data as scikit-learn knows them."""
    # `BLAS.limit` would take as long as learning from a row
    threads = [(library, library.get_num_threads()) for library in BLAS.lib_controllers]
    several = [(library, count) for library, count in threads if count != 1]
    for library, _ in several:
        library.set_num_threads(1)
    try:
        yield
    except NumericalError as error:
        row = start + error.row if numbers is None else numbers[error.row]
        raise ValueError(f"row {row} of X cannot be computed: {error}") from None
    except CoreError as error:
        raise ValueError(str(error)) from None
    finally:
        for library, count in several:
            library.set_num_threads(count)


@contextmanager
def _as_value_errors() -> Iterator[None]:
    try:
        yield
    except UserError as error:
        raise ValueError(str(error)) from None


def _taken(rows: Rows, numbers: Integers) -> Rows:
    return rows.take(numbers) if isinstance(rows, CsrRows) else rows[numbers]


def _classes(labels: Any) -> NDArray[Any]:
    distinct = np.unique(labels)
    if len(distinct) < 2:
        raise ValueError(f"y has one class only, {distinct.tolist()[0]!r}: nothing to learn")
    if len(distinct) > MAX_CLASSES:
        raise ValueError(f"at most {MAX_CLASSES:,} classes are possible, got {len(distinct):,}")
    return distinct


def _encoded(labels: NDArray[Any], classes: NDArray[Any]) -> Floats:
    """-1 and +1, or the numbers of the classes."""
    if not set(classes.tolist()).issuperset(labels.tolist()):
        unseen = np.setdiff1d(labels, classes)
        raise ValueError(f"y has labels that are not among the classes {classes!r}: {unseen!r}")
    if len(classes) > 2:
        return np.searchsorted(classes, labels).astype(np.float64)
    return np.where(labels == classes[1], 1.0, -1.0)


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
