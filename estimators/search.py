"""How are settings chosen, privately? A random number of trials, and the best of them is released.

A grid search inside :func:`dpcal.budget` pays for every fit. Here only the best run leaves, with
its noisy score, so that fifty trials cost less than twice a single one. The number of trials, the
other runs and their scores are neither kept nor shown.

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
from joblib import effective_n_jobs  # type: ignore[import-untyped]
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_is_fitted

from dpcal._internal import validate
from dpcal.accountants import Epsilon, epsilon as epsilon_of, events
from dpcal.accountants.mechanisms.decompose import leaves
from dpcal.accountants.selection import number_of_runs
from dpcal.calibrate import noise_multiplier
from dpcal.errors import TargetUnreachable, UnsupportedEvent
from dpcal.estimators.parts import private_steps, refuse_mixing, refuse_unasked
from dpcal.estimators.queries import RELATION, single_release
from dpcal.estimators.reading import numbers_in, one_for_each
from dpcal.optim.account import Charge
from dpcal.optim.boundary.seeds import keyed_generator
from dpcal.optim.budget import _collected, prepaid, scoring

_UNPAID = (
    "scoring must pay for what it tells, as dpcal.estimators.noisy_accuracy, noisy_roc_auc and "
    "noisy_r2 do, got {!r}."
)

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


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateSearch(BaseSearchCV):  # type: ignore[misc]
    """Choose settings of a private estimator by private selection.

    The number of trials is random. Each trial draws a candidate at random, fits it on one part of
    the records, and scores it, with noise, on the rest. The best trial is released.

    Parameters
    ----------
    estimator
        A private classifier or regressor, or a pipeline that ends in one. Its epsilon is the
        epsilon of one fit, unless ``epsilon`` is given.
    param_grid
        A mapping from names of settings to lists of values, or a list of such mappings, as
        scikit-learn's ``GridSearchCV`` takes it. All candidates must cost the same noise; do not
        put ``epsilon`` into the grid.
    epsilon
        Total > 0 of the whole search, at ``delta``: the epsilons of all private steps are then
        multiplied by one factor, the largest with which all trials together cost no more. When
        omitted, steps have their own, and the search costs as much as it needs.
    trials
        Mean number of trials >= 1; when omitted, the number of candidates.
    shape
        Law of the number of trials: eta >= 0 of a truncated
        negative binomial law, or infinity for Poisson's, which may run no trial at all.
    score_share
        In (0, 1]: which share of its epsilon a trial's score costs, on top of the fit.
    scoring
        Another score of a trial, a function of a model, records and targets that pays with its own
        budget, whatever ``epsilon`` is: :func:`dpcal.estimators.noisy_accuracy`,
        :func:`dpcal.estimators.noisy_roc_auc` or :func:`dpcal.estimators.noisy_r2`.
    validation_fraction
        In (0, 1): which part of the records scores are about. It is drawn without a look at them.
    n_jobs
        How many trials are run at once, as joblib takes it, in threads. The search is charged
        before any of them starts.
    delta
        The delta of ``epsilon_spent_``, in (0, 1).

    Attributes
    ----------
    best_estimator_, best_params_, best_score_
        The best trial: its model, its candidate, its noisy score.
    ledger_
        A :class:`SearchLedger`.
    epsilon_spent_
        Epsilon of the search at ``delta``; ``best_estimator_`` states the same one.

    Raises
    ------
    UnsupportedEvent
        By ``fit``, if candidates cost different noise.
    TargetUnreachable
        By ``fit``, if no factor meets ``epsilon``.
    BudgetExceeded
        By ``fit``, if a budget does not cover the search; no record was read.
    ValueError
        By ``fit``, if no trial could be fitted. A trial that failed is the worst of its search, and
        the failure stays secret.

    References
    ----------
    Papernot and Steinke 2022, Hyperparameter tuning with Renyi differential privacy, Algorithm 1.
    """

    _seed = cast("int | None", None)
    # The best trial is a model with the same methods.
    refit = True

    estimator: Any = field(kw_only=False)
    param_grid: Any = field(kw_only=False)
    epsilon: float | None = None
    trials: float | None = None
    shape: float = 0.0
    score_share: float = 0.2
    scoring: Callable[..., float] | None = None
    validation_fraction: float = 0.25
    n_jobs: int | None = None
    delta: float = 1e-6

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Search on records of shape (n, n_features) and targets of shape (n,).

        A data frame goes to the candidates as one, whatever its columns hold.
        """
        candidates = list(ParameterGrid(self.param_grid))
        mean = validate.positive(trials=len(candidates) if self.trials is None else self.trials)
        delta = validate.probability(delta=self.delta)
        if self.shape != math.inf:
            validate.non_negative(shape=self.shape)
        share = validate.rate(score_share=self.score_share)
        validate.count(n_jobs=effective_n_jobs(self.n_jobs))
        if self.scoring is not None and not callable(self.scoring):
            raise ValueError(_UNPAID.format(self.scoring))
        if hasattr(X, "__dask_graph__"):
            raise TypeError(
                "X must be in memory for a search, whose trials take some of the records, got a "
                f"Dask collection ({type(X).__name__})."
            )
        rows: Any = (
            X if hasattr(X, "columns") else numbers_in(X, least=4, estimator=type(self).__name__)
        )
        if _num_samples(rows) < 4:
            raise ValueError(f"X must have 4 records or more, got {_num_samples(rows)}.")
        targets = one_for_each(rows, y, estimator=type(self).__name__)
        refuse_unasked()
        refuse_mixing(self.estimator, rows, targets)
        parts = self._parts(_num_samples(rows))
        records = rows, targets, parts
        scored = self.scoring and self._events(self._candidate(candidates[0], 1.0), *records)[1]
        factor = self._factor(candidates[0], mean, delta, share, scored)
        tried = [self._candidate(each, factor) for each in candidates]
        events_of = (self._events(each, *records) for each in tried)
        planned = [events.ComposedDpEvent([*fit, *score]) for fit, score in events_of]
        ledger = SearchLedger(_one_for_all(planned), mean, float(self.shape))
        runs = number_of_runs(mean, ledger.shape, self._rng())
        epsilon = ledger.epsilon(delta)
        charge = Charge(
            optimizer="PrivateSearch",
            event=ledger.event,
            delta=delta,
            neighboring_relation=RELATION,
        )
        with prepaid(charge, at_once=True):
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
        return self

    def _rng(self) -> np.random.Generator:
        # The number of trials and the losing candidates must stay hidden.
        return keyed_generator() if self._seed is None else np.random.default_rng(self._seed)

    def _parts(self, n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        fraction = validate.probability(validation_fraction=self.validation_fraction)
        held = min(max(round(n * fraction), 1), n - 1)
        order = self._rng().permutation(n)
        return order[held:], order[:held]

    def _factor(
        self,
        candidate: dict[str, Any],
        mean: float,
        delta: float,
        share: float,
        scored: Any,
    ) -> float:
        """Return the factor of all steps' epsilons at which the search costs its total.

        The costs of a fit and of its score are known from the targets.
        """
        if self.epsilon is None:
            return 1.0
        # A little less, for the rounding of noise multipliers.
        total = validate.positive(epsilon=self.epsilon) * (1 - 1e-9)

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

    def _events(self, model: Any, X: Any, y: Any, parts: Any) -> tuple[list[Any], list[Any]]:
        """Return the events of a trial's fit and of its score, from one on zero records."""
        blank, (fitted, held) = [*private_steps(model).values()][-1]._blank_targets(y), parts
        with _collected() as found, scoring(self.score_share), _quiet():
            made = clone(model).fit(_made_up(X, len(fitted)), blank[fitted])
            of_fit = found[:]
            _score(made, _made_up(X, len(held)), blank[held], self.scoring)
        if len(found) == len(of_fit):
            raise ValueError(_UNPAID.format(self.scoring))
        return of_fit, found[len(of_fit) :]

    def _best_of(
        self, runs: int, tried: Any, planned: Any, records: Any, share: float
    ) -> tuple[float, int, Any] | None:
        rng, best = self._rng(), None
        chosen = [int(rng.integers(len(tried))) for _ in range(runs)]
        asked = (delayed(_hidden)(tried[i], records, self.scoring, share) for i in chosen)
        with _quiet():
            trials = Parallel(n_jobs=self.n_jobs, require="sharedmem")(asked)
        for place, (score, outcome, event) in zip(chosen, trials, strict=True):
            if event is not None and event != planned[place]:
                raise UnsupportedEvent(
                    "A trial released other than its candidate does on blank records: its plan "
                    "depends on the records, and so would the price of the search. Nothing leaves."
                )
            if best is None or score > best[0]:
                best = score, place, outcome
        return best

    def score(self, X: ArrayLike, y: Any = None, **params: Any) -> float:
        """Return the score of the best model; noisy, and paid, while a budget is in use."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y, **params))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags


def _score(model: Any, X: Any, y: Any, scoring: Any) -> float:
    return float((model.score if scoring is None else partial(scoring, model))(X, y))


def _hidden(candidate: Any, records: Any, scoring_by: Any, share: float) -> tuple[Any, ...]:
    """Return score, model and event of a trial, or minus infinity, an error and None."""
    try:
        with _collected() as found, scoring(share):
            X, y, (fitted, held) = records
            model = clone(candidate).fit(_safe_indexing(X, fitted), y[fitted])
            score = _score(model, _safe_indexing(X, held), y[held], scoring_by)
        return (-math.inf if math.isnan(score) else score), model, events.ComposedDpEvent(found)
    except Exception as error:
        return -math.inf, error, None


def _made_up(X: Any, n: int) -> Any:
    """Return n records of the shape and types of a table; no record of the table has a say."""
    if not hasattr(X, "columns"):
        return np.zeros((n, X.shape[1]))
    if hasattr(X, "clear"):  # polars: missing numbers become 0, and missing texts "0"
        return X.clear(n).fill_null(0).fill_null("0")
    table = type(X)(np.zeros((n, len(X.columns))), columns=list(X.columns))
    return table.astype(dict(X.dtypes)) if hasattr(X, "dtypes") else table


def _quiet() -> AbstractContextManager[Any]:
    """Return a context without warnings: warnings of a hidden trial would reveal it."""
    return warnings.catch_warnings(action="ignore")


def _one_for_all(planned: list[events.DpEvent]) -> events.DpEvent:
    """An event that costs as much as each of these, which must cost the same."""
    parts = [_precision_and_rest(event) for event in planned]
    levels, rest = [level for level, _ in parts], parts[0][1]
    if max(levels) > min(levels) * (1 + _EQUAL) or any(other != rest for _, other in parts):
        raise UnsupportedEvent(
            "Candidates must cost the same noise, and beside it the same events: keep epsilon, "
            "delta and classes out of the grid."
        )
    found: list[events.DpEvent] = [
        events.SelfComposedDpEvent(leaf, times) for leaf, times in rest.items()
    ]
    if max(levels):
        found.append(events.GaussianDpEvent(max(levels) ** -0.5 * (1 - 1e-14)))
    return found[0] if len(found) == 1 else events.ComposedDpEvent(found)


def _precision_and_rest(event: events.DpEvent) -> tuple[float, dict[Any, int]]:
    """The sum of 1 / sigma^2 of Gaussian noise about all records, and how often all other parts."""
    total, rest = [], {}
    for leaf, times in leaves(event).items():
        if isinstance(leaf, events.GaussianDpEvent):
            total.append(times / leaf.noise_multiplier**2)
        else:
            rest[leaf] = times
    return math.fsum(total), rest
