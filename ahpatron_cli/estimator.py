"""The learners as a scikit-learn classifier: the same core, the same seeds, the same mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from threadpoolctl import ThreadpoolController

from ahpatron_cli.core import KERNELS, REGISTRY, Player
from ahpatron_cli.core.errors import LimitReachedError, NumericalError, ParameterError
from ahpatron_cli.core.parameters import Value
from ahpatron_cli.core.rows import CsrRows, Floats, Integers, Rows, rows_from, rows_of
from ahpatron_cli.core.tally import MAX_CLASSES, predicted
from ahpatron_cli.data.compact import CompactRows
from ahpatron_cli.data.dataset import DENSE_WIDTH, Dataset, Preparation, StreamState
from ahpatron_cli.data.geometry import MOST_TRIED_ROWS, auto_sigma
from ahpatron_cli.runner import LearnerSpec, RunOptions, generator_seed

BLAS = ThreadpoolController().select(user_api="blas")
"""Found once: to look for it in every call would take longer than a round."""
MOST_COLUMNS = 2**31 - 1
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
    learner, kernel : str
        Names as in `ahpatron learners`.
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
        (`fogd` draws by column number, and in files columns count from 1: it equals `ahpatron run`
        where X was loaded with `zero_based=True`.)

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

        If they are refused, the estimator stays as it was before the call.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            Weights > 0, for learners that take costs.

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            rows, labels, weights = self._examples(X, y, sample_weight, first=True)
            classes = _classes(labels)
            weights = self._by_class(weights, labels, classes)
            if not isinstance(self.n_passes, int | np.integer) or self.n_passes < 1:
                raise ValueError(f"n_passes must be a whole number >= 1, got {self.n_passes!r}")
            passes = int(self.n_passes)
            encoded = _encoded(labels, classes)
            seed = self._begin(classes, rows, encoded, horizon=len(labels) * passes)
            orders = RunOptions(passes, seed, bool(self.shuffle))
            parts = [
                self._feed(rows, encoded, weights, orders.order(i, len(encoded)))
                for i in range(passes)
            ]
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
        X : array or sparse matrix of shape (n_samples, n_features)
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
        if not self.__sklearn_is_fitted__():
            with self._all_or_nothing():
                rows, labels, weights = self._examples(X, y, sample_weight, first=True)
                if classes is None:
                    raise ValueError("classes must be passed on the first call to partial_fit.")
                known = _classes(classes)
                encoded = _encoded(labels, known)
                if isinstance(self.class_weight, str):
                    raise ValueError(f"class_weight={self.class_weight!r} is for `fit` only")
                weights = self._by_class(weights, labels, known)
                self._begin(known, rows, encoded, horizon=None)
                self.online_scores_ = self._feed(rows, encoded, weights)
            return self
        found: Any = X, np.asarray(y), sample_weight
        if check_input:
            found = self._examples(X, y, sample_weight, first=False)
        rows, labels, weights = found
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={classes!r} are not those of before, {self.classes_!r}")
        encoded = _encoded(labels, self.classes_)
        weights = self._by_class(weights, labels, self.classes_)
        self.online_scores_ = self._feed(rows, encoded, weights)
        return self

    def _by_class(
        self, weights: ArrayLike | None, labels: NDArray[Any], classes: NDArray[Any]
    ) -> Any:
        """Weights of the rows multiplied by those of their classes; None if all are 1."""
        if self.class_weight is None:
            return weights
        own = compute_class_weight(self.class_weight, classes=classes, y=labels)
        by_row = own[np.searchsorted(classes, labels)]
        return by_row if weights is None else by_row * weights

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Take back all attributes if an exception passes."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

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
        X, y = validate_data(self, X, y, reset=first, accept_sparse="csr", dtype=np.float64)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind not in ("binary", "multiclass"):
            raise ValueError(f"Unknown label type: {kind}. Labels must be those of classes.")
        rows = _rows(X)
        if weights is None:
            return rows, y, None
        checked = _check_sample_weight(weights, X, dtype=np.float64, ensure_non_negative=True)
        chosen = np.flatnonzero(checked)
        if len(chosen) < len(y):
            rows = rows.take(chosen) if isinstance(rows, CsrRows) else rows[chosen]
        return rows, y[chosen], np.asarray(checked[chosen])

    def _begin(
        self, classes: NDArray[Any], rows: Rows, encoded: Floats, horizon: int | None
    ) -> int:
        """Make a new player; the seed of all that is random."""
        setup = self._setup()
        if setup.auto_sigma and setup.kernel:
            count = min(len(encoded), MOST_TRIED_ROWS)
            first = rows_of(rows, slice(0, count))
            found = auto_sigma(first, encoded[:count], setup.kernel)
            if isinstance(found, str):
                raise ValueError(f"sigma='auto' cannot choose: {found}")
            setup = setup.with_sigma(found)
        if isinstance(self.random_state, int | np.integer):
            seed = int(self.random_state)
        else:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        try:
            own = generator_seed(seed, 0, setup.learner)
            self.player_: Player = Player(
                *setup.build(), classes=len(classes), seed=own, horizon=horizon
            )
        except ParameterError as error:
            if horizon is None and error.name in NEED_HORIZON:
                needs = "needs the number of rounds beforehand, which partial_fit does not know"
                raise ValueError(f"{setup.learner} {needs}: set horizon") from None
            raise ValueError(f"{setup.learner}: {error}") from None
        self.classes_ = classes
        numbers = (-1.0, 1.0) if len(classes) == 2 else tuple(map(float, range(len(classes))))
        self._form = StreamState(numbers, dense=None if isinstance(rows, CsrRows) else True)
        return seed

    def _setup(self) -> LearnerSpec:
        """The learner and the kernel with what was asked for."""
        chosen = (("learner", self.learner, REGISTRY), ("kernel", self.kernel, KERNELS))
        for what, name, legal in chosen:
            if not isinstance(name, str) or name not in legal:
                raise ValueError(f"unknown {what} {name!r}: one of {', '.join(legal)}")
        named = ("budget", "epsilon", "sigma", "horizon")
        given = {name: getattr(self, name) for name in named if getattr(self, name) is not None}
        others = {} if self.params is None else self.params
        if not isinstance(others, Mapping):
            raise ValueError(f"params must be a dict of parameters, got {others!r}")
        if twice := given.keys() & others.keys():
            raise ValueError(f"{min(twice)} is given twice, by itself and in params")
        given.update(others)
        learner_specs, kernel_specs = REGISTRY[self.learner].specs(), KERNELS[self.kernel].specs()
        if unknown := given.keys() - learner_specs.keys() - kernel_specs.keys():
            raise ValueError(
                f"{self.learner} with the {self.kernel} kernel has no parameter {min(unknown)!r}: "
                f"one of {', '.join([*learner_specs, *kernel_specs])}"
            )
        own = REGISTRY[self.learner].own_kernel is not None
        return LearnerSpec(
            self.learner,
            {name: given[name] for name in learner_specs if given.get(name) is not None},
            None if own else self.kernel,
            {}
            if own
            else {name: given[name] for name in kernel_specs if given.get(name) is not None},
        )

    def _feed(
        self, rows: Rows, encoded: Floats, weights: Floats | None, order: Integers | None = None
    ) -> Floats:
        """Learn from these rows, in this order; f(x) of each round."""
        try:
            if isinstance(rows, CsrRows):
                return self._feed_sparse(rows, encoded, weights, order)
            if order is not None:
                rows, encoded = rows[order], encoded[order]
                weights = None if weights is None else weights[order]
            with _computing(order):
                return self.player_.feed(rows, encoded, weights)
        except BaseException:  # f may have learned from some rows of a block that does not count
            for name in [name for name in vars(self) if name[-1] == "_"]:
                delattr(self, name)
            raise

    def _feed_sparse(
        self, rows: CsrRows, encoded: Floats, weights: Floats | None, order: Integers | None
    ) -> Floats:
        """In the form in which `run` would read them."""
        dataset = Dataset("X", Preparation(), CompactRows.of_rows(rows, encoded), self._form)
        scores = []
        for batch in dataset.batches(order, self.player_.tally.rounds):
            with _computing(batch.lines):
                own = None if weights is None else weights[batch.lines]
                scores.append(self.player_.feed(batch.rows, batch.labels, own))
        self._form = replace(self._form, dense=dataset.dense, width=dataset.width)
        return np.concatenate(scores)

    # Predicting ---------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """f, as it is now, at each row; nothing is learned.

        More than two classes have a column each, in the order of `classes_`.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        with _computing():
            rows = _rows(X)
            if isinstance(rows, CsrRows) and self._form.dense and rows.width <= DENSE_WIDTH:
                rows = rows.dense()
            return self.player_.scores(rows)

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

    # What was counted ---------------------------------------------------------------------------

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


@contextmanager
def _computing(numbers: Integers | None = None) -> Iterator[None]:
    """One BLAS thread, as on the command line; faults of the data as scikit-learn knows them."""
    # `BLAS.limit` would take as long as learning from a row
    threads = [(library, library.get_num_threads()) for library in BLAS.lib_controllers]
    several = [(library, count) for library, count in threads if count != 1]
    for library, _ in several:
        library.set_num_threads(1)
    try:
        yield
    except NumericalError as error:
        row = error.row if numbers is None else numbers[error.row]
        raise ValueError(f"row {row} of X cannot be computed: {error}") from None
    except LimitReachedError as error:
        raise ValueError(str(error)) from None
    finally:
        for library, count in several:
            library.set_num_threads(count)


def _classes(labels: ArrayLike) -> NDArray[Any]:
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


def _rows(X: Any) -> Rows:
    """The core's form of what scikit-learn validated."""
    if isinstance(X, np.ndarray):
        return X
    if X.shape[1] > MOST_COLUMNS:
        raise ValueError(f"sparse X may have {MOST_COLUMNS} columns at most, got {X.shape[1]}")
    return rows_from(X)
