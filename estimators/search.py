"""How are settings chosen, privately? By a random number of trials, of which the best is released.

A grid search inside :func:`dpcal.budget` pays for every fit. Here only the best run leaves, with
its noisy score, so that fifty trials cost less than twice a single one. Nothing else may leave: the
number of trials, the other runs and their scores are neither kept nor told.

>>> import numpy as np
>>> from dpcal.estimators import LogisticRegression
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((4_000, 3))
>>> y = X[:, 0] + X[:, 1] > 0
>>> one = LogisticRegression(classes=[False, True])
>>> grid = {"steps": [20, 60], "learning_rate": [0.1, 1.0, 3.0]}
>>> search = PrivateSearch(one, grid, epsilon=1.0).fit(X, y)
>>> bool(search.score(X, y) > 0.9), sorted(search.best_params_)
(True, ['learning_rate', 'steps'])
>>> print(f"{search.epsilon_spent_:.4f} for the best of {search.ledger_.mean:.0f} trials")
1.0000 for the best of 6 trials
>>> print(f"{search.best_estimator_.epsilon:.2f} would be the epsilon of one fit")
0.74 would be the epsilon of one fit
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dpcal import _validate
from dpcal.accountants import Epsilon, epsilon as epsilon_of, events
from dpcal.accountants.mechanisms.leaves import leaves
from dpcal.calibrate import noise_multiplier
from dpcal.calibrate.selection import number_of_runs
from dpcal.errors import TargetUnreachable, UnsupportedEvent
from dpcal.estimators.base import (
    RELATION,
    PrivateEstimator,
    blank_targets,
    numbers_in,
    one_for_each,
    single_release,
)
from dpcal.estimators.callers import refuse_unpaid_fit
from dpcal.estimators.split import private_steps
from dpcal.optim.boundary.seeds import keyed_generator
from dpcal.optim.budget import Budget, collected, in_use, prepaid, scoring

__all__ = ["PrivateSearch", "SearchLedger"]

# Relative difference of two noise levels that count as equal.
_EQUAL = 1e-9


@dataclass(frozen=True)
class SearchLedger:
    """The ledger of a search, which released the best of a random number of runs.

    Attributes
    ----------
    trial
        One trial, its fit and its score, as an event. No candidate's trial costs more.
    mean, shape
        The law of the number of trials (:func:`dpcal.calibrate.tuning`).
    """

    trial: events.DpEvent
    mean: float
    shape: float

    @property
    def event(self) -> events.DpEvent:
        """The whole search, as an event."""
        return events.RepeatAndSelectDpEvent(self.trial, self.mean, self.shape)

    def epsilon(self, delta: float) -> Epsilon:
        """Return the epsilon of the search at a delta in (0, 1), rounded up."""
        return epsilon_of(self.event, delta=delta, neighboring_relation=RELATION)


def _has(name: str) -> Any:
    return available_if(
        lambda self: hasattr(getattr(self, "best_estimator_", self.estimator), name)
    )


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateSearch(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Choose settings of a private estimator by private selection.

    The number of trials is random. Each trial draws a candidate at random, fits it on one part of
    the records, and scores it, with noise, on the rest. The best trial is released.

    Parameters
    ----------
    estimator
        A private classifier or regressor, or a pipeline that ends in one. Its epsilon is that of
        one fit, unless ``epsilon`` is given.
    param_grid
        A mapping from names of settings to lists of values, or a list of such mappings, as
        scikit-learn's ``GridSearchCV`` takes it. All candidates must cost the same noise; do not
        put ``epsilon`` into the grid.
    epsilon
        Total > 0 of the whole search, at ``delta``: the epsilons of all private steps are then
        multiplied by one factor, the largest with which all trials together cost no more. When
        omitted, steps have their own, and the search costs what it costs.
    trials
        Mean number of trials >= 1; when omitted, that of candidates.
    shape
        Law of the number of trials: eta >= 0 of a truncated
        negative binomial law, or infinity for Poisson's, which may run no trial at all.
    score_share
        In (0, 1]: which share of its epsilon a trial's score costs, on top of the fit.
    scoring
        What a trial is scored by instead, a function of a model, records and targets that pays at
        its own price, whatever ``epsilon`` is: :func:`dpcal.estimators.noisy_accuracy` or
        :func:`dpcal.estimators.noisy_r2`.
    validation_fraction
        In (0, 1): which part of the records scores are about. It is drawn without a look at them.
    delta
        At which ``epsilon_spent_`` is told, in (0, 1).
    budget
        A :func:`dpcal.budget` that the search is paid from, besides those in use; None for none.

    Attributes
    ----------
    best_estimator_, best_params_, best_score_
        The best trial: its model, its candidate, its noisy score.
    ledger_
        A :class:`SearchLedger`.
    epsilon_spent_
        Epsilon of the search at ``delta``; ``best_estimator_`` tells the same one.

    Raises
    ------
    UnsupportedEvent
        By ``fit``, if candidates cost different noise.
    TargetUnreachable
        By ``fit``, if no factor meets ``epsilon``.
    BudgetExceeded
        By ``fit``, if a budget does not cover the search; no record was read.
    ValueError
        By ``fit``, if no trial could be fitted. One that could not be is the worst of its search,
        and nothing is told of it.

    References
    ----------
    Papernot and Steinke 2022, Hyperparameter tuning with Renyi differential privacy, Algorithm 1.
    """

    # A seed is for tests and studies alone, as in the other estimators.
    _seed = cast("int | None", None)

    estimator: Any = field(kw_only=False)
    param_grid: Any = field(kw_only=False)
    epsilon: float | None = None
    trials: float | None = None
    shape: float = 0.0
    score_share: float = 0.2
    scoring: Callable[..., float] | None = None
    validation_fraction: float = 0.25
    delta: float = 1e-6
    budget: Budget | None = None

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Search on records of shape (n, n_features) and targets of shape (n,)."""
        candidates = list(ParameterGrid(self.param_grid))
        mean = float(len(candidates) if self.trials is None else self.trials)
        delta = _validate.probability(delta=self.delta)
        share = _validate.rate(score_share=self.score_share)
        rows = numbers_in(X, least=4, estimator=self)
        targets = one_for_each(rows, y, estimator=self)
        for step in private_steps(self.estimator).values():
            if step.budget is not None:
                raise ValueError("Give budget to the search, and not to what it tries.")
        refuse_unpaid_fit(PrivateEstimator, pays=bool(in_use()) or self.budget is not None)
        parts = self._parts(len(rows))
        records = rows, targets, parts
        scored = self._scored(self._candidate(candidates[0], 1.0), *records)
        factor = self._factor(candidates[0], mean, delta, share, scored)
        tried = [self._candidate(each, factor) for each in candidates]
        planned = [self._planned(each, rows, targets, parts) for each in tried]
        ledger = SearchLedger(_one_for_all(planned), mean, float(self.shape))
        runs = number_of_runs(mean, ledger.shape, self._rng())
        epsilon = ledger.epsilon(delta)
        with prepaid(ledger.event, RELATION, self.budget, label="PrivateSearch"):
            best = self._best_of(runs, tried, planned, records, share)
        if best is None:
            raise ValueError(
                "The number of trials was 0, as a Poisson number may be: nothing was released. Fit "
                "again, which costs the same again, or choose a finite shape."
            )
        score, place, outcome = best
        if isinstance(outcome, Exception):
            raise outcome
        self.best_score_, self.best_estimator_ = score, outcome
        self.best_params_ = candidates[place]
        self.ledger_, self.epsilon_spent_ = ledger, epsilon
        for step in private_steps(self.best_estimator_, fitted=True).values():
            # The claim of its own fit does not hold for a run that was chosen.
            step.__dict__.update(ledger_=ledger, epsilon_spent_=epsilon, _released=[ledger])
            step.__dict__.pop("report_", None)
        return self

    def _rng(self) -> np.random.Generator:
        # The number of trials and the candidates of those that lose must stay hidden.
        return keyed_generator() if self._seed is None else np.random.default_rng(self._seed)

    def _parts(self, n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        fraction = _validate.probability(validation_fraction=self.validation_fraction)
        held = min(max(round(n * fraction), 1), n - 1)
        order = self._rng().permutation(n)
        return order[held:], order[:held]

    def _factor(
        self,
        candidate: dict[str, Any],
        mean: float,
        delta: float,
        share: float,
        scored: list[events.DpEvent],
    ) -> float:
        """Return the factor of all steps' epsilons at which the search costs its total.

        What a fit costs is known from its target alone, and so is what its score costs.
        """
        if self.epsilon is None:
            return 1.0
        # A little less, for the rounding of noise multipliers.
        total = _validate.positive(epsilon=self.epsilon) * (1 - 1e-9)

        def search(noise: float) -> events.DpEvent:
            steps = list(private_steps(self._candidate(candidate, 1 / noise)).values())
            parts = [step._cost(*step._target()) for step in steps]
            epsilon, least = steps[-1]._target()
            own = events.GaussianDpEvent(*single_release(share * epsilon, least, [1.0]))
            parts += scored or [own]
            return SearchLedger(events.ComposedDpEvent(parts), mean, float(self.shape)).event

        try:
            found = noise_multiplier(
                search, epsilon=total, delta=delta, neighboring_relation=RELATION
            )
        except TargetUnreachable as error:
            raise TargetUnreachable(
                f"epsilon={self.epsilon!r} cannot be met at delta={delta:g} by {mean:g} trials: "
                "declare classes and bounds, so that all noise is Gaussian, or choose another."
            ) from error
        return 1 / found

    def _candidate(self, candidate: dict[str, Any], factor: float) -> Any:
        """The model of a candidate, with the epsilons of its private steps times a factor."""
        model = clone(self.estimator).set_params(**clone(candidate, safe=False))
        steps = private_steps(model)
        if not steps:
            raise ValueError("estimator must be private in every candidate, got one that is not.")
        for step in steps.values():
            step.set_params(epsilon=step.epsilon * factor)
        return model

    def _planned(self, model: Any, X: Any, y: Any, parts: Any) -> events.DpEvent:
        """Return the event of a candidate's trial, from a trial on as many blank records."""
        blank = blank_targets([*private_steps(model).values()][-1], y)
        with collected() as found, scoring(self.score_share), _quiet():
            _trial(model, np.zeros(X.shape), blank, parts, scoring=self.scoring)
        return events.ComposedDpEvent(found)

    def _scored(self, model: Any, X: Any, y: Any, parts: Any) -> list[events.DpEvent]:
        """Return the events of ``scoring``, from a score of blank records; none if it is None."""
        if self.scoring is None:
            return []
        blank, (fitted, held) = blank_targets([*private_steps(model).values()][-1], y), parts
        with collected() as found, _quiet():
            model.fit(np.zeros((len(fitted), X.shape[1])), blank[fitted])
            found.clear()
            self.scoring(model, np.zeros((len(held), X.shape[1])), blank[held])
        if not found:
            raise ValueError(
                "scoring must pay for what it tells, as dpcal.estimators.noisy_accuracy does, got "
                f"{self.scoring!r}."
            )
        return found

    def _best_of(
        self, runs: int, tried: Any, planned: Any, records: Any, share: float
    ) -> tuple[float, int, Any] | None:
        rng, best = self._rng(), None
        for _ in range(runs):
            chosen = int(rng.integers(len(tried)))
            try:
                with collected() as found, scoring(share), _quiet():
                    score, outcome = _trial(tried[chosen], *records, scoring=self.scoring)
            except Exception as error:
                # Raised now, or warned of, it would tell of a trial that may not be the best.
                score, outcome = -math.inf, error
            score = -math.inf if math.isnan(score) else score
            told = not isinstance(outcome, Exception)
            if told and events.ComposedDpEvent(found) != planned[chosen]:
                raise UnsupportedEvent(
                    "A trial released other than its candidate does on blank records: its plan "
                    "depends on the records, and so would the price of the search. Nothing leaves."
                )
            if best is None or score > best[0]:
                best = score, chosen, outcome
        return best

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.non_deterministic = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    @property
    def classes_(self) -> NDArray[Any]:
        """Class labels of the best estimator."""
        check_is_fitted(self)
        found: NDArray[Any] = self.best_estimator_.classes_
        return found

    @_has("predict")  # type: ignore[untyped-decorator]
    def predict(self, X: ArrayLike) -> Any:
        """Predict by the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> Any:
        """Return probabilities of classes by the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    @_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: ArrayLike) -> Any:
        """Return scores of classes by the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X)

    @_has("score")  # type: ignore[untyped-decorator]
    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return the best estimator's score; noisy, and paid, while a budget is in use."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y))


def _trial(candidate: Any, X: Any, y: Any, parts: Any, *, scoring: Any) -> tuple[float, Any]:
    """Fit a copy of a candidate on one part of the records, and score it on the other."""
    fitted, held = parts
    model = clone(candidate)
    model.fit(X[fitted], y[fitted])
    of_model = model.score if scoring is None else partial(scoring, model)
    return float(of_model(X[held], y[held])), model


def _quiet() -> AbstractContextManager[Any]:
    """Return a context without warnings: those of a hidden trial would tell of it."""
    return warnings.catch_warnings(action="ignore")


def _one_for_all(planned: list[events.DpEvent]) -> events.DpEvent:
    """An event that costs as much as each of these, which must cost the same."""
    levels = [_precision(event) for event in planned]
    known = [level for level in levels if level is not None]
    if len(known) == len(planned):
        if max(known) > min(known) * (1 + _EQUAL):
            raise UnsupportedEvent(
                "Candidates must cost the same noise: keep epsilon, delta and classes out of the "
                f"grid. Here they cost as much as Gaussian noise of {max(known) ** -0.5:.4g} to "
                f"{min(known) ** -0.5:.4g}."
            )
        return events.GaussianDpEvent(max(known) ** -0.5 * (1 - 1e-14))
    if all(leaves(event) == leaves(planned[0]) for event in planned[1:]):
        return planned[0]
    raise UnsupportedEvent(
        "Candidates must cost the same: all by Gaussian noise of one level, or all by one event."
    )


def _precision(event: events.DpEvent) -> float | None:
    """The sum of 1 / sigma^2, if all is Gaussian noise about all records."""
    total = []
    for leaf, times in leaves(event).items():
        if not isinstance(leaf, events.GaussianDpEvent):
            return None
        total.append(times / leaf.noise_multiplier**2)
    return math.fsum(total)
