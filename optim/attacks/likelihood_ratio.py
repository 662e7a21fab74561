"""Likelihood ratios of many canaries in a run, against the claimed curve.

The adversary sees every noisy answer and knows everything except whether a canary is in the data.
Each of n canaries has a coordinate of its own, in which its gradient is as long as clipping allows,
so that one run tests n canaries at once: their noise is independent. The evidence of all answers
about a canary is its log-likelihood ratio (:mod:`dpcal.optim.attacks.evidence`), which is the most
powerful test.

Canaries with a positive ratio are called members. Bounds on the two error rates, which hold with
the stated confidence, are compared with the exact trade-off curve of the plan, at other amounts of
noise too: if noise of more than s times the plan's would not allow such errors, the run is at most
as private as the plan with s times its noise. The method is due to Nasr et al. 2023; the curves
here are exact.

>>> from dpcal import calibrate
>>> plan = calibrate.dpsgd(n=2_000, batch_size=200, steps=50, epsilon=2.0, delta=1e-5)
>>> found = likelihood(plan, samples=40_000, seed=1)
>>> found.holds, bool(found.epsilon > 1.5)
(True, True)
"""

from __future__ import annotations

import dataclasses
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.sums import grid_step
from dpcal._internal import validate
from dpcal._internal.roots import NoBracket, Sides, Stop, bisect, bracket
from dpcal.accountants.curves.tradeoff import true_positive_rate
from dpcal.accountants.events import CorrelatedGaussianDpEvent
from dpcal.calibrate.plan import Plan, Query
from dpcal.optim.attacks.evidence import Evidence
from dpcal.optim.attacks.rates import LowerBound, at_a_level, independent, together
from dpcal.optim.attacks.recording import Answer, Recorder, Sum, Tape
from dpcal.optim.boundary.noise import observing
from dpcal.optim.objectives.arrays import Rows, Vector
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.contributions import Asked, Contributions, trusted
from dpcal.optim.registry import find

Flags = NDArray[np.bool_]

# Size of a canary's loss: far above bounds in use, so that its gradient is always clipped.
_STEEP = 1e150
# Coordinate from which a canary's loss is constant, so that it stays finite.
_LARGEST = 200.0

_LEAST_NOISE, _MOST_NOISE, _PRECISION = 0.02, 50.0, 1e-4


@trusted
class Canaries(Objective):
    """Objective with one canary record for each parameter.

    The loss of an included canary i is a large number times exp(w_i): its gradient is as long as
    any bound allows at every w, and so is the difference of its gradients at two w with different
    coordinates i. The loss of an excluded canary is zero, or the opposite loss if ``replaced``.
    """

    def __init__(self, included: Flags, *, replaced: bool = False) -> None:
        self.n = self.dimension = self.penalized = len(included)
        self._signs = np.where(included, 1.0, -1.0 if replaced else 0.0)

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`."""
        return self._signs.tobytes()

    def fingerprints(self, key: bytes) -> list[bytes]:
        """Return a random digest of each canary: equal canaries of two silos are two records."""
        return [secrets.token_bytes(16) for _ in range(self.n)]

    def contributions(self, rows: Rows, *at: Vector) -> Contributions:
        """See :meth:`Objective.contributions`: gradients grow with the coordinate."""
        toward = np.ones(self.dimension) if len(at) == 1 else np.sign(at[0] - at[1])
        signs = np.zeros(self.dimension)
        signs[rows] = (self._signs * toward)[rows]

        def whole(bound: float) -> NDArray[np.int64]:
            most = math.floor(bound / grid_step(bound)) - 1
            return (signs * most).astype(np.int64)

        return Asked(self.dimension, lambda bound: signs * min(bound, _STEEP), whole)

    def record_losses(self, w: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.record_losses`."""
        return np.asarray(self._signs[rows] * np.exp(np.minimum(w[rows], _LARGEST)) * _STEEP)


@dataclass(frozen=True, kw_only=True, eq=False)
class Likelihood(LowerBound):
    """Outcome of an attack by likelihood ratios.

    ``epsilon`` is the epsilon of the plan with ``scale`` times its noise: it is for runs of the
    plan's kind, with any amount of noise. See :class:`LowerBound` for the other parameters.

    Parameters
    ----------
    alone
        A lower bound on epsilon from only the two error rates, for any mechanism.
    scale
        Upper bound on the run's noise, in units of the planned noise. NaN where the trade-off curve
        of the plan is not known (correlated noise on samples): then ``epsilon`` is ``alone``.
    false_positive_rate, true_positive_rate
        Upper and lower bound on the attack's rates.
    members, others
        The log-likelihood ratios of canaries in the data, and of the others.
    """

    alone: float
    scale: float
    false_positive_rate: float
    true_positive_rate: float
    members: Vector
    others: Vector

    @property
    def holds(self) -> bool:
        """Whether both lower bounds are within the claim."""
        return max(self.epsilon, self.alone) <= self.claim

    def rates(self, points: int = 200) -> tuple[Vector, Vector]:
        """Return false-positive and false-negative rates at many levels, shape (points,) each."""
        levels = np.quantile(np.concatenate([self.members, self.others]), np.linspace(0, 1, points))
        positives = 1 - np.searchsorted(np.sort(self.others), levels, "right") / len(self.others)
        negatives = np.searchsorted(np.sort(self.members), levels, "right") / len(self.members)
        return positives, negatives

    def __str__(self) -> str:
        found = super().__str__()
        if math.isnan(self.scale):
            return f"{found}, from error rates alone"
        return (
            f"{found}: the noise is at most {self.scale:.4g} times the planned one; "
            f"from error rates alone epsilon is at least {self.alone:.4g}"
        )


def likelihood(
    plan: Plan,
    *,
    run: Callable[[Any, Plan], Any] | None = None,
    samples: int = 1_000_000,
    confidence: float = 0.99,
    seed: int | None = None,
) -> Likelihood:
    """Attack runs of a plan by likelihood ratios, and bound epsilon from below.

    Parameters
    ----------
    plan
        A plan with answers that are gradients and differences of gradients: about all records,
        Poisson samples, batches of a fixed size or parts of a partition, with independent or
        correlated noise; also over silos, where each silo's own answers are attacked.
    run
        Function of an objective and the plan that trains with oracles that it opens itself. The
        plan's optimizer when omitted. The objective has as many parameters as records. Over silos
        it is a list of objectives.
    samples
        Number of canaries, at least 1000, over as many runs as needed, n canaries each, a silo.
    confidence
        In (0, 1), of each bound: a claim that holds is rejected with probability at most 1 -
        confidence.
    seed
        An integer >= 0 to make the attack repeatable; fresh entropy when omitted.

    Raises
    ------
    UnsupportedEvent
        If answers are norms, losses or means of iterates: then canaries are not independent of each
        other. Use :func:`dpcal.optim.attacks.plant`. Also if a run with correlated noise ends
        early.

    Notes
    -----
    Given the batches, canaries are independent of each other if the queries do not depend on
    released values. Batches of a fixed size are drawn together: their canaries are negatively
    associated. The rates then have Hoeffding's bound, which also holds for negatively associated
    canaries (Shao 2000), in place of Clopper and Pearson's. If the queries depend on released
    values (a walk that ends at a small gradient), canaries are independent except for the common
    decision.
    """
    validate.instance(Plan, plan=plan)
    for query in plan.queries:
        Evidence(query, plan.n)
    validate.probability(confidence=confidence)
    if validate.count(samples=samples) < 1000:
        raise ValueError(f"samples must be at least 1000, got {samples}.")
    run = find(plan.optimizer).optimizer() if run is None else run
    members, others = _ratios(plan, run, samples, seed)
    return _judged(plan, members, others, confidence)


def _ratios(
    plan: Plan, run: Callable[[Any, Plan], Any], samples: int, seed: int | None
) -> tuple[Vector, Vector]:
    """Return the ratios of members and of others, over several runs and all silos."""
    rng = np.random.default_rng(validate.seed(seed=seed))
    replaced = plan.neighboring_relation == "replace-one"
    silos = plan.parameters.get("silos")
    count = int(silos) if isinstance(silos, int) else 1
    members, others = [], []
    for _ in range(math.ceil(samples / (plan.n * count))):
        included = rng.random((count, plan.n)) < 0.5
        canaries = [Canaries(each, replaced=replaced) for each in included]
        watch = _Ratios(Tape(salt=rng.bytes(32)), plan.n, replaced=replaced)
        with observing(watch):
            run(canaries[0] if silos is None else canaries, plan)
        for each, there in zip(canaries, included, strict=True):
            ratios, told = watch.of(each)
            members.append(ratios[there & told])
            others.append(ratios[~there & told])
    return np.concatenate(members), np.concatenate(others)


class _Ratios(Recorder):
    """Adds up the evidence of each answer about each canary, and keeps nothing else."""

    def __init__(self, tape: Tape, n: int, *, replaced: bool) -> None:
        super().__init__(tape)
        self._n, self._replaced = n, replaced
        self._found: dict[tuple[int, str, float, float], Evidence] = {}

    def take(self, due: Sum, query: Query, release: Callable[[], Vector], **about: Any) -> Answer:
        """Release a sum, and hand each canary's coordinate to the evidence of its query."""
        answer = Answer(**vars(due), query=query, mean=release(), **about)
        if due.kind == query.kind:
            toward = 1.0 if len(due.at) == 1 else np.sign(due.at[0] - due.at[1])
            x = toward * answer.mean * answer.size / due.bound
            for sign in (1.0, -1.0) if self._replaced else (1.0,):
                key = (id(due.objective), query.name, query.noise_multiplier, sign)
                if key not in self._found:
                    self._found[key] = Evidence(query, self._n)
                self._found[key].add(sign * x, due.rows)
        return answer

    def of(self, objective: Canaries) -> tuple[Vector, Flags]:
        """Return each canary's log-likelihood ratio, and which canaries are judged.

        Canaries in no part of a partition are left out; the partition is known, and is drawn
        without a look at them.
        """
        total, told = np.zeros(objective.n), np.zeros(objective.n, dtype=bool)
        for (owner, *_, sign), evidence in self._found.items():
            if owner == id(objective):
                total += sign * evidence.log_ratios()
                told |= evidence.told
        return total, told


_SIZED = ("fixed-size", "truncated-poisson")


def _judged(plan: Plan, members: Vector, others: Vector, confidence: float) -> Likelihood:
    """Bound the error rates, and find the noise that would allow them."""
    # Batches of a fixed or largest size make their records dependent.
    fixed = [query for query in plan.queries if query.sampling.name in _SIZED]
    rates = together if any(query.composition == "sequential" for query in fixed) else independent
    found = at_a_level(members, others, delta=plan.delta, confidence=confidence, rates=rates)
    hits, alarms = int((members > 0).sum()), int((others > 0).sum())
    most, least = rates(hits, len(members), alarms, len(others), (1 - confidence) / 2)
    scale, epsilon = math.nan, found.epsilon
    if not isinstance(plan.event, CorrelatedGaussianDpEvent):
        scale = _largest_noise(plan, most, least) if least > most else math.inf
        epsilon = float(_scaled(plan, scale).price().lower) if math.isfinite(scale) else 0.0
    return Likelihood(
        **{**vars(found), "epsilon": epsilon, "claim": plan.epsilon},
        alone=found.epsilon,
        scale=scale,
        false_positive_rate=most,
        true_positive_rate=least,
        members=members,
        others=others,
    )


def _scaled(plan: Plan, scale: float) -> Plan:
    """Return the plan with ``scale`` times its noise."""
    queries = [
        dataclasses.replace(
            query,
            noise_multiplier=scale * query.noise_multiplier,
            budget=query.budget and scale * query.budget,
        )
        for query in plan.queries
    ]
    return dataclasses.replace(plan, queries=tuple(queries), accountant="auto")


def _largest_noise(plan: Plan, most: float, least: float) -> float:
    """Return the smallest factor on the noise that was found to exclude such error rates."""
    relation = plan.neighboring_relation

    def refuted(scale: float) -> bool:
        event = _scaled(plan, scale).event
        power = true_positive_rate(event, false_positive_rate=most, neighboring_relation=relation)
        return power.upper < least

    # The search starts at the planned noise, because far less noise takes long to account for.
    less = refuted(1.0)
    step, last = (0.5, _LEAST_NOISE) if less else (2.0, _MOST_NOISE)
    try:
        near = bracket(lambda s: refuted(s) != less, miss=1.0, start=step, factor=step, last=last)
    except NoBracket as end:
        return end.at if less else math.inf
    sides = Sides(meet=near.miss, miss=near.meet) if less else near
    return bisect(refuted, sides, Stop(relative=_PRECISION)).meet
