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

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dpcal import _validate
from dpcal.accountants import events
from dpcal.calibrate import Constants, Query
from dpcal.calibrate.defaults import SCALE_SHARE, Defaults, full_steps
from dpcal.calibrate.plans.common import repeated
from dpcal.estimators.base import (
    Table,
    bounded,
    labels_query,
    single_release,
    sum_query,
)
from dpcal.estimators.bounds import fit_learning_bounds
from dpcal.estimators.linear import LinearModel, scale_query
from dpcal.estimators.scores import PrivateAccuracy
from dpcal.estimators.sealed import RELEASES, descend_sealed
from dpcal.optim import Logistic, Softmax
from dpcal.optim.objectives.domains import blanked, classes_and_weights, codes, finite_rows
from dpcal.optim.objectives.placed import by_row, objective_of

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

    def _cost(self, epsilon: float, delta: float) -> events.DpEvent:
        if self._public_classes() is None or self._learns_bounds():
            return super()._cost(epsilon, delta)
        (multiplier,) = single_release(epsilon, delta, [1.0])
        return events.GaussianDpEvent(multiplier)

    @np.errstate(all="ignore")
    def fit(self, X: ArrayLike, y: ArrayLike, groups: Any = None) -> Self:
        """Learn from records of shape (n, n_features), labels and persons of shape (n,)."""
        classes = self._public_classes()
        rows, labels = self._within_persons(groups, *self._read_both(X, y))
        if classes is not None:
            rows = _of_classes(rows, labels, classes)
        if self._learns_bounds():
            fit_learning_bounds(self, rows, labels)
            return self
        return self._learn(rows, labels, classes, first=True)

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

    def _largest_weight(self, classes: NDArray[Any] | None) -> float:
        """Return the largest weight of a class; refuse weights that are not of these classes."""
        if self.class_weight is None or classes is None:
            return 1.0
        try:
            _, weights = classes_and_weights(classes, classes, self.class_weight, from_data=False)
        except (ValueError, TypeError, AttributeError):
            raise ValueError(
                f"class_weight must be a finite number > 0 for each of the classes "
                f"{classes.tolist()}, got {self.class_weight!r}."
            ) from None
        return 1.0 if weights is None else float(weights.max())

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
        rows, labels = self._read_both(X, y, reset=first)
        if first:
            own = self._public_classes()
            declared = own if classes is None or self.classes is not None else classes
            if declared is None:
                raise ValueError(
                    "classes must be given in the first call of partial_fit, got None."
                )
        else:
            declared = self.classes_
        rows = _of_classes(rows, labels, declared)
        return self._learn(rows, labels, declared, first=first)

    def _learn(self, X: Table, y: NDArray[Any], declared: Any, *, first: bool) -> Self:
        (n, d), (epsilon, delta) = X.shape, self._target()
        classes = None if declared is None else _declared(declared)
        rows, norm = self._rows(X)
        if _validate.choice(RELEASES, release=self.release) == "last":
            return self._learn_sealed(rows, y, classes, norm, first=first)
        if classes is None:
            asked, multiplier, _ = labels_query(epsilon, delta)
        else:
            (multiplier,) = self._multipliers([1.0])
        steps = self.steps
        if steps is None:
            # The number of classes is not known before it is released.
            several = 1 if classes is None or len(classes) == 2 else len(classes)
            loss, width = ("logistic" if several == 1 else "softmax"), several * rows.shape[1]
            steps = full_steps(loss, n=n, dimension=width, release=multiplier)
        steps = _validate.count(steps=steps)
        queries = [] if classes is not None else [asked]
        scaled = self.max_norm is None or self.learning_rate is None
        if scaled:
            queries.append(scale_query(multiplier))
        share = 1 - SCALE_SHARE if scaled else 1.0
        gradient = sum_query("gradient", 1.0, repeated(multiplier / math.sqrt(share), steps), steps)
        queries.append(gradient)
        self._check_settings(classes)  # before anything is spent
        plan = self._plan(n, *queries)
        with self._paid(plan):
            ledgers = []
            if classes is None:
                classes, ledger = self._learned_labels(plan, y, by_row(finite_rows, X))
                ledgers.append(ledger)
            if len(classes) >= 2:
                rows = _of_labels(rows, y, classes)
                if scaled:
                    typical, ledger = self._typical_norm(plan, rows, norm, multiplier)
                    ledgers.append(ledger)
                told = (typical if scaled else norm, norm, multiplier)
                result = self._descend(rows, y, classes, told, gradient, first=first)
                ledgers.append(result.ledger)
                queries[-1] = result.plan.query("gradient")
        self._close(
            self._plan(n, *queries, steps=steps),
            ledgers,
            result.w if len(classes) >= 2 else np.zeros(d),
            first=first,
            complete=len(classes) >= 2 and result.complete,
        )
        if len(classes) < 2:
            raise ValueError(
                f"There must be two classes or more, and noisy counts told of {len(classes)}: "
                f"labels that fewer than about {asked.threshold:.0f} records carry are not "
                "released. Declare classes, or give more records or epsilon."
            )
        self._keep(result.w, classes, d)
        self.n_iter_ = steps
        return self

    def _learn_sealed(
        self, rows: Table, y: NDArray[Any], classes: Any, norm: float, *, first: bool
    ) -> Self:
        """Descend, and keep the last iterate; no other leaves."""
        if classes is None or len(classes) != 2:
            raise ValueError(
                "release='last' needs two declared classes: clipped gradients of more are not "
                f"those of a convex loss. Got {classes if classes is None else classes.tolist()}."
            )
        self._check_settings(classes)
        weight, (n, d) = self._largest_weight(classes), rows.shape
        (release,) = self._multipliers([1.0])
        tuned = Defaults.of(
            "logistic", n=n, dimension=d, row_norm=norm, release=release, batch_size=n
        )
        constants = Constants(
            lipschitz=weight * tuned.max_norm if self.max_norm is None else self.max_norm,
            smoothness=weight * norm**2 / 4,
            strong_convexity=self.l2,
            gap=weight * math.log(2),
        )
        result = descend_sealed(
            self,
            self._objective(rows, y, classes),
            constants,
            steps=self.steps,
            learning_rate=self.learning_rate,
            initial=None if first else np.ravel(self._weights),
        )
        self._keep(result.w, classes, d - self.fit_intercept)
        self.n_iter_ = int(result.trace.step[-1])
        return self

    def _check_settings(self, classes: NDArray[Any] | None) -> None:
        """Refuse settings that are out of range."""
        self._largest_weight(classes)
        _validate.non_negative(l2=self.l2)
        if self.max_norm is not None:
            _validate.positive(max_norm=self.max_norm)
        if self.learning_rate is not None:
            _validate.positive(learning_rate=self.learning_rate)

    def _descend(
        self,
        rows: Table,
        y: NDArray[Any],
        classes: NDArray[Any],
        told: tuple[float, float, float],
        gradient: Query,
        *,
        first: bool,
    ) -> Any:
        """Descend from what is told: the typical norm, its bound, and the noise of one release."""
        several, (row_norm, bound, release), (n, d) = len(classes) > 2, told, rows.shape
        tuned = Defaults.of(
            "softmax" if several else "logistic",
            n=n,
            dimension=d * (len(classes) if several else 1),
            row_norm=row_norm,
            release=release,
            steps=gradient.count,
            batch_size=n,
            bound=bound,
        )
        # Gradients of a class of weight w are w times as long, and curve as much more.
        weight = self._largest_weight(classes)
        clip = weight * tuned.max_norm if self.max_norm is None else self.max_norm
        step = self.learning_rate
        if step is None:
            noise, l2 = gradient.noise_multiplier, self.l2 / weight
            step = tuned.learning_rate(noise, clip / weight, l2=l2) / weight
        query = sum_query("gradient", clip, gradient.noise_multiplier, gradient.count)
        start = None if first else np.ravel(self._weights)
        return self._descent(self._objective(rows, y, classes), query, step, start)

    def _objective(self, rows: Table, y: NDArray[Any], classes: NDArray[Any]) -> Any:
        """Return the objective over records that are known and of these classes; others blank."""
        # Gradients are weighted and then clipped, so a record moves the sum by the clip at most.
        given: dict[str, Any] = {
            "l2": self.l2,
            "classes": classes,
            "class_weights": self.class_weight,
        }
        return objective_of(partial(_loss_of, **given), rows, y)

    def _keep(self, w: Table, classes: NDArray[Any], d: int) -> None:
        self.classes_ = classes
        count = len(classes) if len(classes) > 2 else 1
        self._weights = w.reshape(count, -1).copy()
        coefficients, intercepts = self._weights[:, :d].copy(), np.zeros(count)
        if self.fit_intercept:
            intercepts = self._weights[:, d].copy()
        if self.bounds is not None:
            low, high = bounded("bounds", self._limits(), d)
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


def _of_classes(rows: Table, labels: NDArray[Any], classes: Any) -> Table:
    """Return records, all NaN where the label is of no declared class."""
    return _of_labels(rows, labels, _declared(classes))


def _of_labels(rows: Table, labels: NDArray[Any], classes: NDArray[Any]) -> Table:
    """Return records, all NaN where the label is none of these."""
    found: Table = by_row(partial(_blanked_others, classes=classes), rows, labels)
    return found


def _blanked_others(rows: Table, labels: NDArray[Any], *, classes: NDArray[Any]) -> Table:
    return blanked(rows, codes("y", labels, classes) >= 0, math.nan)


def _loss_of(rows: Table, y: NDArray[Any], *, classes: NDArray[Any], **given: Any) -> Any:
    """Return the loss of records that are known and of these classes; others are blank."""
    code = codes("y", y, classes)
    known = finite_rows(rows) & (code >= 0)
    # A blank record's gradient is zero, whatever its label is.
    rows, labels = blanked(rows, known), classes[np.where(known, code, 0)]
    loss = Softmax if len(classes) > 2 else Logistic
    return loss(rows, labels, fit_intercept=False, classes=classes, **given)


def _declared(classes: Any) -> NDArray[Any]:
    """Return declared classes in sort order."""
    found = np.unique(np.asarray(classes))
    if len(found) < 2:
        raise ValueError(f"classes must be two or more different labels, got {classes!r}.")
    return found
