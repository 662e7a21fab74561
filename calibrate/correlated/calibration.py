"""Smallest noise multiplier of correlated noise for a target, by proofs and by draws.

The search uses common random numbers: the same draws at every noise multiplier, so that the
estimate is a smooth function. The result is biased towards these draws. Independent draws therefore
confirm it, a few times with more noise if needed. The failure probabilities of all confirmations
that may happen are part of delta. A deterministic bound is the answer where it needs less noise, or
where the draws do not suffice.

>>> from dpcal.accountants import correlated, matrix
>>> from dpcal.calibrate.correlated import noise_multiplier
>>> run = matrix.LambdaCGD(64, 0.5)
>>> found = noise_multiplier(run, correlated.Poisson(0.02), epsilon=2.0, delta=1e-3, draws=20_000,
...                          seed=0)
>>> found.confirmation <= 1e-3, found.confirmation.label, 0.5 < found.noise_multiplier < 1.5
(True, 'statistical with certified confidence', True)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from dpcal._internal import validate
from dpcal._internal.roots import NoBracket, Stop, newton, secant
from dpcal.accountants import events
from dpcal.accountants.correlated import CorrelatedDelta, Sampler
from dpcal.accountants.correlated.answers import CERTIFIED, EXACT
from dpcal.accountants.correlated.bounds.base import Proof
from dpcal.accountants.correlated.draws import evidence
from dpcal.accountants.correlated.draws.montecarlo import draws_enough
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.correlated.price import Goal, Options, Question
from dpcal.calibrate.noise import noise_multiplier as independent_noise
from dpcal.errors import DrawsCannotTell, TargetUnreachable, warn_caller

_Cost = Callable[[float], float]

# Each test has an equal part of the failure probability.
CONFIRMATIONS = 4
# Factor on the noise that the search found: the first test rarely fails.
_AIM = 1.01
# Factor on the noise that a failed test's answer requires.
_MARGIN = 1.003
# Factor on the noise after a test that proves nothing: terms become smaller.
_RAISED = 1.05
# Most plain draws, over the given draws: other draws need a quarter more noise.
_MORE = 3
# One in this many draws is for the search, which needs digits and no proof.
_SEARCH = 8
# Parts of the proved noise: the most that draws may need, and about where their search begins.
_WORTH, _GAIN = 0.97, 0.85
# Over independent steps' noise (runs need 1.36 to 1.54): a start by draws, unless proofs need more.
_ABOVE, _LOOSE = 1.45, 3.0
# Powers by which epsilon falls with noise where it is not measured: by draws, and by proofs.
_FALL, _STEEP = 1.3, 1.7
# Relative widths: exact epsilons, proofs, proofs that end draws (less than they save), and draws.
_EXACT, _PROVED, _ROUGH, _DRAWN = 1e-8, 5e-4, 2e-2, 5e-3
_FARTHEST = 1e6
_STEPS = 60
_TINY = 1e-12


@dataclass(frozen=True)
class CalibratedNoise:
    """A noise multiplier that meets a target, and how that is known.

    Attributes
    ----------
    noise_multiplier
        Standard deviation of z, in units of the clipping norm; not divided by a norm of C.
    method
        Name of the theorem, the bound or the draws.
    label
        Certainty of the multiplier: ``"exact"`` or ``"upper bound"`` for known schedules, a label
        of :mod:`dpcal.accountants.correlated` for random batches.
    confirmation
        The delta at the target's epsilon. If draws confirm it, the search did not use them, and the
        failure probabilities of all confirmations that may have happened are part of it.
    reason
        Reason why the multiplier is proved although draws were wanted; empty otherwise.
    """

    noise_multiplier: float
    method: str
    label: str
    confirmation: CorrelatedDelta | None = None
    reason: str = ""

    def warn(self) -> None:
        """Warn of an answer that is proved although draws were wanted."""
        if self.reason:
            warn_caller(
                f"the noise multiplier {self.noise_multiplier:.4g} is proved and not drawn; more "
                f"draws may need less noise: {self.reason}",
                RuntimeWarning,
            )


@dataclass(frozen=True)
class Calibration:
    """Search for the smallest noise multiplier of a run that meets a target.

    Parameters
    ----------
    mechanism
        The strategy, at any noise multiplier.
    sampler
        Sampler of the batches.
    epsilon, delta
        The target.
    options
        Settings of the draws. The failure probability covers all confirmations together; the seed
        fixes the search and every confirmation. If plain draws need at most three times the given
        number, the number is raised to it.
    """

    mechanism: Mechanism
    sampler: Sampler
    epsilon: float
    delta: float
    options: Options

    def __post_init__(self) -> None:
        if not self._draws:
            return
        plain = draws_enough(self._left, failure_probability=0.5 * self.failure)
        if self.options.draws < plain <= _MORE * self.options.draws:
            object.__setattr__(self, "options", replace(self.options, draws=plain))

    @cached_property
    def exact(self) -> bool:
        """Whether the run is a composition, so that its epsilon is known exactly."""
        return self.question(1.0).route == "product"

    @property
    def failure(self) -> float:
        """The failure probability of each confirmation."""
        return self.options.failure(self.delta) / CONFIRMATIONS

    @property
    def _left(self) -> float:
        """The part of delta that does not belong to the other confirmations."""
        return self.delta - (CONFIRMATIONS - 1) * self.failure

    @property
    def _goal(self) -> Goal:
        return Goal(delta=self._left, near=self.epsilon)

    @property
    def _draws(self) -> bool:
        """Whether draws are made."""
        return not self.exact and self.options.statistics != "none"

    def question(self, sigma: float, **changes: Any) -> Question:
        """Return the run with a noise multiplier, and with other draws."""
        return Question.of(self.mechanism, self.sampler, sigma, replace(self.options, **changes))

    def least(self) -> CalibratedNoise:
        """Return the least multiplier by draws, or by proofs where draws save no noise.

        A deterministic bound meets the target to a relative 5e-4, an exact epsilon to 1e-8.

        Raises
        ------
        TargetUnreachable
            If no multiplier meets the target.
        """
        start, reason = self._start, ""
        if self._draws:
            top = math.inf
            with suppress(TargetUnreachable):
                start = top = self._proved(start, _ROUGH)
            found, reason = self._drawn(top)
            if found is not None:
                return found
        width, label = (_EXACT, EXACT) if self.exact else (_PROVED, CERTIFIED)
        try:
            sigma = self._proved(start, width)
        except TargetUnreachable as error:
            raise TargetUnreachable(reason or str(error)) from error
        return CalibratedNoise(sigma, self._bound(sigma).method, label, reason=reason)

    @cached_property
    def _start(self) -> float:
        """A first guess: the noise of independent steps, times the largest column.

        Repeated rounds add up.
        """
        T, epochs = self.mechanism.steps, self.sampler.epochs(self.mechanism.steps)
        rate = min(1.0, max(float(self.sampler.automaton(T).rates.mean()), 1e-12))

        def event(sigma: float) -> events.DpEvent:
            return events.dpsgd(sampling_probability=rate, noise_multiplier=sigma, steps=T)

        found = independent_noise(event, epsilon=max(self.epsilon, 1e-3), delta=self.delta)
        repeated = 1 if epochs is None else epochs.repeated
        return found * math.sqrt(repeated * float(self.mechanism.unit.energies.max()))

    @cached_property
    def _bound(self) -> Callable[[float], Proof]:
        """The proved epsilon of a multiplier, which is computed once."""
        return cache(lambda sigma: self.question(sigma).proved.epsilon(self.delta))

    def _proved(self, start: float, width: float) -> float:
        return _least(lambda sigma: self._bound(sigma).value, self.epsilon, start, width, _STEEP)

    def _drawn(self, top: float) -> tuple[CalibratedNoise | None, str]:
        """Return a multiplier below ``top`` that independent draws confirm, or why there is none.

        The reason is empty where draws confirm no multiplier that is as small.
        """
        state = np.random.SeedSequence(self.options.seed).generate_state
        # Stores keep seeds as signed whole numbers.
        first, *seeds = (int(word) >> 1 for word in state(CONFIRMATIONS + 1, np.uint64))
        sigma, reason = self._searched(first, top)
        for seed in seeds:
            # Proofs may need no more noise than this.
            if sigma * (1 + _ROUGH) >= top:
                return None, reason
            try:
                needed, confirmation = self._tested(sigma, seed)
            except DrawsCannotTell as error:
                sigma, reason = sigma * _RAISED, str(error)
                continue
            if confirmation is not None:
                known = confirmation.method, confirmation.label, confirmation
                return CalibratedNoise(sigma, *known), ""
            ratio, reason = min(needed / max(self.epsilon, 1e-9), 4.0), ""
            sigma *= _MARGIN * ratio ** (1 / _FALL)
        return None, (
            f"No noise multiplier near {sigma:.4g} was confirmed for epsilon={self.epsilon!r} at "
            f"delta={self.delta!r}: the draws are too few to tell. Choose more draws."
        )

    def _searched(self, seed: int, top: float) -> tuple[float, str]:
        """Return the multiplier that will probably be confirmed; infinite, with a reason, if none.

        The same draws at every multiplier make the estimate a smooth function of it.
        """
        few, reason = max(1, self.options.draws // _SEARCH), ""

        def estimate(sigma: float) -> float:
            nonlocal reason
            question = self.question(sigma, seed=seed, draws=few, failure_probability=self.failure)
            try:
                draws = self.options.draws
                return evidence.collected(question, self._goal, draws).expected(self._left, draws)
            except DrawsCannotTell as error:
                reason = str(error)
                return math.inf

        late = _LOOSE * self._start < top < math.inf
        start = _GAIN * top if late else min(_GAIN * top, _ABOVE * self._start)
        try:
            aim = self.epsilon, start, _DRAWN, _FALL, _WORTH * top / _AIM
            return _AIM * _least(estimate, *aim), ""
        except TargetUnreachable as error:
            return math.inf, reason or str(error)

    def _tested(self, sigma: float, seed: int) -> tuple[float, CorrelatedDelta | None]:
        """Return the epsilon of a multiplier by fresh draws, and delta if both meet the target."""
        question = self.question(sigma, seed=seed, failure_probability=self.failure)
        drawn = evidence.collected(question, self._goal)
        needed, at = drawn.epsilon(self._left).upper, drawn.at(self.epsilon)
        upper = at.upper + (CONFIRMATIONS - 1) * self.failure
        if needed > self.epsilon or upper > self.delta:
            return needed, None
        known = evidence.provenance(question, drawn, at._replace(upper=upper), math.inf)
        return needed, CorrelatedDelta(upper, **known)


def _least(
    cost: _Cost, goal: float, start: float, width: float, fall: float, most: float = math.inf
) -> float:
    """Return about the least multiplier, at most ``most``, with a cost that meets the goal.

    The cost of the multiplier meets the goal, and is within a relative ``width`` of it; or a
    multiplier within ``width`` of the result does not meet the goal.

    Raises
    ------
    TargetUnreachable
        If none does.
    """

    def excess(x: float) -> float:
        at = cost(math.exp(x))
        # The search aims at the middle of the costs at which it ends.
        value = math.log(max(at, _TINY) / max(goal, _TINY)) + 0.5 * width
        if at > goal:
            return max(value, width)
        return 0.0 if value > -0.5 * width else value

    near, reach = math.log(start), math.log(_FARTHEST)
    last = min(near + reach, math.log(most))
    stop = Stop(absolute=width, value=_TINY, evaluations=_STEPS)
    try:
        sides = newton(secant(excess, -fall), min(near, last), near - reach, last, stop)
    except NoBracket as search:
        if search.meets:
            return math.exp(search.at)
        raise TargetUnreachable("No noise multiplier meets the target by these bounds.") from search
    return math.exp(sides.meet)


def noise_multiplier(
    strategy: Any,
    sampler: Sampler,
    *,
    epsilon: float,
    delta: float,
    failure_probability: float | None = None,
    seed: int | None = None,
    **options: Any,
) -> CalibratedNoise:
    """Return a noise multiplier that meets (epsilon, delta) under correlated noise.

    Parameters
    ----------
    strategy, sampler
        The matrix C, a :class:`~dpcal.accountants.matrix.Strategy`, and a sampler of
        :mod:`dpcal.accountants.correlated`.
    epsilon, delta
        The target: epsilon >= 0 and delta in (0, 1).
    failure_probability
        Failure probability of all confirmations together, a part of delta; default delta / 100.
    seed
        Whole number that fixes the draws; fresh and secret by default.
    **options
        Settings of the draws: fields of
        :class:`~dpcal.accountants.events.CorrelatedGaussianDpEvent`.

    Returns
    -------
    CalibratedNoise
        Multiplier with the confirming answer; it is within about 1% of the least one at 100,000
        draws. It is never larger than the multiplier that deterministic bounds prove.

    Raises
    ------
    TargetUnreachable
        If no multiplier meets the target, by draws or by proofs.

    Warns
    -----
    RuntimeWarning
        If a deterministic bound is the answer although draws were wanted.
    """
    target = validate.probability(delta=delta)
    at = validate.non_negative(epsilon=epsilon)
    draws = Options(failure_probability=failure_probability, seed=seed, **options)
    calibration = Calibration(Mechanism.of(strategy), sampler, at, target, draws)
    found = calibration.least()
    found.warn()
    if found.confirmation is not None:
        return found
    known = calibration.question(found.noise_multiplier).proved.proof(at)
    # The proof of epsilon at this delta is also a proof of this delta.
    known = known._replace(value=min(known.value, target))
    return replace(found, confirmation=CorrelatedDelta.proved(known, label=found.label))
