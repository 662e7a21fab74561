"""What does a run with correlated noise cost? From a strategy, a sampler and a delta to a price.

1. :func:`~dpcal.accountants.correlated.table.chosen`: the kind of the matrix and the sampler choose
   a row of the table. A composition of sampled Gaussians has an exact price.
2. :func:`~dpcal.accountants.correlated.bounds.reductions.proved`: the least deterministic bound.
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

from dpcal import _validate
from dpcal.accountants.correlated.answers import CorrelatedDelta, CorrelatedEpsilon
from dpcal.accountants.correlated.bounds.adding import ConvexTail
from dpcal.accountants.correlated.bounds.base import Bound, Least, Proof, least_epsilon
from dpcal.accountants.correlated.bounds.joining import Joining
from dpcal.accountants.correlated.bounds.reductions import joined, proved
from dpcal.accountants.correlated.draws import tilted
from dpcal.accountants.correlated.draws.confidence import draws_needed
from dpcal.accountants.correlated.draws.estimators import (
    Bins,
    Direct,
    Estimator,
    Floats,
    Without,
)
from dpcal.accountants.correlated.draws.montecarlo import (
    MOST_DRAWS,
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
# Plain draws for the tail of adding a record: the band around their law is then 0.04 wide at a
# failure probability of 1e-12. Half as many leave epsilon 2 percent larger where adding decides.
_PLAIN_DRAWS = 8192
# An eighth of these draws are in a band as wide where it fails so often.
_FAILS_OFTEN = 5e-2
_NOT_DRAWN = "a replaced record is priced by proofs alone"
# So many times the least number of plain draws bound delta where a few of them exceed epsilon.
_ENOUGH = 1.25
# About the part of a proved epsilon that draws prove: the order of a tilt is chosen there.
_NEAR = 0.8
# Where a range is the same as at 0, draws are plain.
_LARGEST_EPSILON = 1e7
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
        With delta: about the answer, if it is known.
    """

    epsilon: float | None = None
    delta: float | None = None
    near: float | None = None

    def proof(self, bound: Bound) -> Proof:
        """Return the answer that a bound proves, and its name."""
        if self.delta is not None:
            return bound.epsilon(self.delta)
        return bound.proof(self.epsilon or 0.0)


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
        secret = groups.secret if groups is not None else getattr(self.sampler, "warm_start", False)
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


# -- draws


def removing(question: Question, goal: Goal, draws: int = 0) -> Estimator:
    """Return the draws of removing a record that have the least proved range near the answer.

    If ``draws`` plain ones suffice, none are taken that bound delta from above alone.

    Raises
    ------
    DrawsCannotTell
        If draws do not answer such a question, with the reason.
    """
    if question.refusal is not None:
        raise DrawsCannotTell(f"{question.sampler.name!r} batches: {question.refusal}.")
    level = goal.near if goal.epsilon is None else goal.epsilon
    if level is None:
        level = _NEAR * min(goal.proof(question.proved).value, _LARGEST_EPSILON)
    if question.row.route == "bins":
        orders = [q for q in (1, 2, 3) if len(question.gram) ** q <= _MOST_TUPLES]
        tried: list[Estimator] = [Bins(question.gram, "remove", q) for q in orders]
    else:
        enough = goal.delta is not None and draws >= _ENOUGH * draws_needed(
            goal.delta, failure_probability=0.5 * question.options.failure(goal.delta)
        )
        found = tilted.best_tilt(question.engine, question.joining, level)
        tried = [] if found is None or (found.shared and enough) else [found]
        tried.append(Direct(question.engine))
    return min(tried, key=lambda each: each.largest(level))


def adding(question: Question, draws: int, failure: float) -> Bound:
    """Return the bound on adding a record that plain draws prove."""
    bins = question.row.route == "bins"
    law = Bins(question.gram, "add") if bins else Without(question.engine)
    log_l = question.options.simulate(law, 1, draws).kept[:2]
    return ConvexTail.of(log_l, failure_probability=failure)


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
        Probability that the draws of both directions give a wrong upper end, a part of every delta.
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

    def reading(self, goal: Goal) -> Reading:
        """Return the epsilon at the goal's delta, or the delta at its epsilon."""
        return self.at(goal.epsilon or 0.0) if goal.delta is None else self.epsilon(goal.delta)


def collected(question: Question, goal: Goal) -> Evidence:
    """Return draws for removing a record, and draws for adding one if the goal needs them.

    Raises
    ------
    DrawsCannotTell
        If these draws prove no bound, with the reason.
    ValueError
        If the failure probability is not a part of the given delta.
    """
    sample, failure = _drawn_removing(question, goal, question.options.draws)
    bound = question.proved.adding
    if goal.delta is None:
        level = goal.epsilon or 0.0
        most = sample.at(level, failure_probability=0.5 * failure).upper
    else:
        most = goal.delta - failure
        level = expected(sample, most, sample.draws, failure)
    if bound.delta(level) > most:
        bound = Least((bound, adding(question, _PLAIN_DRAWS, 0.5 * failure)))
    return Evidence(sample, bound, failure)


def expected(sample: Sample, delta: float, draws: int, failure: float) -> float:
    """Return about the epsilon at a delta that ``draws`` draws of one of two directions prove.

    Raises
    ------
    DrawsCannotTell
        If there is none.
    """
    found = least_epsilon(lambda e: sample.expected(e, draws, 0.5 * failure), delta)
    if math.isinf(found):
        raise DrawsCannotTell(
            f"draws={draws} of removing a record bound delta={delta:g} at no epsilon; "
            "choose more draws."
        )
    return found


def expected_epsilon(question: Question, goal: Goal, draws: int) -> float:
    """Return an estimate of the epsilon that ``draws`` draws will prove, from fewer draws.

    Parameters
    ----------
    question
        The run, with the few draws.
    goal
        Its delta is the target, without the part that is reserved for other confirmations.
    draws
        Number of the later draws.

    Raises
    ------
    DrawsCannotTell
        If draws prove no bound.
    """
    sample, failure = _drawn_removing(question, goal, draws)
    left = (goal.delta or 0.0) - failure
    found, least = expected(sample, left, draws, failure), question.proved.adding.epsilon(left)
    if least.value <= found:
        return found
    tail = adding(question, _PLAIN_DRAWS // 8, _FAILS_OFTEN).epsilon(left)
    return max(found, min(least.value, tail.value))


def _drawn_removing(question: Question, goal: Goal, draws: int) -> tuple[Sample, float]:
    """Return draws for removing a record, and their failure probability.

    They are refused if ``draws`` of them could not answer.
    """
    target, failure = goal.delta, question.options.failure(goal.delta)
    if target is not None and failure >= target and not question.refusal:
        raise ValueError(
            f"failure_probability must be less than delta={target!r}, of which it is a part, "
            f"got {failure!r}."
        )
    estimator = removing(question, goal, draws)
    # The range of tilted draws reaches every delta at some epsilon, and that of plain ones none.
    if target is not None and estimator.largest(_LARGEST_EPSILON) == 1:
        needed = draws_needed(target - failure, failure_probability=0.5 * failure)
        if draws < needed:
            raise DrawsCannotTell(
                f"draws={draws} cannot bound delta={target:g} with failure probability "
                f"{failure:g}, even if no draw exceeded epsilon; choose draws >= {needed}."
            )
    return question.options.simulate(estimator, 0), failure


# -- answers


def answer(question: Question, goal: Goal, reserved: float = 0.0) -> Any:
    """Return the answer to a question; ``reserved`` of delta belongs to earlier answers."""
    made: type[CorrelatedDelta | CorrelatedEpsilon] = CorrelatedDelta
    if goal.delta is not None:
        goal, made = Goal(delta=goal.delta - reserved), CorrelatedEpsilon
    bound, relation = question.proved, question.relation
    found, drawn, reading, reason = goal.proof(bound), None, None, ""
    if question.options.statistics != "none" and question.row.route != "product":
        try:
            drawn = collected(question, goal)
            reading = drawn.reading(goal)
        except DrawsCannotTell as cannot:
            reason = str(cannot)
    if drawn is None or reading is None or not reading.upper < found.value:
        if math.isinf(found.value) and (drawn is not None or reason):
            raise TargetUnreachable(reason or f"No epsilon bounds delta={goal.delta:g}.")
        label = EXACT if question.row.route == "product" else CERTIFIED
        return made.proved(found, label=label, note=reason, neighboring_relation=relation)
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
        "method": f"{question.row.route}: {type(evidence.removing.estimator).__name__}",
        "label": WITH_CONFIDENCE,
        "estimate": reading.mean,
        "failure_probability": evidence.failure_probability,
        "draws": evidence.removing.draws,
        "seed": question.options.seed,
        "certified": bound,
    }
