"""Epsilon and delta of a run with correlated noise, from a strategy and a sampler.

1. :attr:`Question.route`: the strategy and the sampler choose how draws are made, or the reason
   why there are none.
2. :attr:`Question.proved`: the least deterministic bound of each direction, removing and adding a
   record, and the larger one of both. For a composition of sampled Gaussians the result is exact.
3. :func:`~dpcal.accountants.correlated.draws.evidence.collected`: draws, if they are wanted.
4. :func:`answer`: the smaller of proof and draws, and its label.

>>> from dpcal.accountants import correlated, matrix
>>> run = CorrelatedGaussianDpEvent(matrix.Identity(1000), correlated.Poisson(0.01), 0.8)
>>> answer = priced(Goal(delta=1.76713759e-5), run)
>>> print(f"{answer:.6f} {answer.label}")
3.000000 exact
>>> run = CorrelatedGaussianDpEvent(
...     matrix.LambdaCGD(100, 0.5), correlated.Poisson(0.01), 2.0, draws=40_000, seed=0)
>>> answer = priced(Goal(delta=1e-3), run)
>>> print(answer.label, answer.lower < answer.estimate < answer < answer.certified)
statistical with certified confidence True
"""

from __future__ import annotations

import math
import secrets
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dpcal._internal import validate
from dpcal.accountants import samplers
from dpcal.accountants.correlated.answers import (
    CERTIFIED,
    EXACT,
    CorrelatedDelta,
    CorrelatedEpsilon,
)
from dpcal.accountants.correlated.bounds.adding import Adding
from dpcal.accountants.correlated.bounds.base import Bound, Directions, Least, Proof, Worst
from dpcal.accountants.correlated.bounds.joining import Joining
from dpcal.accountants.correlated.bounds.reductions import (
    Reduction,
    TwoBlanks,
    compositions,
    of_epochs,
    revealed,
    spaced,
)
from dpcal.accountants.correlated.bounds.replicas import ReplicaMoments
from dpcal.accountants.correlated.draws.evidence import collected, provenance
from dpcal.accountants.correlated.draws.montecarlo import MOST_DRAWS
from dpcal.accountants.correlated.likelihood import Likelihood
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.events import CorrelatedGaussianDpEvent
from dpcal.accountants.matrix.base import Strategy
from dpcal.accountants.participations import Floats, Groups
from dpcal.accountants.samplers import MinSeparation, Sampler
from dpcal.errors import DrawsCannotTell, TargetUnreachable

STATISTICS = ("certified", "none")
DRAWING = ("statistics", "draws", "seed", "failure_probability")
# Part of the target delta: a larger one takes more of delta, a smaller one needs more draws.
_PART_OF_DELTA = 1e-2
# Used if delta is computed, and added to it.
_WITHOUT_TARGET = 1e-9
_REPLACED = "a replaced record is priced by proofs alone"
_CLOSE = "proved bounds are close, and draws would tell no more"
_UNKNOWN_GROUP = (
    "which group is the worst is not known, so that draws of one group bound nothing; draw groups "
    "at random, or use Poisson sampling"
)
_LONG_MEMORY = (
    "no small memory carries the past of such a matrix, so that no likelihood ratio of its outputs "
    "is known"
)
_COMPOSITION = "composition of sampled Gaussians, {}"


def priced(
    goal: Goal, event: CorrelatedGaussianDpEvent, relation: str = "zero-out"
) -> CorrelatedEpsilon | CorrelatedDelta:
    """Return the epsilon or delta of a whole run, for a record that is zeroed out, or replaced.

    Parameters
    ----------
    goal
        The given epsilon or delta.
    event
        The run.
    relation
        Neighboring relation of the answer; ``"replace-one"`` has a pair of its own.

    Raises
    ------
    UnsupportedEvent
        If no theorem covers the run; the message states the reason.
    TargetUnreachable
        If neither draws nor a deterministic bound give a finite epsilon.
    """
    options = Options.of(event)
    reserved = 0.0
    if event.statistics == "certified" and event.confirmations > 1:
        # By default all confirmations share the failure probability.
        shares = event.confirmations if event.failure_probability is None else 1
        failure = options.failure(goal.delta) / shares
        options = replace(options, failure_probability=failure)
        reserved = (event.confirmations - 1) * failure
    run = event.strategy, event.sampler, event.noise_multiplier
    return answer(Question.of(*run, options, relation), goal, reserved)


@dataclass(frozen=True)
class Goal:
    """A given epsilon, to compute delta, or a given delta, to compute epsilon.

    Parameters
    ----------
    epsilon
        The given epsilon, if delta is None.
    delta
        The given delta.
    near
        Approximate epsilon at the given delta, if it is known.
    """

    epsilon: float = 0.0
    delta: float | None = None
    near: float | None = None

    def proof(self, bound: Bound) -> Proof:
        """Return the answer that a bound proves, and its name."""
        if self.delta is not None:
            return bound.epsilon(self.delta)
        return bound.proof(self.epsilon)


@dataclass(frozen=True)
class Options:
    """Settings of the draws: the arguments that epsilon and delta of correlated noise share."""

    statistics: str = "certified"
    draws: int = 100_000
    failure_probability: float | None = None
    seed: int | None = None
    executor: Executor | Any | None = None

    def __post_init__(self) -> None:
        validate.choice(STATISTICS, statistics=self.statistics)
        validate.within(1, MOST_DRAWS, draws=validate.count(draws=self.draws))
        validate.seed(seed=self.seed)
        if self.failure_probability is not None:
            validate.probability(failure_probability=self.failure_probability)

    @classmethod
    def of(cls, settings: Any) -> Options:
        """Return the settings that an event, or another record, holds in fields of these names."""
        return cls(**{name: getattr(settings, name) for name in DRAWING})

    def failure(self, target: float | None) -> float:
        """Return the probability that bounds from the draws of both directions are wrong."""
        if self.failure_probability is not None:
            return self.failure_probability
        return _WITHOUT_TARGET if target is None else _PART_OF_DELTA * target


@dataclass(frozen=True, eq=False)
class Question:
    """A mechanism under a sampler, and how to draw.

    Attributes
    ----------
    mechanism, sampler, options
        The run, and how to draw.
    relation
        The neighboring relation.
    dominated
        Whether this sampler is only an upper bound on the run, so that lower ends do not hold.
    """

    mechanism: Mechanism
    sampler: Sampler
    options: Options
    relation: str = "zero-out"
    dominated: bool = False

    @classmethod
    def of(
        cls,
        strategy: Strategy | Mechanism,
        sampler: Sampler,
        noise_multiplier: float,
        options: Options | None = None,
        relation: str = "zero-out",
    ) -> Question:
        """Return the question about a strategy or a run of it, with a secret seed if it has none.

        Raises
        ------
        TypeError
            If the sampler does not belong to this package.
        UnsupportedEvent
            If no theorem covers the sampler.
        """
        options = options or Options()
        if options.seed is None:
            options = replace(options, seed=secrets.randbits(63))
        if getattr(samplers, type(sampler).__name__, None) is not type(sampler):
            raise TypeError(
                "sampler must be one of the samplers of dpcal.accountants.correlated, "
                f"got {sampler!r} of type {type(sampler).__name__}."
            )
        run = strategy if isinstance(strategy, Mechanism) else Mechanism.of(strategy)
        mechanism, law = run.at(noise_multiplier), sampler.law
        # Joint convexity: a record that waits sees a part of a run in which it starts free.
        if isinstance(sampler, MinSeparation) and mechanism.column is not None:
            law = replace(sampler, warm_start=False)
        return cls(mechanism, law, options, relation, dominated=law != sampler)

    @cached_property
    def route(self) -> str:
        """``"product"``, ``"bins"`` or ``"automaton"``; a reason if draws do not answer."""
        mechanism, groups = self.mechanism, self._groups
        if groups is not None and not groups.secret:
            if self._separated:
                return "product"
            if mechanism.column is None and len(groups.rounds) > 1:
                return _UNKNOWN_GROUP
        if self.relation == "replace-one":
            return _REPLACED
        if isinstance(self.proved, Reduction) and self.proved.exact:
            return _CLOSE
        if self.patterns is not None:
            return "bins"
        return _LONG_MEMORY if self._memory is None else "automaton"

    @cached_property
    def proved(self) -> Bound:
        """The least bound on both directions that needs no draws.

        For ``"replace-one"`` the bound is on the pair of C y against -C y. It is the composition
        under this relation, or otherwise the bound by two zero-out steps, or by known
        participations at twice the distance.
        """
        mechanism, sampler = self.mechanism, self.sampler
        replaced = self.relation == "replace-one"
        public = revealed(mechanism.at(mechanism.sigma / (2 if replaced else 1)), sampler)
        if self._groups is not None and self._separated:
            return self._of_groups(self._groups, public)
        if replaced:
            return Least((TwoBlanks(replace(self, relation="zero-out").proved), public))
        epochs = sampler.epochs(mechanism.steps)
        if epochs is not None and mechanism.bands == 1 and mechanism.column is not None:
            allocated = of_epochs(mechanism, epochs)
            if allocated is None:
                return public
            return allocated if allocated.exact else Least((allocated, public))
        both, removing = (*spaced(mechanism, sampler), public), public
        if self.joining is not None:
            removing = ReplicaMoments(mechanism, self.joining)
            adding = Adding.of(mechanism, self.joining)
        elif self.patterns is not None:
            adding = Adding.of_bins(self.gram)
        else:
            return Least(both)
        return Least((Directions((removing, adding)), *both))

    def _of_groups(self, groups: Groups, public: Bound) -> Bound:
        """Return the bound by independent rounds of the worst group."""
        how = self.relation if self.relation == "replace-one" else "add-or-remove-one"
        exact, whole = not groups.secret, compositions(self.mechanism, groups)
        parts = tuple(Reduction(each, _COMPOSITION, how, exact=exact) for each in whole)
        worst = parts[0] if len(parts) == 1 else Worst(parts)
        # By joint convexity, the bound of the worst group holds for a secret group.
        return worst if exact else Least((worst, public))

    @cached_property
    def joining(self) -> Joining | None:
        """How a record of the first group joins; None if bounds on it do not apply.

        If C is Toeplitz, the first group is the worst. By joint convexity no secret group is worse.
        """
        mechanism, found = self.mechanism, Joining.of(self.sampler, self.mechanism.steps)
        if found is None or found.epoch:
            return found
        waits = getattr(self.sampler, "warm_start", False)
        alike = mechanism.column is not None or (self._separated and not waits)
        known = alike or (found.separation == found.period == 1)
        return found if known and found.chances.max() < 1 else None

    @cached_property
    def _groups(self) -> Groups | None:
        return self.sampler.groups(self.mechanism.steps)

    @property
    def _separated(self) -> bool:
        """Whether no column of C reaches from one participation to the next."""
        return self.sampler.least_separation >= self.mechanism.bands

    @property
    def _memory(self) -> str | None:
        return "none" if self._separated else self.mechanism.memory

    @property
    def tilted(self) -> Joining | None:
        """How a record joins, for tilted draws; None if its group is secret, or it has no law."""
        return None if self._groups is not None and self._groups.secret else self.joining

    @cached_property
    def engine(self) -> Likelihood:
        """The likelihood ratios of the route ``"automaton"``."""
        assert self._memory is not None
        law = self.sampler.automaton(self.mechanism.steps)
        return Likelihood(self.mechanism, law, self._memory)

    @cached_property
    def patterns(self) -> Floats | None:
        """Patterns of participations, shape (rounds, patterns), if all are equally likely."""
        return self.sampler.equally_likely(self.mechanism.steps)

    @cached_property
    def gram(self) -> Floats:
        """Products of the means of the patterns of the route ``"bins"``."""
        assert self.patterns is not None
        return self.mechanism.products(self.patterns)


def answer(
    question: Question, goal: Goal, reserved: float = 0.0
) -> CorrelatedEpsilon | CorrelatedDelta:
    """Return the answer to a question; ``reserved`` of delta belongs to earlier answers."""
    made: type[CorrelatedDelta | CorrelatedEpsilon] = CorrelatedDelta
    if goal.delta is not None:
        goal, made = Goal(delta=goal.delta - reserved), CorrelatedEpsilon
    bound, relation = question.proved, question.relation
    found, drawn, reading, reason = goal.proof(bound), None, None, ""
    if question.options.statistics != "none" and question.route != "product":
        try:
            drawn = collected(question, goal)
            given = goal.delta
            reading = drawn.at(goal.epsilon) if given is None else drawn.epsilon(given)
        except DrawsCannotTell as cannot:
            reason = str(cannot)
    if drawn is None or reading is None or not reading.upper < found.value:
        if math.isinf(found.value) and (drawn is not None or reason):
            raise TargetUnreachable(reason or f"No epsilon bounds delta={goal.delta:g}.")
        label = EXACT if question.route == "product" else CERTIFIED
        return made.proved(found, label=label, note=reason, neighboring_relation=relation)
    if reserved and goal.delta is None:
        reading = reading._replace(upper=min(1.0, reading.upper + reserved))
    known = provenance(question, drawn, reading, found.value)
    return made(reading.upper, **known, neighboring_relation=relation)
