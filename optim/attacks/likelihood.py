"""How much does a run really tell? Likelihood ratios of many canaries, against the claimed curve.

The adversary sees every noisy answer and knows everything but whether a canary is in the data. Each
of n canaries has a coordinate of its own, in which its gradient is as long as clipping allows, so
that one run tests n canaries at once: noise and sampling are independent among them. What all
answers say of a canary is its log-likelihood ratio, summed over the steps, and no attack beats it.

Canaries with a positive ratio are called members. Bounds on the two error rates, which hold with
the stated confidence, are compared with the exact trade-off curve of the plan, at other amounts of
noise too: where more noise than a factor s would not allow such errors, the run is no more private
than the plan with s times its noise. The method is that of Nasr et al. 2023, with exact curves.

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
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpcal import _validate
from dpcal.accountants.curves.tradeoff import true_positive_rate
from dpcal.calibrate.plan import Plan, Query
from dpcal.errors import UnsupportedEvent
from dpcal.optim.attacks.recording import Answer, Recorder, Sum, Tape
from dpcal.optim.boundary.observers import observing
from dpcal.optim.objectives.arrays import Rows, Vector, parameters
from dpcal.optim.objectives.base import Objective
from dpcal.optim.registry import find

__all__ = ["Canaries", "Likelihood", "likelihood"]

Flags = NDArray[np.bool_]

# Slope of a canary's loss: clipping acts on it whatever the plan's bound is.
_STEEP = 1e150

# How far noise is searched for, as a factor on the plan's, and how closely.
_LEAST_NOISE, _MOST_NOISE, _PRECISION = 0.02, 50.0, 1e-4


class Canaries(Objective):
    """One record for each parameter, whose gradient is steep along it, or who says nothing.

    Parameters
    ----------
    included
        Which records are there, shape (n,).
    replaced
        Whether a record that is not there is replaced by its opposite.
    """

    def __init__(self, included: Flags, *, replaced: bool = False) -> None:
        self.n = self.dimension = self.penalized = len(included)
        self._signs = np.where(included, 1.0, -1.0 if replaced else 0.0)

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`."""
        return self._signs.tobytes()

    def clipped_sum(self, w: Vector, rows: Rows, max_norm: float) -> Vector:
        """See :meth:`Objective.clipped_sum`."""
        total = np.zeros(self.dimension)
        total[rows] = self._signs[rows] * min(max_norm, _STEEP)
        return total

    def clipped_difference_sum(self, w: Vector, v: Vector, rows: Rows, max_norm: float) -> Vector:
        """See :meth:`Objective.clipped_difference_sum`: losses are lines."""
        return np.zeros(self.dimension)

    def clipped_loss_sum(self, w: Vector, rows: Rows, max_loss: float) -> float:
        """See :meth:`Objective.clipped_loss_sum`."""
        losses = self._signs[rows] * w[rows] * _STEEP
        return float(np.clip(losses, -max_loss, max_loss).sum())

    def loss(self, w: ArrayLike) -> float:
        """Return the mean loss at ``w``, shape (n,). Not private."""
        return float(self._signs @ parameters(w, self.dimension)) * _STEEP / self.n


@dataclass(frozen=True, kw_only=True, eq=False)
class Likelihood:
    """What an attack by likelihood ratios showed.

    Parameters
    ----------
    epsilon
        A lower bound on epsilon at ``delta``: that of the plan with ``scale`` times its noise. It
        is for runs of the plan's kind, with however much noise.
    alone
        A lower bound on epsilon from the two error rates alone, for any mechanism.
    claim, delta
        The plan's.
    scale
        The run has no more than so many times the planned noise.
    confidence
        With which ``epsilon``, and ``alone``, hold.
    false_positive_rate, true_positive_rate
        Upper and lower bound on the attack's rates.
    samples
        How many canaries there were, half of them members on average.
    members, others
        Their log-likelihood ratios.
    """

    epsilon: float
    alone: float
    claim: float
    delta: float
    scale: float
    confidence: float
    false_positive_rate: float
    true_positive_rate: float
    samples: int
    members: Vector
    others: Vector

    @property
    def holds(self) -> bool:
        """Whether the lower bound is within the claim."""
        return self.epsilon <= self.claim and self.alone <= self.claim

    def rates(self, points: int = 200) -> tuple[Vector, Vector]:
        """Return false-positive and false-negative rates at many levels, shape (points,) each."""
        levels = np.quantile(np.concatenate([self.members, self.others]), np.linspace(0, 1, points))
        positives = 1 - np.searchsorted(np.sort(self.others), levels, "right") / len(self.others)
        negatives = np.searchsorted(np.sort(self.members), levels, "right") / len(self.members)
        return positives, negatives

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON values, without the ratios."""
        named = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return {k: v for k, v in named.items() if k not in ("members", "others")} | {
            "holds": self.holds
        }

    def __str__(self) -> str:
        return (
            f"epsilon is at least {self.epsilon:.4g} at delta {self.delta:.3g}, claimed "
            f"{self.claim:.4g} ({self.samples} canaries, confidence {self.confidence:g}): the "
            f"noise is at most {self.scale:.4g} times the planned one; "
            f"from error rates alone epsilon is at least {self.alone:.4g}"
        )


def likelihood(
    plan: Plan,
    *,
    run: Callable[[Objective, Plan], Any] | None = None,
    samples: int = 1_000_000,
    confidence: float = 0.99,
    seed: int | None = None,
) -> Likelihood:
    """Attack runs of a plan by likelihood ratios, and bound epsilon from below.

    Parameters
    ----------
    plan
        Of gradients on all records or on Poisson samples, with independent noise.
    run
        Called with an objective and the plan; trains with oracles that it opens itself. The plan's
        optimizer when omitted. The objective has as many parameters as records.
    samples
        How many canaries, at least 1000; as many runs as that takes, n canaries each.
    confidence
        In (0, 1), of each bound; a claim that holds is accused with at most the rest.
    seed
        An integer >= 0 to make the attack repeatable; fresh entropy when omitted.

    Raises
    ------
    UnsupportedEvent
        If answers are about other samples, or noise is correlated: then canaries are not
        independent of each other.
    """
    for query in plan.queries:
        if query.sampler not in ("full", "poisson") or query.composition == "disjoint":
            raise UnsupportedEvent(
                "likelihood ratios are for answers about all records or Poisson samples, got query "
                f"{query.name!r} with sampler {query.sampler!r}, {query.composition}."
            )
        if query.correlation is not None:
            raise UnsupportedEvent(f"query {query.name!r} has correlated noise.")
    _validate.probability(confidence=confidence)
    if _validate.count(samples=samples) < 1000:
        raise ValueError(f"samples must be at least 1000, got {samples}.")
    run = find(plan.optimizer).optimizer() if run is None else run
    members, others = _ratios(plan, run, math.ceil(samples / plan.n), seed)
    return _judged(plan, members, others, confidence)


def _ratios(
    plan: Plan, run: Callable[[Objective, Plan], Any], runs: int, seed: int | None
) -> tuple[Vector, Vector]:
    """Return the ratios of members and of others, over several runs."""
    rng = np.random.default_rng(secrets.randbits(128) if seed is None else seed)
    replaced = plan.neighboring_relation == "replace-one"
    members, others = [], []
    for _ in range(runs):
        included = rng.random(plan.n) < 0.5
        watch = _Ratios(Tape(salt=rng.bytes(32)), plan.n, replaced=replaced)
        with observing(watch):
            run(Canaries(included, replaced=replaced), plan)
        members.append(watch.ratios[included])
        others.append(watch.ratios[~included])
    return np.concatenate(members), np.concatenate(others)


class _Ratios(Recorder):
    """Adds up what each answer says of each canary."""

    def __init__(self, tape: Tape, n: int, *, replaced: bool) -> None:
        super().__init__(tape)
        self._n, self._replaced = n, replaced
        self.ratios = np.zeros(n)

    def take(self, due: Sum, query: Query, release: Callable[[], Vector], **about: Any) -> Answer:
        """Release a sum; keep its likelihood ratios, and nothing else."""
        answer = Answer(**vars(due), query=query, mean=release(), **about)
        if due.kind == "gradient":
            x = answer.mean * answer.size / due.bound
            q, z = answer.size / self._n, query.noise_multiplier
            self.ratios += _log_ratio(x, q, z)
            if self._replaced:
                self.ratios -= _log_ratio(-x, q, z)
        return answer


def _log_ratio(x: Vector, q: float, z: float) -> Vector:
    """Return log of (1 - q) N(0, z^2) + q N(1, z^2) over N(0, z^2), at x."""
    exponent = (x - 0.5) / z**2
    return exponent if q == 1 else np.logaddexp(math.log1p(-q), math.log(q) + exponent)


def _judged(plan: Plan, members: Vector, others: Vector, confidence: float) -> Likelihood:
    """Bound the error rates, and find the noise that would allow them."""
    chance = (1 - confidence) / 2
    most, least = _rates(members, others, 0.0, chance)
    scale = _MOST_NOISE
    if least > most:
        scale = _largest_noise(plan, most, least)
    epsilon = float(_scaled(plan, scale).price().lower) if least > most else 0.0
    return Likelihood(
        epsilon=epsilon,
        alone=_alone(members, others, plan.delta, chance),
        claim=plan.epsilon,
        delta=plan.delta,
        scale=scale,
        confidence=confidence,
        false_positive_rate=most,
        true_positive_rate=least,
        samples=len(members) + len(others),
        members=members,
        others=others,
    )


def _rates(members: Vector, others: Vector, level: float, chance: float) -> tuple[float, float]:
    """Return an upper bound on false and a lower bound on true positives (Clopper, Pearson)."""
    alarms, hits = int((others > level).sum()), int((members > level).sum())
    most = (
        special.betaincinv(alarms + 1, len(others) - alarms, 1 - chance)
        if (alarms < len(others))
        else 1.0
    )
    least = special.betaincinv(hits, len(members) - hits + 1, chance) if hits else 0.0
    return float(most), float(least)


def _scaled(plan: Plan, scale: float) -> Plan:
    """Return the plan with so many times its noise."""
    return dataclasses.replace(
        plan,
        queries=tuple(
            dataclasses.replace(
                query,
                noise_multiplier=scale * query.noise_multiplier,
                budget=None if query.budget is None else scale * query.budget,
            )
            for query in plan.queries
        ),
    )


def _largest_noise(plan: Plan, most: float, least: float) -> float:
    """Return a factor on the noise at which no test has rates so good, as small as can be told."""
    low, high = _LEAST_NOISE, _MOST_NOISE
    while high > low * (1 + _PRECISION):
        middle = math.sqrt(low * high)
        power = true_positive_rate(
            _scaled(plan, middle).event,
            false_positive_rate=most,
            neighboring_relation=plan.neighboring_relation,
        )
        low, high = (low, middle) if power.upper < least else (middle, high)
    return high


def _alone(members: Vector, others: Vector, delta: float, chance: float) -> float:
    """Bound epsilon by rates alone: a tenth of the canaries chooses the level, the rest test it."""
    some = [len(ratios) // 10 for ratios in (members, others)]

    def bound(level: float, first: Vector, second: Vector) -> float:
        most, least = _rates(first, second, level, chance)
        return math.log((least - delta) / most) if least > delta else -math.inf

    choosing = members[: some[0]], others[: some[1]]
    levels = np.quantile(np.concatenate(choosing), np.linspace(0.02, 0.995, 40))
    best = max(levels, key=lambda level: bound(float(level), *choosing))
    return max(0.0, bound(float(best), members[some[0] :], others[some[1] :]))
