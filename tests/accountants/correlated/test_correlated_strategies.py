"""Every strategy under every sampler: an answer that holds, or a reason.

Statistical statements here fail with probability below 1e-4 for a fresh seed.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from dpcal.accountants import correlated
from dpcal.accountants.correlated.table import CERTIFIED, EXACT, LABELS, chosen
from dpcal.accountants.matrix import (
    BISR,
    BLT,
    Banded,
    Dense,
    Identity,
    LambdaCGD,
    SquareRoot,
    Tree,
)
from dpcal.errors import UnsupportedEvent

T = 16
MIXED = np.eye(T)
MIXED[1, 0], MIXED[-1, 0] = -0.5, 0.5

STRATEGIES = {
    "identity": (Identity(T), "diagonal"),
    "tree": (Tree(T), "dense"),
    "efficient tree": (Tree(T, efficient=True), "dense"),
    "lambda-CGD": (LambdaCGD(T, 0.7), "lambda-CGD"),
    "lambda-CGD without decay": (LambdaCGD(T, 0.0), "diagonal"),
    "banded": (Banded(T, 3, [1.0, 0.5, 0.25]), "banded"),
    "optimised bands": (Banded.optimised(T, 4), "banded"),
    "square root": (SquareRoot(T), "dense"),
    "bands of the square root": (SquareRoot(T, bands=3), "banded"),
    "BISR": (BISR(T, 3), "BLT"),
    "BLT": (BLT(T, (0.9, 0.4), (0.4, 0.3)), "BLT"),
    "dense": (Dense.optimised(T), "dense"),
    "mixed signs": (Dense(MIXED), "dense"),
}
NOT_TOEPLITZ = ("tree", "efficient tree", "dense", "mixed signs")
SAMPLERS = [
    correlated.Poisson(0.1),
    correlated.CyclicPoisson(4, 0.3),
    correlated.CyclicPoisson(2, 0.3),
    correlated.CyclicPoisson(4, 0.3, random_shift=True),
    correlated.MinSeparation(4, 0.2),
    correlated.MinSeparation(2, 0.2, warm_start=True),
    correlated.RandomAllocation(2),
    correlated.RandomAllocation(1, epoch=8),
    correlated.BallsInBins(8),
    correlated.FixedSize(10, 100),
]


def test_strategies_and_samplers_reach_every_row():
    reached = set()
    for strategy, _ in STRATEGIES.values():
        for sampler in SAMPLERS:
            mechanism = correlated.Mechanism.of(strategy, noise_multiplier=3.0)
            for row in correlated.decision_table():
                if row.covers(mechanism, sampler):
                    reached.add(row)
                    break
    assert reached == set(correlated.decision_table())


def pairs():
    """A strategy of each kind with every sampler; the others with two samplers each, in turn."""
    first = {kind: name for name, (_, kind) in reversed(STRATEGIES.items())}
    others = [name for name in STRATEGIES if name not in first.values()]
    yield from itertools.product(first.values(), SAMPLERS)
    for place, name in enumerate(others):
        yield name, SAMPLERS[place % len(SAMPLERS)]
        # A matrix that is not Toeplitz has no group that is known to be the worst.
        yield name, SAMPLERS[1 + place % 2]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sampler"), sorted(set(pairs()), key=repr), ids=repr)
def test_every_pair_answers_or_refuses_with_its_reason(name, sampler):
    strategy, kind = STRATEGIES[name]
    asked = {"noise_multiplier": 3.0, "epsilon": 0.5}
    mechanism = correlated.Mechanism.of(strategy, noise_multiplier=3.0)
    assert mechanism.kind == kind
    assert mechanism.sigma == 3.0
    if isinstance(sampler, correlated.FixedSize):
        with pytest.raises(UnsupportedEvent, match=r"Poisson.*revealed_delta"):
            correlated.delta(strategy, sampler, **asked)
        revealed = correlated.revealed_delta(strategy, sampler, **asked)
        assert 0 < revealed < 1
        return
    fixed = isinstance(sampler, correlated.CyclicPoisson) and not sampler.random_shift
    if fixed and name in NOT_TOEPLITZ:
        proved = correlated.delta(strategy, sampler, **asked)
        assert "which group is the worst is not known" in proved.note
        assert proved == correlated.delta(strategy, sampler, **asked, statistics="none")
        assert proved.label == CERTIFIED
        assert 0 < proved <= correlated.revealed_delta(strategy, sampler, **asked)
        return
    drawn = correlated.delta(strategy, sampler, **asked, draws=1024, particles=4, seed=0)
    proved = correlated.delta(strategy, sampler, **asked, statistics="none")
    row = chosen(mechanism, sampler)
    assert drawn.label in LABELS
    assert drawn.label in row.label
    assert (proved.label == EXACT) == (drawn.label == EXACT) == (row.label == EXACT)
    assert 0 <= drawn.lower <= drawn.estimate <= drawn <= proved == drawn.certified <= 1
    assert drawn.label != CERTIFIED or drawn == proved
    assert drawn > 0


def test_no_group_is_taken_for_the_worst_without_proof():
    # Records of the second group move five times as much as those of the first.
    C = np.diag([1.0, 5.0, 1.0, 5.0]) + 0.1 * np.eye(4, k=-1) + 0.1 * np.eye(4, k=-2)
    asked = {"noise_multiplier": 5.0, "delta": 1e-3, "draws": 20_000, "seed": 0}
    fixed = correlated.CyclicPoisson(2, 0.5)
    proved = correlated.epsilon(Dense(C), fixed, **asked)
    assert (proved.label, proved.draws) == (CERTIFIED, 0)
    assert "which group is the worst is not known" in proved.note
    drawn = correlated.CyclicPoisson(2, 0.5, random_shift=True)
    answer = correlated.epsilon(Dense(C), drawn, **asked)
    # All patterns of both groups, and outputs of a record that is in either.
    patterns = np.array([[a, 0, b, 0] for a in (0, 1) for b in (0, 1)])
    means = np.concatenate([patterns, np.roll(patterns, 1, axis=1)]) @ C.T
    rng = np.random.default_rng(5)
    x = means[rng.integers(0, 8, 400_000)] + 5.0 * rng.standard_normal((400_000, 4))
    ratio = np.exp(x @ means.T / 25 - (means * means).sum(axis=1) / 50).mean(axis=1)
    for epsilon, at_most in ((float(answer), True), (0.8 * float(answer), False)):
        delta = np.maximum(0.0, 1 - math.exp(epsilon) / ratio).mean()
        assert (delta <= 1e-3) == at_most


@pytest.mark.parametrize("bands", [1, 2, 3, 6])
@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_bounds_without_draws_hold_for_every_group(bands, rate):
    # Of each group every pattern, with its own norm: what an observer who knows it could tell.
    rng = np.random.default_rng(bands)
    C = np.tril(rng.uniform(0, 1, (7, 7))) * rng.uniform(0.8, 2.0, 7)
    sampler, sigma, level = correlated.CyclicPoisson(bands, rate), 3.0, 0.7
    asked = {"noise_multiplier": sigma, "statistics": "none"}
    bound = correlated.delta(Dense(C), sampler, epsilon=level, **asked)
    assert (bound.label, bound.method) == (CERTIFIED, "participations revealed, worst group")
    found = []
    for group in range(bands):
        columns = C[:, group::bands].T
        total = 0.0
        for y in itertools.product([0, 1], repeat=len(columns)):
            mu = np.linalg.norm(y @ columns) / sigma
            chance = rate ** sum(y) * (1 - rate) ** (len(y) - sum(y))
            if mu > 0:
                tail = norm.cdf(-mu / 2 - level / mu)
                total += chance * (norm.cdf(mu / 2 - level / mu) - math.exp(level) * tail)
        found.append(total)
    assert max(found) <= bound <= 2 * max(found)
    answer = correlated.epsilon(Dense(C), sampler, delta=float(bound), **asked)
    assert abs(answer - level) < 1e-6
