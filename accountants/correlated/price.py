"""What does a run with correlated noise cost? From a strategy, a sampler and a delta to a price.

1. :func:`~dpcal.accountants.correlated.table.chosen`: the kind of the matrix and the sampler choose
   a row of the table. A composition of sampled Gaussians has an exact price.
2. :func:`~dpcal.accountants.correlated.bounds.proved`: the least deterministic bound.
3. :func:`removing`: the draws of removing a record that have the least proved range.
4. :class:`Evidence`: confidence bounds that hold at every number of draws, whose failure
   probability is part of delta, and a proved bound on adding a record.
5. :func:`answer`: the smaller of proof and draws, and its label.

>>> from dpcal.accountants.matrix import LambdaCGD
>>> from dpcal.accountants.samplers import Poisson
>>> question = Question.of(LambdaCGD(50, 0.5), Poisson(0.02), 2.0, Options(seed=0))
>>> question.row.route, type(removing(question, Goal(delta=1e-3))).__name__
('automaton', 'Tilted')
>>> found = answer(question, Goal(delta=1e-3))
>>> bool(found < question.proved.epsilon(1e-3).value), found.label
(True, 'statistical with certified confidence')
"""

from __future__ import annotations

import math
import secrets
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from dpcal import _validate
from dpcal.accountants.correlated.answers import CorrelatedDelta, CorrelatedEpsilon
from dpcal.accountants.correlated.bounds.base import Bound, Least, Proof, least_epsilon
from dpcal.accountants.correlated.bounds.convexity import ConvexTail
from dpcal.accountants.correlated.bounds.joining import Joining
from dpcal.accountants.correlated.bounds.proved import joined, proved, proved_adding
from dpcal.accountants.correlated.draws import tilted
from dpcal.accountants.correlated.draws.bins import Bins
from dpcal.accountants.correlated.draws.confidence import draws_needed
from dpcal.accountants.correlated.draws.estimators import Direct, Floats, Without
from dpcal.accountants.correlated.draws.montecarlo import (
    MOST_DRAWS,
    Estimator,
    Reading,
    Sample,
    last_proved,
    simulate,
)
from dpcal.accountants.correlated.likelihood import Likelihood
from dpcal.accountants.correlated.mechanism import Mechanism, Shape, Shaped
from dpcal.accountants.correlated.table import (
    CERTIFIED,
    EXACT,
    WITH_CONFIDENCE,
    Row,
    chosen,
)
from dpcal.accountants.rounding import exp_up
from dpcal.accountants.samplers import Sampler
from dpcal.errors import DrawsCannotTell, TargetUnreachable

__all__ = ["STATISTICS", "Evidence", "Goal", "Options", "Question", "answer"]
__all__ += ["collected", "expected_epsilon", "provenance", "removing"]

STATISTICS = ("certified", "none")

# Default probability that bounds from draws are wrong, as a part of the target delta. A larger part
# takes more of delta; a smaller one needs more draws, in proportion to its logarithm.
_PART_OF_DELTA = 1e-2
# The default if delta is computed; the probability is added to it.
_WITHOUT_TARGET = 1e-9
# Key of the random stream of pilots; no chunk of draws has this key.
_PILOT_STREAM = 2**31
# Draws of a pilot. With fewer draws the choice is mostly chance; more draws would take as long as
# the final ones.
_PILOT = 1024
# Most values of a pilot, 128 MB: a long run has fewer draws in its pilot.
_LARGEST_PILOT = 2**24
# Least draws of a pilot, for runs of any length.
_LEAST_PILOT = 32
# Plain draws for the tail of adding a record: the band around their law is then 0.04 wide at a
# failure probability of 1e-12. Half as many leave epsilon 2 percent larger where adding decides.
_PLAIN_DRAWS = 8192
# An eighth of these draws are in a band as wide where it fails so often.
_FAILS_OFTEN = 5e-2
_NOT_DRAWN = "a replaced record is priced by proofs alone"
# So many times the least number of plain draws bound delta where a few of them exceed epsilon.
_ENOUGH = 1.25
# Most tuples of bins that are tabulated; more would take more than 16 MB.
_MOST_TUPLES = 2_000_000


# -- questions


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
        found = bound.log_delta(at)
        return Proof(exp_up(found.value), found.method)

    def below(self, bound: Bound) -> float:
        """Return a number below the answer that a bound proves."""
        if self.delta is not None:
            return bound.lower_epsilon(self.delta)
        return bound.lower_delta(self.epsilon or 0.0)

    def range_of(self, estimator: Estimator) -> float:
        """Return the size of an estimator's range for this goal; smaller is better."""
        if self.level is not None:
            return estimator.largest(self.level)
        return least_epsilon(estimator.largest, self.delta or 0.0)


@dataclass(frozen=True)
class Options:
    """Settings of the draws: the arguments that epsilon and delta of correlated noise share."""

    statistics: str = "certified"
    draws: int = 100_000
    failure_probability: float | None = None
    seed: int | None = None
    executor: Executor | Any | None = None

    def __post_init__(self) -> None:
        _validate.choice(STATISTICS, statistics=self.statistics)
        _validate.within(1, MOST_DRAWS, draws=_validate.count(draws=self.draws))
        _validate.seed(seed=self.seed)
        if self.failure_probability is not None:
            _validate.probability(failure_probability=self.failure_probability)

    def failure(self, target: float | None) -> float:
        """Return the probability that bounds from the draws of both directions are wrong."""
        if self.failure_probability is not None:
            return self.failure_probability
        return _WITHOUT_TARGET if target is None else _PART_OF_DELTA * target

    def simulate(self, estimator: Estimator, stream: int, draws: int | None = None) -> Sample:
        """Return draws of a direction, each of which has a stream."""
        draws, seed = draws or self.draws, int(self.seed or 0)
        return simulate(estimator, draws=draws, seed=seed, stream=stream, executor=self.executor)


@dataclass(frozen=True, eq=False)
class Question:
    """A mechanism under a sampler, the route that the table chose, and how to draw.

    Attributes
    ----------
    mechanism, sampler, options
        The run, and how to draw.
    row
        The row of the table.
    relation
        The neighboring relation.
    """

    mechanism: Mechanism
    sampler: Sampler
    row: Row
    options: Options
    relation: str = "zero-out"

    @classmethod
    def of(
        cls,
        strategy: Shaped | Shape,
        sampler: Sampler,
        noise_multiplier: float,
        options: Options,
        relation: str = "zero-out",
    ) -> Question:
        """Return the question about a strategy or its shape, with a secret seed if it has none."""
        sigma = _validate.noise(noise_multiplier=noise_multiplier)
        shape = strategy if isinstance(strategy, Shape) else Shape.of(strategy)
        mechanism = Mechanism(shape, sigma)
        if options.seed is None:
            options = replace(options, seed=secrets.randbits(63))
        return cls(mechanism, sampler, chosen(mechanism, sampler), options, relation)

    @property
    def refusal(self) -> str | None:
        """The reason why draws do not answer; None if they do."""
        return _NOT_DRAWN if self.relation == "replace-one" else self.row.refusal

    @cached_property
    def joining(self) -> Joining | None:
        """How a record joins, for tilted draws; None if its group is secret, or it has no law."""
        groups = self.sampler.groups(self.mechanism.steps)
        secret = groups is not None and groups.secret
        return None if secret else joined(self.mechanism, self.sampler)

    @cached_property
    def engine(self) -> Likelihood:
        """The likelihood ratios of the route ``"automaton"``."""
        steps, bands = self.mechanism.steps, self.mechanism.bands
        separated = self.sampler.least_separation >= bands
        found = Likelihood.of(self.mechanism, self.sampler.automaton(steps), separated=separated)
        assert found is not None  # The table draws where there is one.
        return found

    @cached_property
    def gram(self) -> Floats:
        """Products of the means of the patterns of the route ``"bins"``."""
        patterns = self.sampler.equally_likely(self.mechanism.steps)
        assert patterns is not None
        return self.mechanism.products(patterns)

    @cached_property
    def proved(self) -> Bound:
        """The smallest bound on both directions that needs no draws."""
        return proved(self.mechanism, self.sampler, self.relation)

    @cached_property
    def proved_adding(self) -> Bound:
        """The smallest bound on adding a record that needs no draws."""
        return proved_adding(self.mechanism, self.sampler)


# -- draws


def removing(question: Question, goal: Goal, draws: int = 0) -> Estimator:
    """Return the draws of removing a record that have the least proved range at the answer.

    If ``draws`` plain ones suffice, none are taken that bound delta from above alone.

    Raises
    ------
    DrawsCannotTell
        If draws do not answer such a question, with the reason.
    """
    if question.refusal is not None:
        raise DrawsCannotTell(f"{question.sampler.name!r} batches: {question.refusal}.")
    enough = goal.delta is not None and draws >= _ENOUGH * draws_needed(
        goal.delta, failure_probability=0.5 * question.options.failure(goal.delta)
    )
    if question.row.route == "bins":
        orders = [q for q in (1, 2, 3) if len(question.gram) ** q <= _MOST_TUPLES]
        bins: list[Estimator] = [Bins(question.gram, "remove", q) for q in orders]

        def best(goal: Goal) -> Estimator:
            return min(bins, key=goal.range_of)
    else:
        known: dict[tuple[float, ...], Any] = {}

        def best(goal: Goal) -> Estimator:
            tried: list[Estimator] = [Direct(question.engine)]
            at = {"epsilon": goal.level, "delta": goal.delta}
            found = tilted.best_tilt(question.engine, question.joining, known, **at)
            if found is not None and not (found.shared and enough):
                tried.insert(0, found)
            return min(tried, key=goal.range_of)

    found = best(goal)
    if goal.level is not None or isinstance(found, Direct):
        return found
    # At the answer, the range alone reaches delta only at a larger epsilon.
    count = max(_LEAST_PILOT, min(_PILOT, _LARGEST_PILOT // found.steps))
    sequence = np.random.SeedSequence(question.options.seed, spawn_key=(_PILOT_STREAM,))
    pilot = Sample(found, found.draw(count, np.random.Generator(np.random.PCG64(sequence))))
    nearer = replace(goal, near=goal.level_of(pilot))
    return min(best(nearer), found, key=nearer.range_of)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Draws for removing a record, and draws or a bound for adding one.

    Attributes
    ----------
    removing
        The draws for removing a record.
    adding
        Draws for adding a record, of balls in bins; None if the bound is enough.
    bound
        The bound on adding a record.
    failure_probability
        Probability that the draws of both directions give a wrong upper end, a part of every delta.
    """

    removing: Sample
    adding: Sample | None
    bound: Bound
    failure_probability: float

    @property
    def name(self) -> str:
        """Names of the estimators."""
        other = "" if self.adding is None else f" and {type(self.adding.estimator).__name__}"
        return type(self.removing.estimator).__name__ + other

    @property
    def _parts(self) -> list[Sample]:
        """The draws, each of which may fail with half of the failure probability."""
        return [self.removing] if self.adding is None else [self.removing, self.adding]

    def at(self, epsilon: float) -> Reading:
        """Return the delta at an epsilon >= 0, of the worse direction."""
        settled, each = self.bound.delta(epsilon), 0.5 * self.failure_probability
        found = [sample.at(epsilon, failure_probability=each) for sample in self._parts]
        upper = max(found[0].upper, *(min(other.upper, settled) for other in found[1:]), 0.0)
        if self.adding is None:
            upper = max(upper, settled)
        upper = min(1.0, upper + self.failure_probability)
        lower = max(reading.lower for reading in found)
        return Reading(min(lower, upper), min(self._mean(epsilon), upper), upper)

    def _mean(self, epsilon: float) -> float:
        removed = self.removing.mean(epsilon)
        if self.adding is None:
            return removed
        return max(removed, min(self.adding.mean(epsilon), self.bound.delta(epsilon)))

    def epsilon(self, delta: float) -> Reading:
        """Return the epsilon at a delta in (0, 1), of the worse direction.

        The first draws, on which nothing is bet, fix the epsilons that are tested.
        """
        left, each = delta - self.failure_probability, 0.5 * self.failure_probability
        bound = self.bound.epsilon(left).value
        near, *others = (
            expected(part.first, left, part.draws, self.failure_probability) for part in self._parts
        )
        near = max(near, min([bound, *others]))

        def proves(epsilon: float) -> bool:
            if not self.removing.proves(epsilon, left, each):
                return False
            return epsilon >= bound or (
                self.adding is not None and self.adding.proves(epsilon, left, each)
            )

        upper = last_proved(proves, near)
        lower = max(
            least_epsilon(partial(part.lower, failure_probability=each), delta)
            for part in self._parts
        )
        return Reading(min(lower, upper), min(least_epsilon(self._mean, delta), upper), upper)

    def reading(self, goal: Goal) -> Reading:
        """Return the epsilon at the goal's delta, or the delta at its epsilon."""
        return self.at(goal.epsilon or 0.0) if goal.delta is None else self.epsilon(goal.delta)


def collected(question: Question, goal: Goal) -> Evidence:
    """Return draws for both directions, as far as the goal needs draws.

    Raises
    ------
    DrawsCannotTell
        If these draws prove no bound, with the reason.
    ValueError
        If the failure probability is not a part of the given delta.
    """
    sample, failure = _drawn_removing(question, goal, question.options.draws)
    found = Evidence(sample, None, question.proved_adding, failure)
    if goal.delta is None:
        level = goal.epsilon or 0.0
        most = sample.at(level, failure_probability=0.5 * failure).upper
    else:
        most = goal.delta - failure
        level = expected(sample, most, sample.draws, failure)
    if math.isinf(level):
        raise DrawsCannotTell(
            f"draws={sample.draws} of removing a record bound delta={goal.delta:g} at no epsilon; "
            "choose more draws."
        )
    if found.bound.delta(level) <= most:
        return found
    if question.row.route == "bins":
        return replace(found, adding=question.options.simulate(Bins(question.gram, "add"), 1))
    law = question.options.simulate(Without(question.engine), 1, _PLAIN_DRAWS).kept
    tail = ConvexTail.of(law, failure_probability=0.5 * failure)
    return replace(found, bound=Least((found.bound, tail)))


def expected(sample: Sample, delta: float, draws: int, failure: float) -> float:
    """Return about the epsilon at a delta that ``draws`` draws of one of two directions prove."""
    return least_epsilon(lambda e: sample.expected(e, draws, 0.5 * failure), delta)


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
        If draws prove no bound.
    """
    sample, failure = _drawn_removing(question, Goal(delta=delta), draws)
    found = expected(sample, delta - failure, draws, failure)
    if math.isinf(found):
        raise DrawsCannotTell(
            f"draws={draws} of removing a record would bound delta={delta:g} at no epsilon."
        )
    adding = question.proved_adding.epsilon(delta - failure).value
    if adding <= found or question.row.route == "bins":
        return found
    law = question.options.simulate(Without(question.engine), 1, _PLAIN_DRAWS // 8).kept
    tail = ConvexTail.of(law, failure_probability=_FAILS_OFTEN)
    return max(found, min(adding, tail.epsilon(delta - failure).value))


def _drawn_removing(question: Question, goal: Goal, draws: int) -> tuple[Sample, float]:
    """Return draws for removing a record, and their failure probability.

    They are refused if ``draws`` of them could not answer.
    """
    failure = question.options.failure(goal.delta)
    if goal.delta is not None and failure >= goal.delta and not question.refusal:
        raise ValueError(
            f"failure_probability must be less than delta={goal.delta!r}, of which it is a part, "
            f"got {failure!r}."
        )
    estimator = removing(question, goal, draws)
    if goal.delta is not None:
        _require_enough(estimator, goal.delta, failure, draws)
    return question.options.simulate(estimator, 0), failure


def _require_enough(estimator: Estimator, target: float, failure: float, draws: int) -> None:
    """Refuse, before drawing, a number of draws that could not reach the target."""
    each = 0.5 * failure
    # The epsilon of the range alone is at least the answer.
    alone = 0.0
    if estimator.largest(1.0) < estimator.largest(0.0):
        alone = least_epsilon(estimator.largest, target)
    largest = estimator.largest(alone)
    needed = draws_needed(target - failure, failure_probability=each, largest=largest)
    if draws < needed:
        reachable = -math.log(each) * largest / draws
        raise DrawsCannotTell(
            f"draws={draws} cannot bound delta={target:g} with failure probability "
            f"{failure:g}: even if no draw exceeded epsilon, the bound would be "
            f"{reachable:.2g}; choose draws >= {needed}."
        )


# -- answers


def answer(question: Question, goal: Goal, reserved: float = 0.0) -> Any:
    """Return the answer to a question; ``reserved`` of delta belongs to earlier answers."""
    made: type[CorrelatedDelta | CorrelatedEpsilon] = CorrelatedDelta
    if goal.delta is not None:
        goal, made = Goal(delta=goal.delta - reserved), CorrelatedEpsilon
    bound, relation = question.proved, question.relation
    found, drawn, reason = goal.proof(bound), None, ""
    if question.options.statistics != "none" and question.row.route != "product":
        try:
            drawn = collected(question, goal)
        except DrawsCannotTell as cannot:
            reason = str(cannot)
    reading = None if drawn is None else drawn.reading(goal)
    if drawn is None or reading is None or not reading.upper < found.value:
        if math.isinf(found.value) and (drawn is not None or reason):
            raise TargetUnreachable(reason or f"No epsilon bounds delta={goal.delta:g}.")
        label = EXACT if question.row.route == "product" else CERTIFIED
        stated = {"label": label, "note": reason, "neighboring_relation": relation}
        return made.proved(found, lower=goal.below(bound), **stated)
    if reserved and goal.delta is None:
        reading = reading._replace(upper=min(1.0, reading.upper + reserved))
    known = provenance(question, drawn, reading, found.value)
    return made(reading.upper, **known, neighboring_relation=relation)


def provenance(
    question: Question, evidence: Evidence, reading: Reading, bound: float
) -> dict[str, Any]:
    """Return the statements of an answer by draws beside its upper end."""
    return {
        "lower": min(reading.lower, reading.upper),
        "method": f"{question.row.route}: {evidence.name}",
        "label": WITH_CONFIDENCE,
        "estimate": reading.mean,
        "failure_probability": evidence.failure_probability,
        "draws": evidence.removing.draws,
        "seed": question.options.seed,
        "certified": bound,
    }
