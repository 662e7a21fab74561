"""Which interval do draws of both directions give? Delta at an epsilon, and epsilon at a delta.

>>> from dpcal.accountants.correlated.question import Options, Question
>>> from dpcal.accountants.samplers import Poisson
>>> from dpcal.accountants.matrix import LambdaCGD
>>> options = Options(seed=0, draws=8192, failure_probability=1e-5)
>>> question = Question.of(LambdaCGD(50, 0.5), Poisson(0.02), 2.0, options)
>>> evidence = collected(question, Goal(delta=1e-3))
>>> level = evidence.epsilon(1e-3).upper
>>> bool(abs(evidence.at(level).upper / 1e-3 - 1) < 1e-6)
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from dpcal.accountants.correlated.bounds.base import Bound, Least, least_epsilon
from dpcal.accountants.correlated.bounds.convexity import ConvexTail
from dpcal.accountants.correlated.bounds.proved import Nothing
from dpcal.accountants.correlated.choice import Goal, adding, only_plain, removing
from dpcal.accountants.correlated.draws.confidence import draws_needed
from dpcal.accountants.correlated.draws.estimators import Direct, Estimator
from dpcal.accountants.correlated.draws.montecarlo import Sample
from dpcal.accountants.correlated.question import Question
from dpcal.errors import DrawsCannotTell

__all__ = ["Evidence", "Reading", "collected", "expected_epsilon"]

# With fewer effective draws than this the error is a seventh or more, and the normal interval is
# unreliable.
_LEAST_EFFECTIVE = 50.0
# Plain draws for the tail of adding a record: the band around their law is then 0.06 wide at a
# failure probability of 1e-12. More draws take more time than they save: that direction needs an
# epsilon far below that of removing, and its bound may be loose.
_PLAIN_DRAWS = 4096
# If one draw has a larger share of the mean, rarer and larger terms were probably missed.
_LARGEST_SHARE = 0.02


class Reading(NamedTuple):
    """Lower end, estimate and upper end of a delta or an epsilon."""

    lower: float
    estimate: float
    upper: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """Draws for removing a record, and draws or a bound for adding one.

    Attributes
    ----------
    removing
        The draws for removing a record.
    adding
        Draws for adding a record; None if the bound is enough, or draws are too few.
    bound
        The bound on adding a record.
    failure_probability
        Probability that the draws of both directions give a wrong upper end.
    proved
        Whether confidence bounds hold at every number of draws. The failure probability is then a
        part of every delta.
    """

    removing: Sample
    adding: Sample | None
    bound: Bound
    failure_probability: float
    proved: bool

    @property
    def draws(self) -> int:
        """Number of draws for each direction."""
        return self.removing.draws

    @property
    def name(self) -> str:
        """Names of the estimators."""
        other = "" if self.adding is None else f" and {type(self.adding.estimator).__name__}"
        return type(self.removing.estimator).__name__ + other

    @property
    def reserved(self) -> float:
        """The part of every delta that is the failure probability."""
        return self.failure_probability if self.proved else 0.0

    @property
    def one_sided(self) -> bool:
        """Whether the likelihoods are bounds or estimates that can only raise delta."""
        setting = getattr(self.removing.estimator, "setting", None)
        return setting is not None and not setting.engine.exact

    def at(self, epsilon: float) -> Reading:
        """Return the delta at an epsilon >= 0, of the worse direction."""
        each = 0.5 * self.failure_probability
        remove = self.removing.at(epsilon, failure_probability=each)
        lower, estimate, upper = remove.lower, remove.mean, remove.upper
        settled = self.bound.delta(epsilon)
        if self.adding is None:
            upper = max(upper, settled)
        else:
            # The other half of this direction's part may belong to its bound.
            add = self.adding.at(epsilon, failure_probability=0.5 * each)
            lower, estimate = max(lower, add.lower), max(estimate, min(add.mean, settled))
            upper = max(upper, min(add.upper, settled))
        upper += self.reserved
        lower = 0.0 if self.one_sided else lower
        return Reading(min(lower, upper), min(estimate, upper), min(upper, 1.0))

    def epsilon(self, delta: float) -> Reading:
        """Return the epsilon at a delta in (0, 1), of the worse direction."""

        def least(part: Callable[[Reading], float]) -> float:
            return least_epsilon(lambda e: part(self.at(e)), delta)

        upper = self._beyond(least(lambda reading: reading.upper), delta)
        lower = 0.0 if self.one_sided else least(lambda reading: reading.lower)
        return Reading(min(lower, upper), least(lambda reading: reading.estimate), upper)

    def reading(self, goal: Goal) -> Reading:
        """Return the epsilon at the goal's delta, or the delta at its epsilon."""
        return self.at(goal.epsilon or 0.0) if goal.delta is None else self.epsilon(goal.delta)

    def _beyond(self, epsilon: float, delta: float) -> float:
        """Return an epsilon above which no upper end exceeds delta.

        Bounds fall within a cell of bets, but may rise from one cell to the next. The probability
        that they are wrong is that of one epsilon, the true one, only if no bound above the answer
        exceeds delta.
        """
        left = delta - self.reserved
        each = 0.5 * self.failure_probability
        parts = [(self.removing, each)]
        if self.adding is not None and self.bound.delta(epsilon) > left:
            parts.append((self.adding, 0.5 * each))
        for sample, failure in parts:
            for start, end in sample.cells_above(epsilon):
                if not sample.below(start, left, failure_probability=failure):
                    epsilon = end
        return epsilon


def collected(question: Question, goal: Goal) -> Evidence:
    """Return draws for both directions, as far as the goal needs draws.

    Raises
    ------
    DrawsCannotTell
        If these draws prove no bound or the mean depends on too few of them, with the reason.
    ValueError
        If the failure probability is not a part of the given delta.
    """
    sample, failure, proved = _drawn_removing(question, goal, question.options.draws)
    sample = sample.betting(0.5 * failure)
    alone = Evidence(sample, None, Nothing(0.0), failure, proved)
    level = alone.epsilon(goal.delta).upper if goal.delta is not None else goal.epsilon or 0.0
    if math.isinf(level):
        raise DrawsCannotTell(
            f"draws={sample.draws} of removing a record bound delta={goal.delta:g} at no epsilon; "
            "choose more draws."
        )
    _require_trust(sample, goal.level_of(sample))
    most = alone.at(level).upper if goal.delta is None else goal.delta

    def enough(bound: Bound) -> bool:
        return bound.delta(level) + alone.reserved <= most

    bound, drawn = question.proved_adding, None
    if not enough(bound):
        if proved and (tail := _convex_tail(question, failure)) is not None:
            bound = Least((bound, tail))
        if not enough(bound):
            other = adding(question, goal, level, proved=proved)
            drawn = _drawn_adding(question, other, goal)
    return Evidence(sample, drawn, bound, failure, proved)


def expected_epsilon(question: Question, delta: float, draws: int) -> float:
    """Return an estimate of the epsilon that ``draws`` draws will prove, from fewer draws.

    Parameters
    ----------
    question
        The run, with the few draws.
    delta
        The target in (0, 1), without the part that is reserved for other confirmations.
    draws
        Number of the later draws.

    Raises
    ------
    DrawsCannotTell
        If draws prove no bound, or a mean depends on too few of them.
    """
    goal = Goal(delta=delta)
    sample, failure, proved = _drawn_removing(question, goal, draws)
    _require_trust(sample, goal.level_of(sample))
    left = delta - (failure if proved else 0.0)
    found = least_epsilon(lambda e: sample.expected(e, draws, 0.5 * failure), left)
    if math.isinf(found):
        raise DrawsCannotTell(
            f"draws={draws} of removing a record would bound delta={delta:g} at no epsilon."
        )
    return found


def _drawn_removing(question: Question, goal: Goal, draws: int) -> tuple[Sample, float, bool]:
    """Return draws for removing a record, their failure probability, and whether it is proved.

    They are refused if ``draws`` of them could not answer.
    """
    _require_range(question, goal, draws)
    estimator = removing(question, goal)
    proved = estimator.largest(0.0) is not None
    failure = question.options.failure(goal.delta, proved=proved)
    if proved and goal.delta is not None:
        _require_enough(estimator, goal.delta, failure, draws)
    return question.options.simulate(estimator, 0), failure, proved


def _convex_tail(question: Question, failure: float) -> ConvexTail | None:
    """Return a bound on adding a record from plain draws, if likelihood ratios are exact."""
    if question.route == "bins":
        return None
    setting = question.setting("add")
    if not setting.engine.exact:
        return None
    options = replace(question.options, draws=_PLAIN_DRAWS)
    sample = options.simulate(Direct(setting, "add"), 2)
    return ConvexTail.of(sample.kept[0], failure_probability=0.25 * failure, slack=setting.slack)


def _drawn_adding(question: Question, estimator: Estimator, goal: Goal) -> Sample | None:
    """Return draws for adding a record; None if they are too few, so that the bound is used."""
    sample = question.options.simulate(estimator, 1)
    if estimator.largest(0.0) is not None:
        failure = question.options.failure(goal.delta, proved=True)
        sample = sample.betting(0.25 * failure)
    level = goal.level_of(sample)
    with suppress(DrawsCannotTell):
        if math.isfinite(level):
            _require_trust(sample, level)
            return sample
    return None


def _require_range(question: Question, goal: Goal, draws: int) -> None:
    """Refuse draws that cannot answer before an engine for their likelihood ratios is built."""
    if question.refusal is not None:
        raise DrawsCannotTell(f"{question.sampler.name!r} batches: {question.refusal}.")
    if goal.delta is None or not only_plain(question, goal):
        return
    failure = question.options.failure(goal.delta, proved=True)
    if failure >= goal.delta:
        return
    needed = draws_needed(goal.delta - failure, failure_probability=0.5 * failure)
    if draws < needed:
        raise DrawsCannotTell(
            f"draws={draws} cannot bound delta={goal.delta:g} with failure probability "
            f"{failure:g}: only plain draws have a finite range here, which is 1; choose draws >= "
            f"{needed}, statistics='asymptotic', or the deterministic bound."
        )


def _require_enough(estimator: Estimator, target: float, failure: float, draws: int) -> None:
    """Refuse, before drawing, a number of draws that could not reach the target."""
    largest = estimator.largest(_range_alone(estimator, target))
    if largest is None:
        return
    if failure >= target:
        raise ValueError(
            f"failure_probability must be less than delta={target!r}, of which it is a part, "
            f"got {failure!r}."
        )
    each = 0.5 * failure
    needed = draws_needed(target - failure, failure_probability=each, largest=largest)
    if draws < needed:
        reachable = -math.log(each) * largest / draws
        raise DrawsCannotTell(
            f"draws={draws} cannot bound delta={target:g} with failure probability "
            f"{failure:g}: even if no draw exceeded epsilon, the bound would be "
            f"{reachable:.2g}; choose draws >= {needed}, or statistics='asymptotic'."
        )


def _range_alone(estimator: Estimator, target: float) -> float:
    """Return the epsilon of the estimator's range alone, which is at least the answer."""
    largest = estimator.largest(0.0)
    if largest is None or estimator.largest(1.0) == largest:
        return 0.0
    return least_epsilon(lambda e: float(estimator.largest(e) or 0.0), target)


def _require_trust(sample: Sample, epsilon: float) -> None:
    """Refuse an importance sample whose mean depends on few draws."""
    if sample.estimator.largest(epsilon) is not None:
        return
    reading = sample.at(epsilon, failure_probability=0.05)
    if reading.effective_draws < _LEAST_EFFECTIVE or reading.largest_share > _LARGEST_SHARE:
        needed = sample.draws * max(
            _LEAST_EFFECTIVE / max(reading.effective_draws, 1.0),
            reading.largest_share / _LARGEST_SHARE,
        )
        raise DrawsCannotTell(
            f"draws={sample.draws} leave {reading.effective_draws:.0f} effective draws at "
            f"epsilon={epsilon:.4g}, the largest with {reading.largest_share:.0%} of the mean; "
            f"choose draws >= {math.ceil(2 * needed)}."
        )
