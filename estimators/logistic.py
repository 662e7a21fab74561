"""How are classes told apart, privately? Logistic regression, by noisy gradients of all records.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((3_000, 2))
>>> y = np.where(X[:, 0] > 1, "high", np.where(X[:, 0] < -1, "low", "middle"))
>>> model = LogisticRegression(epsilon=2.0, delta=1e-6).fit(X, y)  # classes are learned privately
>>> model.classes_.tolist(), [query.name for query in model.ledger_.entries]
(['high', 'low', 'middle'], ['labels', 'scale', 'gradient'])
>>> model.predict([[-3.0, 0.0], [3.0, 0.0]]).tolist()
['low', 'high']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dpcal.calibrate import Query
from dpcal.estimators.base import Answers, Table
from dpcal.estimators.linear import LinearModel
from dpcal.estimators.queries import labels_query
from dpcal.estimators.scores import PrivateAccuracy
from dpcal.optim.linear_fit import LinearSettings, declared, of_classes
from dpcal.optim.objectives.domains import finite_rows
from dpcal.optim.objectives.placed import by_row

__all__ = ["LogisticRegression"]


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticRegression(PrivateAccuracy, ClassifierMixin, LinearModel):  # type: ignore[misc]
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
        releases the labels that enough records carry. Records of other labels are blank, and
        nobody is told how many: labels -1 and 1 with ``classes=[0, 1]`` leave every record of -1
        out. Give the labels as they are, ``classes=[-1, 1]``.
    class_weight
        For each class a public number > 0 that the gradients of its records are multiplied by
        before they are clipped, as a mapping, whose keys are the classes where ``classes`` is
        omitted. No record adds more than ``max_norm`` whatever its weight, so the price is that
        without weights. ``"balanced"`` is refused, because counts of classes are private.
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
        ``"all"``: every iterate may be released. ``"last"``: the last one alone is, for two
        declared classes, and ``l2`` saves noise. Then the clip, the steps and their size follow
        ``row_norm`` and ``l2`` where they are not given.

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
    There is no ``random_state``: noise that can be drawn again protects nobody. ``partial_fit``
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

    @np.errstate(all="ignore")
    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Go on with further records; costs a fit.

        Parameters
        ----------
        X, y
            Records, shape (n, d), and labels, shape (n,).
        classes
            Those of all calls, needed in the first one where they were not declared.
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
            # The number of classes is not known before it is released.
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
        check_is_fitted(self)
        self._refuse_unpaid()
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
