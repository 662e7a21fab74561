"""Evidence from draws: bounds on removing a record and on adding one.

1. :func:`removing`: the draws of removing a record that have the least proved range.
2. :class:`Evidence`: a proved bound on adding a record, and confidence bounds that hold at every
   number of draws. Their failure probability is part of delta.

>>> from dpcal.accountants.correlated.price import Goal, Options, Question
>>> from dpcal.accountants.matrix import LambdaCGD
>>> from dpcal.accountants.samplers import Poisson
>>> question = Question.of(LambdaCGD(50, 0.5), Poisson(0.02), 2.0, Options(seed=0))
>>> type(removing(question, Goal(delta=1e-3))).__name__
'Tilted'
>>> drawn = simulate(Direct(question.engine, direction="add"), draws=8192, seed=0, stream=1)
>>> tail = ConvexTail.of(drawn.kept, failure_probability=1e-6)
>>> 0 < tail.delta(0.1) == adding(question, 1e-6, proof=True).delta(0.1) < 1
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from dpcal.accountants.correlated.answers import WITH_CONFIDENCE
from dpcal.accountants.correlated.bounds.adding import ConvexTail
from dpcal.accountants.correlated.bounds.base import Bound, Least, least_epsilon
from dpcal.accountants.correlated.draws.estimators import Bins, Direct, Estimator, best_tilt
from dpcal.accountants.correlated.draws.montecarlo import (
    Reading,
    Sample,
    draws_enough,
    draws_needed,
    last_proved,
    simulate,
)
from dpcal.errors import DrawsCannotTell

if TYPE_CHECKING:
    from dpcal.accountants.correlated.price import Goal, Question

# The band around the law of adding a record is then 0.04 wide, at a failure probability of 1e-12.
_PLAIN_DRAWS = 8192
# A search uses one in this many of the plain draws to estimate the later proof.
_FEW = 4
# Draws prove about this part of a proved epsilon; the order of a tilt is chosen there.
_NEAR = 0.8
# Epsilon at which only plain draws keep the range that they have at 0.
_LARGEST_EPSILON = 1e7
_MOST_TUPLES = 2_000_000


def removing(question: Question, goal: Goal, draws: int = 0) -> Estimator:
    """Return the draws of removing a record that have the least proved range near the answer.

    If ``draws`` plain draws suffice, the result never bounds delta from above only.

    Raises
    ------
    DrawsCannotTell
        If draws cannot answer for this run; the message states the reason.
    """
    if question.route not in ("bins", "automaton"):
        raise DrawsCannotTell(f"{question.sampler.name!r} batches: {question.route}.")
    level = goal.epsilon if goal.delta is None else goal.near
    if level is None:
        level = _NEAR * min(goal.proof(question.proved).value, _LARGEST_EPSILON)
    if question.route == "bins":
        orders = [q for q in (1, 2, 3) if len(question.gram) ** q <= _MOST_TUPLES]
        tried: list[Estimator] = [Bins(question.gram, "remove", q) for q in orders]
    else:
        half = 0.5 * question.options.failure(goal.delta)
        enough = goal.delta is not None and draws >= draws_enough(
            goal.delta, failure_probability=half
        )
        found = best_tilt(question.engine, question.tilted, level)
        tried = [] if found is None or (found.shared and enough) else [found]
        tried.append(Direct(question.engine))
    return min(tried, key=lambda each: each.largest(level))


def adding(question: Question, failure: float, *, proof: bool) -> Bound:
    """Return the bound on adding a record from plain draws, or an estimate from fewer draws."""
    bins = question.route == "bins"
    law = Bins(question.gram, "add") if bins else Direct(question.engine, direction="add")
    drawn = _simulated(question, law, 1, _PLAIN_DRAWS // (1 if proof else _FEW))
    later = 0 if proof else _PLAIN_DRAWS
    return ConvexTail.of(drawn.kept[:2], failure_probability=failure, draws=later)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Draws for removing a record, and a bound for adding one.

    Attributes
    ----------
    removing
        The draws for removing a record.
    adding
        The bound on adding a record, which may rest on draws of its own.
    failure_probability
        Probability of a wrong upper end by the draws of both directions, a part of every delta.
    """

    removing: Sample
    adding: Bound
    failure_probability: float

    def at(self, epsilon: float) -> Reading:
        """Return the delta at an epsilon >= 0, of the worse direction."""
        failure = self.failure_probability
        found = self.removing.at(epsilon, failure_probability=0.5 * failure)
        upper = min(1.0, max(found.upper, self.adding.delta(epsilon)) + failure)
        return Reading(min(found.lower, upper), min(found.mean, upper), upper)

    def epsilon(self, delta: float) -> Reading:
        """Return the epsilon at a delta in (0, 1), of the worse direction.

        The first draws, on which nothing is bet, fix the epsilons that are tested.
        """
        drawn, failure = self.removing, self.failure_probability
        left, each = delta - failure, 0.5 * failure
        least = self.adding.epsilon(left).value
        near = max(least, expected(drawn.first, left, drawn.draws, failure))
        upper = last_proved(lambda e: e >= least and drawn.proves(e, left, each), near)
        lower = least_epsilon(partial(drawn.lower, failure_probability=each), delta)
        return Reading(min(lower, upper), min(least_epsilon(drawn.mean, delta), upper), upper)

    def expected(self, delta: float, draws: int) -> float:
        """Return an estimate of the epsilon that ``draws`` draws will prove, from fewer draws."""
        left, failure = delta - self.failure_probability, self.failure_probability
        return max(expected(self.removing, left, draws, failure), self.adding.epsilon(left).value)


def collected(question: Question, goal: Goal, later: int = 0) -> Evidence:
    """Return draws for removing a record, and draws for adding one if the goal needs them.

    Parameters
    ----------
    question, goal
        The run, and the given epsilon or delta.
    later
        Number of draws of a later proof, if given: fewer draws are made now, for an estimate of the
        later proof.

    Raises
    ------
    DrawsCannotTell
        If these draws prove no bound; the message states the reason.
    ValueError
        If the failure probability is not smaller than the given delta.
    """
    failure = question.options.failure(goal.delta)
    sample = _drawn_removing(question, goal, later or question.options.draws, failure)
    bound = question.proved.adding
    if goal.delta is None:
        level = goal.epsilon
        most = sample.at(level, failure_probability=0.5 * failure).upper
    else:
        most = goal.delta - failure
        level = expected(sample, most, later or sample.draws, failure)
    if bound.delta(level) > most:
        bound = Least((bound, adding(question, 0.5 * failure, proof=not later)))
    return Evidence(sample, bound, failure)


def expected(sample: Sample, delta: float, draws: int, failure: float) -> float:
    """Return an estimate of the epsilon that ``draws`` draws of one direction prove at a delta.

    Raises
    ------
    DrawsCannotTell
        If these draws bound delta at no epsilon.
    """
    found = least_epsilon(lambda e: sample.expected(e, draws, 0.5 * failure), delta)
    if math.isinf(found):
        raise DrawsCannotTell(
            f"draws={draws} of removing a record bound delta={delta:g} at no epsilon; "
            "choose more draws."
        )
    return found


def _drawn_removing(question: Question, goal: Goal, draws: int, failure: float) -> Sample:
    """Return draws for removing a record; refuse if ``draws`` of them cannot prove delta."""
    target, estimator = goal.delta, removing(question, goal, draws)
    if target is not None and failure >= target:
        raise ValueError(
            f"failure_probability must be less than delta={target!r}, of which it is a part, "
            f"got {failure!r}."
        )
    # Tilted draws' range falls below every delta at some epsilon; plain draws' range never does.
    if target is not None and estimator.largest(_LARGEST_EPSILON) == 1:
        needed = draws_needed(target - failure, failure_probability=0.5 * failure)
        if draws < needed:
            raise DrawsCannotTell(
                f"draws={draws} cannot bound delta={target:g} with failure probability "
                f"{failure:g}, even if no draw exceeded epsilon; choose draws >= {needed}."
            )
    return _simulated(question, estimator, 0, question.options.draws)


def _simulated(question: Question, law: Estimator, stream: int, draws: int) -> Sample:
    """Return draws of one direction; each direction has a stream of its own."""
    seed, executor = int(question.options.seed or 0), question.options.executor
    return simulate(law, draws=draws, seed=seed, stream=stream, executor=executor)


def provenance(
    question: Question, evidence: Evidence, reading: Reading, bound: float
) -> dict[str, Any]:
    """Return the fields of an answer by draws, in addition to its upper end."""
    return {
        "lower": 0.0 if question.dominated else min(reading.lower, reading.upper),
        "method": f"{question.route}: {type(evidence.removing.estimator).__name__}",
        "label": WITH_CONFIDENCE,
        "estimate": reading.mean,
        "failure_probability": evidence.failure_probability,
        "draws": evidence.removing.draws,
        "seed": question.options.seed,
        "certified": bound,
    }
