"""Which estimator answers a question? The one with the least proved range, or the best pilot.

>>> from dpcal.accountants.correlated.question import Options, Question
>>> from dpcal.accountants.samplers import Poisson
>>> from dpcal.accountants.matrix import LambdaCGD
>>> question = Question.of(LambdaCGD(50, 0.5), Poisson(0.02), 2.0, Options(seed=0))
>>> type(removing(question, Goal(delta=1e-3))).__name__
'PowerTilted'
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpcal.accountants.correlated.bounds.base import Bound, Proof, least_epsilon
from dpcal.accountants.correlated.bounds.half_space import HalfSpaces
from dpcal.accountants.correlated.draws.bins import Bins, MirroredBins
from dpcal.accountants.correlated.draws.estimators import (
    Direct,
    Estimator,
    Floats,
    Mirrored,
    Setting,
)
from dpcal.accountants.correlated.draws.importance import Counts, ShiftAdd, ShiftRemove
from dpcal.accountants.correlated.draws.montecarlo import Sample
from dpcal.accountants.correlated.draws.powers import best_moment, best_order
from dpcal.accountants.correlated.draws.tilted import Tilted
from dpcal.accountants.correlated.likelihood import TransferEngine
from dpcal.accountants.correlated.question import Question

__all__ = ["Goal", "adding", "least_reach", "only_plain", "removing"]

# Draws of a pilot. With fewer draws the choice is mostly chance; more draws would take as long as
# the final ones.
_PILOT = 1024
# Most values of a pilot, 128 MB: a long run has fewer draws in its pilot.
_LARGEST_PILOT = 2**24
# Least draws of a pilot, for runs of any length.
_LEAST_PILOT = 32
# Most tuples of bins that are tabulated; more would take more than 16 MB.
_MOST_TUPLES = 2_000_000
# Above this logarithm of a second moment, tilted draws are of records that have almost no
# probability.
_LARGEST_LOG_MOMENT = 8.0


@dataclass(frozen=True)
class Goal:
    """What is asked: the delta at an epsilon, or the epsilon at a delta.

    Parameters
    ----------
    epsilon, delta
        One of the two; the other is None.
    near
        With delta: an approximation of the answer, if one is known.
    """

    epsilon: float | None = None
    delta: float | None = None
    near: float | None = None

    @property
    def level(self) -> float | None:
        """The epsilon at which ranges are compared; None if it is not known."""
        return self.near if self.epsilon is None else self.epsilon

    def level_of(self, sample: Sample) -> float:
        """Return the epsilon at which a sample is read."""
        if self.epsilon is not None:
            return self.epsilon
        target = self.delta or 0.0
        return least_epsilon(lambda e: float(sample.estimator.terms(sample.kept, e).mean()), target)

    def proof(self, bound: Bound) -> Proof:
        """Return the answer that a bound proves, and its name."""
        if self.delta is not None:
            return bound.epsilon(self.delta)
        at = self.epsilon or 0.0
        return Proof(bound.delta(at), bound.log_delta(at).method)

    def below(self, bound: Bound) -> float:
        """Return a number below the answer that a bound proves."""
        if self.delta is not None:
            return bound.lower_epsilon(self.delta)
        return bound.lower_delta(self.epsilon or 0.0)

    def range_of(self, estimator: Estimator) -> float:
        """Return the size of an estimator's range for this goal; smaller is better."""
        if self.level is not None:
            return estimator.largest(self.level) or math.inf
        return least_epsilon(lambda e: estimator.largest(e) or math.inf, self.delta or 0.0)


def least_reach(question: Question, delta: float) -> float:
    """Return the least epsilon at which the range of draws of removing is at most ``delta``.

    It needs a table but no likelihood ratio; it is infinite if no order has a finite range.
    """
    found = None
    if question.law.independent:
        found = best_moment(question.mechanism, question.law, delta=delta)
    return math.inf if found is None else found.reach(delta)


def only_plain(question: Question, goal: Goal) -> bool:
    """Return whether only plain draws have a proved range, which is 1."""
    if question.replaced:
        return True
    if question.options.statistics != "certified" or question.route == "bins":
        return False
    if not question.law.independent:
        return True
    if question.mechanism.decay is not None:
        # Draws of order 2 of the likelihood itself may have a range although its product bound has
        # none.
        return False
    return best_moment(question.mechanism, question.law, delta=goal.delta or 0.5) is None


def removing(question: Question, goal: Goal) -> Estimator:
    """Return the estimator of delta for removing a record, or for replacing it."""
    if question.replaced:
        if question.route == "bins":
            return MirroredBins(_gram_of_bins(question), "remove")
        return Mirrored(question.setting("remove"))
    if question.route == "bins":
        return _bins_removing(question, goal)
    setting = question.setting("remove")
    if not setting.engine.exact or not question.law.independent:
        return Direct(setting, "remove")
    if question.options.statistics == "certified":
        return _least_range(question, setting, goal)
    if isinstance(setting.engine, TransferEngine):
        return Direct(setting, "remove")
    return _importance(question, setting, goal)


def _least_range(question: Question, setting: Setting, goal: Goal) -> Estimator:
    """Return the estimator with the least proved range near the epsilon of the goal."""
    power = best_order(setting, epsilon=goal.level, delta=goal.delta)
    if power is not None and goal.level is None and math.isfinite(power.log_moment):
        # The range alone reaches delta at a larger epsilon, where a larger order is better.
        count = max(_LEAST_PILOT, min(_PILOT, _LARGEST_PILOT // power.steps))
        pilot = _pilot(power, question.options.pilot(), count)
        goal = replace(goal, near=goal.level_of(pilot))
        nearer = best_order(setting, epsilon=goal.level)
        power = min(filter(None, (nearer, power)), key=goal.range_of)
    # Draws of order 2 have a larger range than a product bound of higher orders.
    tilted = _tilted(setting) if power is None or power.order == 2 else None
    found = (each for each in (power, tilted, Direct(setting, "remove")) if each is not None)
    return min(found, key=goal.range_of)


def _gram_of_bins(question: Question) -> Floats:
    patterns = question.sampler.equally_likely(question.mechanism.steps)
    assert patterns is not None  # The route is that of bins.
    return question.mechanism.products(patterns)


def _bins_removing(question: Question, goal: Goal) -> Estimator:
    """Return draws of the order with the least range."""
    gram = _gram_of_bins(question)
    orders = [q for q in (1, 2, 3) if len(gram) ** q <= _MOST_TUPLES]
    tried = [Bins(gram, "remove", q) for q in orders]
    found = min(tried, key=goal.range_of)
    if goal.level is None:
        # The range alone reaches delta at a larger epsilon, where another order may be better.
        pilot = _pilot(found, question.options.pilot())
        found = min(tried, key=replace(goal, near=goal.level_of(pilot)).range_of)
    return found


def _tilted(setting: Setting) -> Estimator | None:
    """Return order-2 draws if the second moment is of practical size and accurate, else None."""
    if setting.law.rates.max() >= 1 or setting.mechanism.decay is None:
        return None
    tilted = Tilted(setting)
    if tilted.log_moment > _LARGEST_LOG_MOMENT or not tilted.validated():
        return None
    return tilted


def _importance(question: Question, setting: Setting, goal: Goal) -> Estimator:
    """Return the importance sampler with the most effective draws in a pilot."""
    rng = question.options.pilot()
    rate = float(setting.law.rates.max())
    if rate >= 0.5:
        return Direct(setting, "remove")
    tried: list[tuple[float, Estimator]] = [(0.0, Direct(setting, "remove"))]
    level = goal.epsilon
    if question.mechanism.decay is not None:
        start = Counts(setting, (1 - 1.5 * rate, 1.4 * rate, 0.1 * rate), 0.1)

        def level_of(kept: Floats, proposal: Counts) -> float:
            return goal.level_of(Sample(proposal, kept, 0))

        counts = start.fitted(level_of, rng)
        pilot = _pilot(counts, rng, 2 * _PILOT)
        level = goal.level_of(pilot)
        tried = [(_effective(pilot, goal, level), counts)]
    shifts = [ShiftRemove(setting, scale) for scale in (1.0, 2.0, 4.0, 8.0)]
    tried += [(2 * _effective(_pilot(shift, rng), goal, level), shift) for shift in shifts]
    return max(tried, key=lambda each: each[0])[1]


def _pilot(estimator: Estimator, rng: np.random.Generator, draws: int = _PILOT) -> Sample:
    """Return a few draws, which only choose a method."""
    return Sample(estimator, estimator.draw(draws, rng), 0)


def _effective(pilot: Sample, goal: Goal, level: float | None = None) -> float:
    """Return the number of effective draws, at a level or at the pilot's own."""
    at = goal.level_of(pilot) if level is None else level
    reading = pilot.at(at, failure_probability=0.05)
    # If one draw carries a large share of the mean, rarer and larger terms were probably missed.
    return reading.effective_draws if reading.largest_share < 0.2 else 0.0


def adding(question: Question, goal: Goal, level: float, *, proved: bool) -> Estimator:
    """Return the estimator of delta for adding a record.

    Parameters
    ----------
    question
        The run, with its options of drawing.
    goal
        The epsilon or delta of the answer.
    level
        An epsilon near the answer.
    proved
        Whether the range of the terms must be proved.
    """
    if question.route == "bins":
        return Bins(_gram_of_bins(question), "add")
    setting = question.setting("add")
    if not question.law.independent:
        return Direct(setting, "add")
    spaces = HalfSpaces(question.mechanism, question.law)
    if not proved:
        return _shifted(question, setting, level, goal)
    _, share = spaces.best(level)
    _, kappa, mu = ShiftAdd(setting, share, 1.0).half_space
    scale = (level - kappa) / (mu * mu)
    # For a negative scale the half-space gives no bound on weights.
    return Direct(setting, "add") if scale <= 0.1 else ShiftAdd(setting, share, scale)


def _shifted(question: Question, setting: Setting, level: float, goal: Goal) -> Estimator:
    """Return the shift with the most effective draws in a pilot, near the given level."""
    rng = question.options.pilot()
    tried: list[tuple[float, Estimator]] = [(0.0, Direct(setting, "add"))]
    # A move by this scale brings the mean of the linear part of log L to the level.
    reach = level / ShiftAdd(setting, 1.0, 1.0).half_space[2] ** 2
    parts = (0.2, 0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.4)
    shifts = [ShiftAdd(setting, 1.0, max(part * reach, 1e-3), proved=False) for part in parts]
    tried += [(_effective(_pilot(shift, rng), goal), shift) for shift in shifts]
    return max(tried, key=lambda each: each[0])[1]
