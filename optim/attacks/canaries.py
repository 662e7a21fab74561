"""Lower bounds from the output of one run: canaries that a coin includes are guessed from it.

Each of m canaries is put into the data by a fair coin of its own. After one run the attacker sees
only its output, scores the canaries, calls the highest ones present and the lowest ones absent, and
abstains from the rest. If too many guesses are right, the run is less private than it claims: the
recursion of Mahloujifar, Melis and Chaudhuri 2024 (Theorem 9) bounds the chance of so many right
guesses under a trade-off curve. The bound is used with curves of (epsilon, delta), and with
Gaussian curves: the claim is the highest Gaussian curve below the plan's trade-off curve.

The number of guesses is fixed before the run, by :func:`power`, which returns the outcome to expect
from an attack of this size on a run that leaks as much as its claim allows.

>>> expected = power(mu=2.0, canaries=1_000, delta=1e-5, seed=0)
>>> rng = np.random.default_rng(1)
>>> included = np.random.default_rng(2).random(1_000) < 0.5
>>> scores = 2.0 * included + rng.standard_normal(1_000)  # of a run that leaks so much
>>> found = one_run(included, scores, guesses=expected.guesses, delta=1e-5)
>>> bool(1.0 < found.mu < 2.0), bool(found.epsilon > 0)
(True, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpcal._internal import validate
from dpcal._internal.roots import Sides, Stop, bisect
from dpcal.accountants.curves.tradeoff import gdp_mu
from dpcal.calibrate.plan import Plan
from dpcal.optim.attacks.likelihood_ratio import Canaries
from dpcal.optim.attacks.rates import LowerBound
from dpcal.optim.objectives.arrays import numbers
from dpcal.optim.objectives.base import Objective
from dpcal.optim.registry import find

# Shares of canaries to guess: few guesses are more often right, many give a tighter bound.
_SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)

# Largest epsilon and mu of the search: no attack with up to 2^50 canaries shows more.
_MOST = 40.0

_PRECISION = 1e-3


@dataclass(frozen=True, kw_only=True, eq=False)
class OneRun(LowerBound):
    """Lower bounds from the guesses after one run; see :class:`LowerBound`.

    Parameters
    ----------
    mu
        The run's trade-off curve is not above the curve of mu'-Gaussian privacy for any mu' below
        this, with the same confidence.
    guesses, right
        Numbers of guesses about the canaries, and of right guesses.
    """

    mu: float
    guesses: int
    right: int

    def __str__(self) -> str:
        return (
            f"{self.right} of {self.guesses} guesses are right: {super().__str__()}; mu is at "
            f"least {self.mu:.4g}"
        )


def one_run(
    included: ArrayLike,
    scores: ArrayLike,
    *,
    guesses: int,
    delta: float,
    confidence: float = 0.95,
) -> OneRun:
    """Bound epsilon and mu of one run from below, by guesses about its canaries.

    Parameters
    ----------
    included
        Which canaries were in the data, by fair coins that the run did not see; shape (m,).
    scores
        A score for each canary, larger where it is more likely to be included; a function of the
        run's output. Shape (m,), finite.
    guesses
        Number of canaries that are guessed, in [1, m], chosen before the run: one half of the
        guesses on the largest scores, the other on the smallest. A fixed seed decides between equal
        scores, so that the order of the canaries reveals nothing.
    delta, confidence
        In [0, 1); and in (0, 1), of each bound.
    """
    flags, values = numbers("included", included), numbers("scores", scores)
    if flags.ndim != 1 or not len(flags) or not np.isin(flags, (0, 1)).all():
        raise ValueError("included must be flags of shape (m,), each of them True or False.")
    there, m = flags.astype(bool), len(flags)
    if values.shape != (m,):
        raise ValueError(f"scores must have shape ({m},), got {values.shape}.")
    guesses = validate.count(guesses=guesses)
    if guesses > m:
        raise ValueError(f"guesses must be in [1, {m}], got {guesses!r}.")
    delta = validate.below_one(delta=delta)
    validate.probability(confidence=confidence)
    mixed = np.random.default_rng(0).permutation(m)
    order = mixed[np.argsort(values[mixed], kind="stable")]
    highest, lowest = order[m - (guesses + 1) // 2 :], order[: guesses // 2]
    right = int(there[highest].sum() + (~there[lowest]).sum())
    chance = 1 - confidence
    return OneRun(
        epsilon=_largest(partial(_limited, delta), m, guesses, right, chance),
        delta=delta,
        mu=_largest(_gaussian, m, guesses, right, chance),
        present=int(there.sum()),
        absent=int((~there).sum()),
        guesses=guesses,
        right=right,
        confidence=confidence,
    )


def plant(
    plan: Plan,
    *,
    run: Callable[[Objective, Plan], Any] | None = None,
    confidence: float = 0.95,
    seed: int | None = None,
) -> tuple[OneRun, OneRun]:
    """Run a plan once on a data set of canaries, and guess them from the returned parameters.

    The result is a pair: the outcome of the run, and the outcome that :func:`power` expects at the
    plan's claim.

    Parameters
    ----------
    plan
        Any plan with an optimizer that takes an objective of n records and n parameters.
    run
        Function of an objective and the plan that returns an object with the final parameters as
        ``w``. The plan's optimizer when omitted.
    confidence
        In (0, 1), of each bound.
    seed
        Seed of the coins, an integer >= 0; fresh entropy when omitted.
    """
    relation = validate.instance(Plan, plan=plan).neighboring_relation
    mu = float(gdp_mu(plan.event, neighboring_relation=relation))
    expected = power(mu=mu, canaries=plan.n, delta=plan.delta, confidence=confidence, seed=0)
    included = np.random.default_rng(validate.seed(seed=seed)).random(plan.n) < 0.5
    run = find(plan.optimizer).optimizer() if run is None else run
    result = run(Canaries(included, replaced=relation == "replace-one"), plan)
    scores = -np.asarray(result.w)
    found = one_run(
        included, scores, guesses=expected.guesses, delta=plan.delta, confidence=confidence
    )
    return replace(found, claim=plan.epsilon), expected


def power(
    *,
    mu: float,
    canaries: int,
    delta: float,
    confidence: float = 0.95,
    seed: int | None = None,
    trials: int = 5,
) -> OneRun:
    """Return the outcome to expect of the best number of guesses about a run of mu-privacy.

    It is the one with the middle bounds of some simulated attacks.

    Parameters
    ----------
    mu
        Parameter > 0 of Gaussian privacy: scores of included canaries are mu higher, in units of
        their standard deviation.
    canaries, delta, confidence
        At least 1, and as of :func:`one_run`.
    seed, trials
        Seed of the simulated runs, an integer >= 0 or None; and their number, at least 1.
    """
    rng = np.random.default_rng(validate.seed(seed=seed))
    canaries = validate.count(canaries=canaries)
    included = rng.random((validate.count(trials=trials), canaries)) < 0.5
    scores = validate.positive(mu=mu) * included + rng.standard_normal(included.shape)

    def middle(guesses: int) -> OneRun:
        found = [
            one_run(i, s, guesses=guesses, delta=delta, confidence=confidence)
            for i, s in zip(included, scores, strict=True)
        ]
        return sorted(found, key=_bounds)[len(found) // 2]

    return max((middle(max(1, round(part * canaries))) for part in _SHARES), key=_bounds)


def _bounds(found: OneRun) -> tuple[float, float]:
    return found.mu, found.epsilon


def _gaussian(mu: float, x: float) -> float:
    """Return f(1 - x), with the trade-off curve f of mu-Gaussian privacy."""
    return float(special.ndtr(special.ndtri(x) - mu))


def _limited(delta: float, epsilon: float, x: float) -> float:
    """Return f(1 - x), with the trade-off curve f of (epsilon, delta)-privacy."""
    factor = math.exp(epsilon)
    return max(0.0, 1 - delta - factor * (1 - x), (x - delta) / factor)


def _largest(
    curve: Callable[[float, float], float], m: int, guesses: int, right: int, chance: float
) -> float:
    """Return the largest parameter of a curve that is refuted, from 0 on, rounded down.

    A curve is refuted if so many right guesses have a smaller chance under it. Let p_i be the
    chance of i right guesses, r_j the sum of i p_i / m over i >= j, and h_j the sum of (guesses -
    i) p_i / m over i >= j. Under privacy wrong guesses are not too rare: h_j is at least G(r_j+1),
    where G(x) = f(1 - x) is the curve. If sums from `right` on hold a mass of `chance`, then the
    rest of the recursion bounds r_0 + h_0 from below, which is guesses / m. Where it is more, the
    mass must have been smaller.
    """

    def refuted(at: float) -> bool:
        r, h = chance * right / m, chance * (guesses - right) / m
        for i in range(right - 1, -1, -1):
            least = max(h, curve(at, r))
            r, h = r + i / (guesses - i) * (least - h), least
            if r + h > guesses / m:
                return True
        return False

    if not refuted(0.0):
        return 0.0
    return bisect(refuted, Sides(meet=0.0, miss=_MOST), Stop(absolute=_PRECISION)).meet
