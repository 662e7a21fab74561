"""What does a run with correlated noise and random batches cost? The functions that answer.

>>> import numpy as np
>>> from types import SimpleNamespace
>>> from dpcal.accountants import correlated
>>> identity = SimpleNamespace(steps=1000, matrix=lambda: np.eye(1000))
>>> answer = epsilon(identity, correlated.Poisson(0.01), noise_multiplier=0.8, delta=1.76713759e-5)
>>> print(f"{answer:.6f} {answer.label}")
3.000000 exact
>>> C = np.tril(0.5 ** np.maximum(np.subtract.outer(np.arange(100), np.arange(100)), 0))
>>> run = SimpleNamespace(steps=100, matrix=lambda: C, decay=0.5)
>>> answer = epsilon(run, correlated.Poisson(0.01), noise_multiplier=2.0, delta=1e-3, draws=40_000,
...                  seed=0)
>>> print(answer.label, answer.lower < answer.estimate < answer < answer.certified)
statistical with certified confidence True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpcal import _validate
from dpcal.accountants.correlated.answers import CorrelatedDelta, CorrelatedEpsilon
from dpcal.accountants.correlated.bounds import Compositions, Revealed
from dpcal.accountants.correlated.draws.choice import Goal
from dpcal.accountants.correlated.draws.evidence import Evidence, Reading, collected
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.correlated.question import Options, Question
from dpcal.accountants.correlated.table import CERTIFIED, EXACT, STATISTICAL, WITH_CONFIDENCE
from dpcal.accountants.samplers import Sampler
from dpcal.errors import DrawsCannotTell, TargetUnreachable

__all__ = ["Confirmed", "confirmed", "delta", "delta_of", "epsilon", "epsilon_of", "revealed_delta"]


def epsilon(
    strategy: Any,
    sampler: Sampler,
    *,
    delta: float,
    noise_multiplier: float,
    **options: Any,
) -> CorrelatedEpsilon:
    """Return the epsilon of a run with correlated noise and random batches.

    Parameters
    ----------
    strategy
        Has ``steps``, ``matrix()`` (dense lower-triangular C), and possibly ``decay``, if
        ``C[t, u] = decay^(t - u)``. Of entries of both signs, the absolute values count.
    sampler
        One of this package's samplers.
    delta
        A number in (0, 1).
    noise_multiplier
        Standard deviation > 0 of Z, in units of the clipping norm. It is not divided by a norm of
        C: papers that write z for sigma over the largest column norm mean ``z *
        Mechanism.of(strategy, noise_multiplier=1).largest_column`` here.
    statistics
        ``"certified"`` (default): draws with a confidence bound that holds at every sample size,
        and whose failure probability is part of delta. ``"asymptotic"``: importance sampling with a
        normal interval, for small delta with few draws. ``"none"``: deterministic bounds only.
    draws
        Monte Carlo draws for each direction, default 100,000.
    failure_probability
        That the draws mislead; default delta / 100, or 0.05 for normal intervals.
    seed
        Fixes the draws; fresh and secret by default.
    arithmetic
        ``"validated"`` (default) or ``"bracketed"`` likelihood ratios, for lambda-CGD.
    particles
        For matrices without structure.
    executor
        A ``concurrent.futures`` executor or a Dask client that spreads the chunks of draws.
    progress
        True for a bar (needs tqdm), or a function of chunks done and chunks in all.
    checkpoint, save_every
        File that draws are saved to and resumed from, and chunks >= 1 between two saves.

    Returns
    -------
    CorrelatedEpsilon
        The upper end, with ``.label``, ``.lower``, ``.estimate`` and the deterministic bound
        ``.certified`` beside it. The relation is zero-out: one record's contributions are left out.
        The answer never exceeds the deterministic bound, which also answers where the draws do not
        tell; ``.note`` then says what was missing.

    Raises
    ------
    UnsupportedEvent
        With the reason, where no theorem covers the pair.
    TargetUnreachable
        Where neither draws nor a deterministic bound give a finite epsilon.
    """
    target = _validate.probability(delta=delta)
    question = Question.of(strategy, sampler, noise_multiplier, Options(**options))
    return epsilon_of(question, target)


def delta(
    strategy: Any,
    sampler: Sampler,
    *,
    epsilon: float,
    noise_multiplier: float,
    **options: Any,
) -> CorrelatedDelta:
    """Return the delta of a run with correlated noise and random batches at an epsilon >= 0.

    Parameters
    ----------
    strategy
        Has ``steps``, ``matrix()`` (dense lower-triangular C), and possibly ``decay``.
    sampler
        One of this package's samplers.
    epsilon
        At least 0.
    noise_multiplier
        Standard deviation > 0 of Z, in units of the clipping norm.
    **options
        How draws are made: the keywords of :func:`epsilon`. The failure probability of certified
        confidence (default 1e-9) is added to the delta.

    Raises
    ------
    UnsupportedEvent
        With the reason, where no theorem covers the pair.
    """
    at = _validate.non_negative(epsilon=epsilon)
    question = Question.of(strategy, sampler, noise_multiplier, Options(**options))
    return delta_of(question, at)


def epsilon_of(question: Question, target: float) -> CorrelatedEpsilon:
    """Return the epsilon of a question at a delta in (0, 1)."""
    if question.route == "product":
        assert isinstance(question.proved, Compositions)
        worst, lower = question.proved.epsilon_answer(target)
        method = f"composition of sampled Gaussians, {worst.method}"
        return CorrelatedEpsilon(
            worst.upper,
            lower=lower,
            method=method,
            label=EXACT,
            estimate=worst.upper,
            certified=worst.upper,
        )
    found = question.proved.epsilon(target)
    reading, drawn = _drawn(question, Goal(delta=target))
    if isinstance(drawn, str) or not reading.upper < found.value:
        if math.isinf(found.value) and not (isinstance(drawn, str) and not drawn):
            raise TargetUnreachable(
                drawn
                if isinstance(drawn, str) and drawn
                else f"No epsilon bounds delta={target:g}."
            )
        lower = question.proved.lower_epsilon(target)
        return CorrelatedEpsilon(found.value, **_certified(found.value, found.method, drawn, lower))
    return CorrelatedEpsilon(reading.upper, **_statistical(question, drawn, reading, found.value))


def delta_of(question: Question, at: float) -> CorrelatedDelta:
    """Return the delta of a question at an epsilon >= 0."""
    if question.route == "product":
        assert isinstance(question.proved, Compositions)
        worst, lower = question.proved.delta_answer(at)
        method = f"composition of sampled Gaussians, {worst.method}"
        return CorrelatedDelta(
            worst.upper,
            lower=lower,
            method=method,
            label=EXACT,
            estimate=worst.upper,
            certified=worst.upper,
        )
    bound, method = question.proved.delta(at), question.proved.log_delta(at).method
    reading, drawn = _drawn(question, Goal(epsilon=at))
    if isinstance(drawn, str) or not reading.upper < bound:
        lower = question.proved.lower_delta(at)
        return CorrelatedDelta(bound, **_certified(bound, method, drawn, lower))
    return CorrelatedDelta(reading.upper, **_statistical(question, drawn, reading, bound))


@dataclass(frozen=True)
class Confirmed:
    """One run's epsilon and delta from the same draws, for a calibrator.

    Attributes
    ----------
    noise_multiplier
        That of the run.
    meets
        Whether the run meets the target.
    epsilon
        The epsilon at the target's delta.
    delta
        The delta at the target's epsilon.
    seed
        What fixes the draws.
    count
        How many confirmations there have been.
    """

    noise_multiplier: float
    meets: bool
    epsilon: Reading
    delta: CorrelatedDelta
    seed: int
    count: int


def confirmed(
    question: Question, *, epsilon: float, delta: float, reserved: float, count: int
) -> Confirmed:
    """Return what one set of draws says about a target.

    Parameters
    ----------
    question
        The run.
    epsilon, delta
        The target.
    reserved
        The part of delta that belongs to other confirmations.
    count
        How many confirmations there have been.

    Raises
    ------
    DrawsCannotTell
        If these draws bound nothing.
    """
    evidence = collected(question, Goal(delta=delta - reserved))
    reading, at = evidence.epsilon(delta - reserved), evidence.at(epsilon)
    meets = reading.upper <= epsilon and at.upper + reserved <= delta
    bound = question.proved.delta(epsilon) if meets else math.inf
    made = at._replace(upper=min(1.0, at.upper + reserved))
    answer = CorrelatedDelta(made.upper, **_statistical(question, evidence, made, bound))
    seed = int(question.options.seed or 0)
    return Confirmed(question.mechanism.sigma, meets, reading, answer, seed, count)


def _drawn(question: Question, goal: Goal) -> tuple[Reading, Evidence | str]:
    """What draws say, and the draws; or why they say nothing."""
    nothing = Reading(0.0, 0.0, math.inf)
    if question.options.statistics == "none":
        return nothing, ""
    try:
        evidence = collected(question, goal)
    except DrawsCannotTell as reason:
        return nothing, str(reason)
    if goal.delta is not None:
        return evidence.epsilon(goal.delta), evidence
    return evidence.at(goal.epsilon or 0.0), evidence


def _certified(
    bound: float, method: str, drawn: Evidence | str, lower: float = 0.0
) -> dict[str, Any]:
    """What an answer says that needs no draws."""
    return {
        "lower": min(lower, bound),
        "method": method,
        "label": CERTIFIED,
        "estimate": bound,
        "certified": bound,
        "note": drawn if isinstance(drawn, str) else "",
    }


def _statistical(
    question: Question, evidence: Evidence, reading: Reading, bound: float
) -> dict[str, Any]:
    """What an answer says that rests on draws."""
    return {
        "lower": reading.lower,
        "method": f"{question.name}: {evidence.name}",
        "label": WITH_CONFIDENCE if evidence.proved else STATISTICAL,
        "estimate": reading.estimate,
        "failure_probability": evidence.failure_probability,
        "draws": evidence.draws,
        "seed": question.options.seed,
        "certified": bound,
    }


def revealed_delta(
    strategy: Any,
    sampler: Sampler,
    *,
    epsilon: float,
    noise_multiplier: float,
) -> CorrelatedDelta:
    """Return a bound on delta that needs no secret about who took part in which round.

    Parameters
    ----------
    strategy
        The matrix C: a :class:`~dpcal.accountants.matrix.Strategy`, or an object with ``steps`` and
        ``matrix()``.
    epsilon
        At least 0.
    noise_multiplier
        Standard deviation > 0 of z, in units of the clipping norm.
    sampler
        Any sampler, :class:`~dpcal.accountants.correlated.FixedSize` among them: only the law of
        the number of participations matters.

    Notes
    -----
    Joint convexity of the hockey-stick divergence over patterns; within a pattern the mechanism is
    Gaussian with sensitivity ||C y|| (Denisov et al. 2022).
    """
    at = _validate.non_negative(epsilon=epsilon)
    mechanism = Mechanism.of(strategy, noise_multiplier=noise_multiplier)
    bound = Revealed(mechanism, sampler.participation_law(mechanism.steps))
    found = bound.delta(at)
    return CorrelatedDelta(found, **_certified(found, bound.method, ""))
