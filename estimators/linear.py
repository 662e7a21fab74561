"""How is a number or a class predicted, privately? From noisy sums, or by noisy gradients.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X = rng.uniform(-1, 1, (5_000, 2))
>>> y = X @ [2.0, -1.0] + 0.5 + 0.1 * rng.standard_normal(5_000)
>>> model = LinearRegression(bounds=(-1, 1), target_bounds=(-4, 4), epsilon=1.0).fit(X, y)
>>> model.coef_.round(1).tolist(), round(model.intercept_, 1), model.solver_
([2.0, -1.0], 0.5, 'gradient')
>>> y = np.where(X[:, 0] > 0.3, "high", np.where(X[:, 0] < -0.3, "low", "middle"))
>>> model = LogisticRegression(epsilon=2.0, delta=1e-6).fit(X, y)  # classes are learned privately
>>> model.classes_.tolist(), [query.name for query in model.ledger_.entries]
(['high', 'low', 'middle'], ['labels', 'scale', 'gradient'])
>>> model.predict([[-1.0, 0.0], [1.0, 0.0]]).tolist(), bool(model.epsilon_spent_ <= 2.0)
(['low', 'high'], True)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from dpcal._internal import validate
from dpcal.calibrate import Plan, Query
from dpcal.calibrate.defaults import full_steps
from dpcal.estimators.base import Answers, Table
from dpcal.estimators.bounds import BoundedEstimator, scaled
from dpcal.estimators.queries import Pairs, labels_query
from dpcal.estimators.reading import checked, one_for_each, real_cells, shaped
from dpcal.estimators.scores import noisy_accuracy, noisy_r2, share_of
from dpcal.optim.linear_fit import (
    RELEASES,
    LinearSettings,
    declared,
    fit_linear,
    of_classes,
    plan_linear,
)
from dpcal.optim.objectives.arrays import row_norms, shrink_factors
from dpcal.optim.objectives.domains import blanked, cells, codes, finite_rows
from dpcal.optim.objectives.placed import by_row

SOLVERS = ("auto", "statistics", "gradient")

# On 60 tables of 10^3 to 10^6 records, the mean excess is 1.01 times the better solver's.
_CLEARER = 5.0

_ABOVE_NOISE = 4.0


@dataclass(kw_only=True, eq=False, repr=False)
class LinearModel(BoundedEstimator):
    """A model that is linear in records within a declared norm.

    Parameters
    ----------
    row_norm
        Bound > 0 on the L2 norm of a record, after ``bounds``; longer ones are shortened, each by
        itself. When omitted, ``sqrt(n_features)``, as of standardised columns.
    fit_intercept
        Whether there are intercepts.
    """

    row_norm: float | None = None
    fit_intercept: bool = True

    def _new(self, X: ArrayLike) -> Table:
        """Return new records as finite float64; a cell that is no finite number is refused."""
        check_is_fitted(self)
        self._refuse_unpaid()
        table: Table = checked(self, X, numbers_of=_cells_of, reset=False, least=1)
        if not np.isfinite(table).all():
            raise ValueError(
                "Input X contains NaN, infinity, or cells that do not convert to numbers."
            )
        return table

    def _rows(self, X: Table) -> tuple[Table, float]:
        """Return scaled records, with the constant column, and the bound on their norm."""
        d = X.shape[1]
        box = None if self.bounds is None else self._box(d)
        norm = math.sqrt(d) if self.row_norm is None else self.row_norm
        norm = validate.positive(row_norm=norm)
        constant = validate.flag(fit_intercept=self.fit_intercept)

        def within(rows: Table) -> Table:
            rows = rows if box is None else scaled(rows, *box)
            rows = rows * shrink_factors(row_norms(rows), norm)[:, np.newaxis]
            return np.hstack([rows, np.ones((len(rows), 1))]) if constant else rows

        return by_row(within, X), math.hypot(norm, 1.0) if constant else norm

    def _by_gradients(
        self,
        loss: str,
        rows: Table,
        y: Any,
        norm: float,
        multiplier: float,
        settings: LinearSettings,
        *before: Query,
        choose: Callable[[Answers], LinearSettings | None] | None = None,
        first: bool = True,
        initial: Any = None,
    ) -> tuple[Table, int]:
        """Return the weights of a fit by :func:`fit_linear`, and its steps.

        Parameters
        ----------
        loss, rows, y, norm, initial
            Settings of ``fit_linear``.
        multiplier
            Noise multiplier of one release that costs the share of the target that is left.
        settings, *before, choose
            The settings, where they are known beforehand. Else the first query, and a function of
            its answers that returns the settings, or None to end the fit.
        first
            Whether earlier calls do not count.
        """
        epsilon, delta = self._target()
        given: dict[str, Any] = {"row_norm": norm, "epsilon": epsilon, "delta": delta}
        n, d = rows.shape
        sizes = {"n": n, "dimension": d, "group_size": self.rows_per_person, "release": multiplier}
        plan = plan_linear(loss, settings=settings, **sizes, **given)

        def whole(plan: Plan) -> Plan:
            # A rate that was released stays out of a report, as it is no setting.
            last = plan.parameters if settings.release == "last" else {}
            kept = {"steps": plan.parameters["steps"], **last}
            return self._plan(n, *before, *plan.queries, **kept)

        w = np.zeros(d)
        with self._asking(whole(plan), first=first) as told:
            told.complete = False
            chosen = settings if choose is None else choose(told)
            if chosen is not None:
                about: dict[str, Any] = {"plan": plan, "initial": initial, "seed": self._seed}
                result = fit_linear(loss, rows, y, settings=chosen, **about, **given)
                told.ledgers.append(result.ledger)
                told.complete, told.plan, w = result.complete, whole(result.plan), result.w
        return w, int(plan.parameters["steps"] or 0)


def _cells_of(X: Any, *, least: int, estimator: str) -> Table:
    """Return records as float64; infinities stay, and a cell that is no number is NaN."""
    # A single text makes a column of texts, which is then no reason to refuse all records.
    given = np.asarray(X, dtype=object) if hasattr(X, "columns") else X
    table: Table = shaped(real_cells(given), least=least, estimator=estimator)
    return table


@dataclass(kw_only=True, eq=False, repr=False)
class LinearRegression(RegressorMixin, LinearModel):  # type: ignore[misc]
    """Linear regression from noisy second moments, or by noisy gradient descent.

    Records and targets are scaled to [-1, 1] by their bounds, which are needed. The solver
    "statistics" releases the second moments of records and their products with the target in one
    noisy sum, and adds as much to the diagonal as the noise needs (AdaSSP). The solver "gradient"
    takes 120 to 1,000 noisy gradients, more where noise is small.

    Parameters
    ----------
    target_bounds
        A pair (low, high) of numbers for the target, or ``"learn"``.
    solver
        ``"statistics"``, ``"gradient"``, or ``"auto"``: gradients, unless statistics are expected
        to find directions that so many steps do not reach.

    Attributes
    ----------
    coef_, intercept_
        Shape (n_features,), and a number.
    solver_
        Which solver was used.

    Notes
    -----
    ``partial_fit`` adds the moments of its batches (solver "statistics" only); each call costs
    (epsilon, delta), and all calls are composed as if they were about the same records.

    References
    ----------
    Wang 2018, Revisiting differentially private linear regression, Algorithm 1 (AdaSSP); here the
    smallest eigenvalue belongs to the noisy moments, and is not released by itself.
    """

    target_bounds: Any = None
    solver: str = "auto"

    # Records seen, the sum of their moments, and the number of its noisy parts.
    _statistics: tuple[int, Any, int] = field(init=False)
    _constant: float = field(init=False)

    @np.errstate(all="ignore")
    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Add the moments of further records; costs a fit, and needs the solver "statistics"."""
        first = not hasattr(self, "coef_")
        if not first and self.solver_ != "statistics":
            raise ValueError(
                "solver must be 'statistics' in fits before partial_fit, which adds to their "
                f"moments, got {self.solver!r} and a fit by gradients."
            )
        return self._learn(*self._tables(X, y, reset=first), first=first, solver="statistics")

    def _tables(self, X: ArrayLike, y: Any, *, reset: bool = True) -> tuple[Any, ...]:
        """Return records and targets, all NaN where one of their numbers is not finite."""
        rows, given = super()._tables(X, y, reset=reset)
        targets = by_row(partial(cells, "y"), given)
        known = by_row(lambda X, y: finite_rows(X) & np.isfinite(y), rows, targets)
        blank = partial(blanked, blank=math.nan)
        return by_row(blank, rows, known), by_row(blank, targets, known)

    def _strength(self) -> float:
        """Return the regulariser's strength."""
        return 0.0

    def _learn(self, X: Table, y: Table, *, first: bool, solver: str | None = None) -> Self:
        n, d = X.shape
        alpha = self._strength()
        self._ends(d)  # refuses missing bounds
        rows, norm = self._rows(X)
        middle, half = self._box(name="target_bounds")
        values = by_row(lambda targets: scaled(targets, middle, half), y)
        (multiplier,) = self._multipliers([1.0])
        if first:
            self._constant = self._length_of_constant(multiplier, n, d)
        if self.fit_intercept and self._constant < 1:
            lengths = np.append(np.ones(d), self._constant)
            rows = by_row(lambda some: some * lengths, rows)
            norm = math.hypot(math.sqrt(norm**2 - 1), self._constant)
        chosen = validate.choice(SOLVERS, solver=solver or self.solver)
        if chosen == "auto":
            chosen = "statistics" if _informative(multiplier, n, d) else "gradient"
        if chosen == "statistics":
            w = self._from_statistics(rows, values, norm, multiplier, alpha, first=first)
        else:
            settings = LinearSettings(l2=alpha / n, release=getattr(self, "release", "all"))
            w, _ = self._by_gradients("squared", rows, values, norm, multiplier, settings)
        self.solver_ = chosen
        if self.fit_intercept:
            w = np.append(w[:d], self._constant * w[d])
        self._keep(w, d)
        return self

    def _length_of_constant(self, multiplier: float, n: int, d: int) -> float:
        """Return the length of the constant column, which has the intercept as its weight.

        One as long as a short record would double a record's part of the moments, and the noise. It
        is shorter, but longer than most columns, and its own moment stands above the noise.
        """
        if self.row_norm is None:
            return 1.0
        least = _ABOVE_NOISE * multiplier * math.sqrt(2 * d) / n
        return min(1.0, self.row_norm * math.sqrt(max(d**-0.5, least)))

    def _from_statistics(
        self,
        rows: Table,
        values: Table,
        norm: float,
        multiplier: float,
        alpha: float,
        *,
        first: bool,
    ) -> Table:
        """Solve for the weights from noisy second moments."""
        n, d = rows.shape
        pairs = Pairs(d, norm)
        vectors, size = partial(_moments, pairs=pairs, norm=norm), pairs.count + d
        mean, _ = self._mean("moments", math.sqrt(2), vectors, size, rows, values, first=first)
        seen, kept, calls = (0, 0.0, 0) if first else self._statistics
        self._statistics = seen, kept, calls = (seen + n, kept + n * mean, calls + 1)
        second = pairs.matrix(kept)
        # The noise has norm sqrt(2 d) times this, but sqrt(d) times this bounds most directions.
        deviation = multiplier * math.sqrt(2 * calls) * norm**2
        noise = deviation * math.sqrt(d)
        least = float(np.linalg.eigvalsh(second)[0])
        penalty = np.full(d, alpha + max(0.0, noise - least))
        if self.fit_intercept:
            penalty[-1] = max(0.0, noise - least)
        solved: Table = np.linalg.solve(second + np.diag(penalty), norm * kept[pairs.count :])
        return solved

    def _keep(self, w: Table, d: int) -> None:
        low, high = self._ends(d)
        middle, half = self._box(name="target_bounds")
        self.coef_ = half * w[:d] * 2 / (high - low)
        intercept = half * (float(w[d]) if self.fit_intercept else 0.0) + middle
        self.intercept_ = float(intercept) - float(self.coef_ @ (high + low)) / 2

    def predict(self, X: ArrayLike) -> Table:
        """Return predictions for records of shape (m, n_features)."""
        predicted: Table = self._new(X) @ self.coef_ + self.intercept_
        return predicted

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: Any = None) -> float:
        """Return the coefficient of determination R^2 on records of shape (m, n_features).

        While a budget is in use, it is computed from one noisy answer about squared residuals and
        the first two moments of the target, within its declared bounds, is charged to the budget,
        and ``sample_weight`` must be None.
        """
        if not self._pays():
            predicted = self.predict(X)
            given = cells("y", one_for_each(predicted, y, estimator=type(self).__name__))
            return float(r2_score(given, predicted, sample_weight=sample_weight))
        low, high = map(float, self._ends(name="target_bounds"))
        return noisy_r2(self, X, y, target_bounds=(low, high), **share_of(self, sample_weight))


@dataclass(kw_only=True, eq=False, repr=False)
class Ridge(LinearRegression):
    """Ridge regression from noisy second moments, or by noisy gradient descent.

    Records and targets are scaled to [-1, 1] by their bounds, which are needed. The intercept is
    not regularised by ``alpha``.

    Parameters
    ----------
    alpha
        Strength >= 0 of the regulariser ``alpha ||w||^2``, added to the sum of squared residuals,
        in the units of the scaled records.
    release
        ``"all"``, or ``"last"``: the solver is "gradient" then, only its last iterate is released,
        and a large ``alpha`` saves noise. It regularises the intercept too.

    References
    ----------
    Wang 2018, Revisiting differentially private linear regression, Algorithm 1 (AdaSSP).
    Bok, Su and Altschuler 2024, Shifted interpolation for differential privacy (``"last"``).
    """

    alpha: float = 1.0
    release: str = "all"

    def _strength(self) -> float:
        return validate.non_negative(alpha=self.alpha)

    def _learn(self, X: Table, y: Table, *, first: bool, solver: str | None = None) -> Self:
        if validate.choice(RELEASES, release=self.release) == "last":
            if (solver or self.solver) == "statistics":
                raise ValueError(
                    "solver must be 'auto' or 'gradient' with release='last', and fit the only "
                    "call: statistics have no iterates. Got 'statistics'."
                )
            solver = "gradient"
        return super()._learn(X, y, first=first, solver=solver)


def _moments(w: Table, some: Table, values: Table, *, pairs: Pairs, norm: float) -> Table:
    """Return products of the entries of rows, one of each pair, and with the targets."""
    return np.hstack([pairs.products(some), some * (values[:, np.newaxis] / norm)])


def _informative(multiplier: float, n: int, d: int) -> bool:
    """Whether second moments find directions that gradient steps are too few for.

    Records of norm R have moments with noise of about ``multiplier R^2`` in each entry, and T steps
    reach directions with moments above ``n R^2 / (2 T)``. Where columns use their bounds, steps are
    better at any n, and in the end both are below the statistical error; elsewhere moments are
    better once the noise of d entries is a few times below the reach of steps.
    """
    steps = full_steps("squared", n=n, dimension=d, release=multiplier)
    return _CLEARER * steps * multiplier * d < n


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticRegression(ClassifierMixin, LinearModel):  # type: ignore[misc]
    """Logistic regression of two or more classes by noisy gradient descent.

    Every step clips each record's gradient, sums, and adds Gaussian noise. A hundredth of the
    budget releases the typical norm of records, from which clip and step size follow
    (:class:`dpcal.calibrate.defaults.Defaults`), so that nothing has to be tuned. Columns are moved
    and scaled from ``bounds`` to [-1, 1]; without bounds, records are used as they are, for
    instance as a scaler made them.

    Parameters
    ----------
    classes
        The classes, if they are public. When omitted, they are learned: a tenth of the budget
        releases the labels that enough records carry. Records with other labels are ignored, and
        their number is secret: labels -1 and 1 with ``classes=[0, 1]`` leave every record of -1
        out. Give the labels as they are, ``classes=[-1, 1]``.
    class_weight
        For each class a public number > 0 that the gradients of its records are multiplied by
        before they are clipped, as a mapping; its keys are the classes where ``classes`` is
        omitted. No record adds more than ``max_norm`` whatever its weight, so epsilon is the same
        as without weights. ``"balanced"`` is refused, because counts of classes are private.
    max_norm
        Clip > 0 of one record's weighted gradient; when omitted, from the typical norm.
    steps
        Number of passes >= 1; when omitted, 120 to 1,000, more where noise is small
        (:func:`dpcal.calibrate.defaults.full_steps`). The model is a mean of their iterates with
        weights that grow.
    learning_rate
        Step size > 0; when omitted, from the typical norm, the noise and the number of passes.
    l2
        Strength >= 0 of the regulariser ``l2 / 2 ||w||^2``, intercepts included.
    release
        ``"all"``: every iterate may be released. ``"last"``: only the last one is, for two declared
        classes, and ``l2`` saves noise. Then the clip, the steps and their size follow ``row_norm``
        and ``l2`` where they are not given.

    Attributes
    ----------
    classes_
        Declared or learned, in sort order.
    coef_
        Shape (1, n_features), or (n_classes, n_features) for more than two classes.
    intercept_
        Shape (1,) or (n_classes,).
    n_iter_
        Steps taken.

    Notes
    -----
    There is no ``random_state``: noise that can be drawn again protects no record. ``partial_fit``
    goes on from the last coefficients; each call costs (epsilon, delta), and all calls are composed
    as if they were about the same records.

    References
    ----------
    Wang, Ye and Xu 2017, Algorithm 3; Bok, Su and Altschuler 2024 (``release="last"``).
    """

    classes: ArrayLike | None = None
    class_weight: Mapping[Any, float] | None = None
    max_norm: float | None = None
    steps: int | None = None
    learning_rate: float | None = None
    l2: float = 0.0
    release: str = "all"

    def _is_gaussian(self) -> bool:
        return self._public_classes() is not None and super()._is_gaussian()

    def _tables(self, X: ArrayLike, y: Any, *, reset: bool = True) -> tuple[Any, ...]:
        """Return records, all NaN where of no declared class, and their labels."""
        classes = self._public_classes()
        rows, labels = super()._tables(X, y, reset=reset)
        return rows if classes is None else of_classes(rows, labels, declared(classes)), labels

    def _public_classes(self) -> Any:
        """Return the classes where they are declared, by themselves or by their weights."""
        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight must be a mapping from each class to a public number > 0, or None, "
                f"got {self.class_weight!r}. Counts of classes are private: if about one record in "
                "ten is known to be of class 1, give class_weight={0: 1, 1: 9}."
            )
        weighted = None if self.class_weight is None else list(self.class_weight)
        return weighted if self.classes is None else self.classes

    def _blank_targets(self, y: Any) -> NDArray[Any]:
        # Learned classes are released by counts: two classes, each as frequent as possible.
        classes = self._public_classes()
        return np.resize(np.asarray([0, 1] if classes is None else classes), len(y))

    @np.errstate(all="ignore")
    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Go on with further records; costs a fit.

        Parameters
        ----------
        X, y
            Records, shape (n, d), and labels, shape (n,).
        classes
            The classes of all calls, needed in the first one where they were not declared.
        """
        first = not hasattr(self, "coef_")
        rows, labels = self._tables(X, y, reset=first)
        own = self._public_classes() if first else self.classes_
        known = classes if first and self.classes is None and classes is not None else own
        if known is None:
            raise ValueError("classes must be given in the first call of partial_fit, got None.")
        rows = of_classes(rows, labels, declared(known))
        return self._learn(rows, labels, first=first, known=known)

    def _learn(self, X: Table, labels: Any, *, first: bool, known: Any = None) -> Self:
        d = X.shape[1]
        known = self._public_classes() if known is None else known
        classes: Any = None if known is None else declared(known)
        rows, norm = self._rows(X)
        settings = LinearSettings(
            classes=classes,
            class_weight=self.class_weight,
            l2=self.l2,
            max_norm=self.max_norm,
            steps=self.steps,
            learning_rate=self.learning_rate,
            release=self.release,
        )
        if settings.release == "last" and classes is None:
            raise ValueError("release='last' needs two declared classes, got classes=None.")
        before: tuple[Query, ...] = ()
        if classes is None:
            query, multiplier, _ = labels_query(*self._target())
            before = (query,)
        else:
            (multiplier,) = self._multipliers([1.0])

        def choose(told: Answers) -> LinearSettings | None:
            nonlocal classes
            if classes is None:
                part, finite = told.part(query, "labels"), by_row(finite_rows, X)
                classes = told.choices(labels, part, known=finite).labels("labels")
            return replace(settings, classes=classes) if len(classes) >= 2 else None

        start = None if first else np.ravel(self._weights)
        given = (rows, labels, norm, multiplier, settings)
        w, steps = self._by_gradients(
            "logistic", *given, *before, choose=choose, first=first, initial=start
        )
        if len(classes) < 2:
            raise ValueError(
                f"There must be two classes or more, and noisy counts told of {len(classes)}: "
                f"labels that fewer than about {query.threshold:.0f} records carry are not "
                "released. Declare classes, or give more records or epsilon."
            )
        self._keep(w, classes, d)
        self.n_iter_ = steps
        return self

    def _keep(self, w: Table, classes: NDArray[Any], d: int) -> None:
        self.classes_ = classes
        count = len(classes) if len(classes) > 2 else 1
        self._weights = w.reshape(count, -1).copy()
        coefficients, intercepts = self._weights[:, :d].copy(), np.zeros(count)
        if self.fit_intercept:
            intercepts = self._weights[:, d].copy()
        if self.bounds is not None:
            low, high = self._ends(d)
            coefficients *= 2 / (high - low)
            intercepts -= coefficients @ (high + low) / 2
        self.coef_, self.intercept_ = coefficients, intercepts

    def decision_function(self, X: ArrayLike) -> Table:
        """Return scores: shape (m,) for two classes, else (m, n_classes)."""
        scores: Table = self._new(X) @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the likeliest class of each record of shape (m, n_features)."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[chosen]
        return labels

    def predict_log_proba(self, X: ArrayLike) -> Table:
        """Return logarithms of :meth:`predict_proba`."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        logarithms: Table = log_softmax(scores, axis=1)
        return logarithms

    def predict_proba(self, X: ArrayLike) -> Table:
        """Return probabilities of the classes, shape (m, n_classes)."""
        probabilities: Table = np.exp(self.predict_log_proba(X))
        return probabilities

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self._pays():
            # scikit-learn folds classifiers by all labels: one moves others. None folds by place.
            tags.estimator_type = None
        return tags

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: Any = None) -> float:
        """Return the share of records of shape (m, n_features) with the right prediction.

        While a budget is in use, the answer has Gaussian noise and is charged to it, and
        ``sample_weight`` must be None. Labels that are no classes count as wrong.
        """
        if not self._pays():
            predicted = self.predict(X)
            labels = one_for_each(predicted, y, estimator=type(self).__name__)
            right = codes("y", labels, self.classes_) == np.searchsorted(self.classes_, predicted)
            return float(np.average(right, weights=sample_weight))
        return noisy_accuracy(self, X, y, **share_of(self, sample_weight))
