"""Records that are replaced under correlated noise: C y against -C y, by quadrature and attacks."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp

from dpcal import accountants, calibrate
from dpcal.accountants import events
from dpcal.accountants.correlated.bounds.proved import proved_replaced
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.matrix import Banded, Dense, Identity, LambdaCGD
from dpcal.accountants.samplers import (
    BallsInBins,
    CyclicPoisson,
    MinSeparation,
    Poisson,
    RandomAllocation,
)
from dpcal.errors import UnsupportedEvent

RELATION = {"neighboring_relation": "replace-one"}


def quadrature(C, y, log_p, sigma, epsilon, signs=(1.0, -1.0)):
    """Return delta of mixtures over patterns, by a grid in two dimensions."""
    x = np.linspace(-12, 12, 241)
    grid = np.stack([each.ravel() for each in np.meshgrid(x, x, indexing="ij")])

    def density(sign):
        distances = ((grid[:, :, None] - sign * (C @ y)[:, None] / sigma) ** 2).sum(axis=0)
        return np.exp(logsumexp(log_p - 0.5 * distances, axis=1)) / (2 * math.pi)

    one, other = (density(sign) for sign in signs)
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum() * (x[1] - x[0]) ** 2)


TWO = [
    (Banded(2, 2, [1.0, 0.6]), RandomAllocation(1), [[1, 0], [0, 1]], [0.5, 0.5]),
    (LambdaCGD(2, 0.5), BallsInBins(2), [[1, 0], [0, 1]], [0.5, 0.5]),
    (
        Banded(2, 2, [1.0, 0.6]),
        Poisson(0.3),
        [[0, 0], [1, 0], [0, 1], [1, 1]],
        [0.49, 0.21, 0.21, 0.09],
    ),
    (Identity(2), RandomAllocation(1), [[1, 0], [0, 1]], [0.5, 0.5]),
]


@pytest.mark.parametrize(("strategy", "sampler", "rows", "chances"), TWO)
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_two_rounds_by_quadrature(strategy, sampler, rows, chances, epsilon):
    sigma = 1.5
    y, log_p = np.array(rows, dtype=float).T, np.log(chances)
    C = np.abs(strategy.matrix())
    exact = quadrature(C, y, log_p, sigma, epsilon)
    event = events.CorrelatedGaussianDpEvent(strategy, sampler, sigma, draws=20_000, seed=1)
    answer = accountants.delta(event, epsilon=epsilon, **RELATION)
    assert answer.lower <= exact <= answer
    assert answer < 1.15 * exact + 0.01
    bound = accountants.delta(event, epsilon=epsilon, statistics="none", **RELATION)
    assert (bound.label, exact <= bound) == ("certified", True)
    # A blank costs less, and so do contributions in between.
    blank = accountants.delta(event, epsilon=epsilon, neighboring_relation="replace-special")
    assert blank.lower < exact
    for other in (-0.5, 0.5):
        assert quadrature(C, y, log_p, sigma, epsilon, (1.0, other)) <= exact + 1e-9


@pytest.mark.parametrize("sampler", [Poisson(0.1), CyclicPoisson(4, 0.3)])
@pytest.mark.parametrize("strategy", [Identity(40), Banded(40, 4)])
def test_independent_rounds_have_the_price_of_a_composition(strategy, sampler):
    if isinstance(sampler, Poisson) and strategy != Identity(40):
        return
    event = events.CorrelatedGaussianDpEvent(strategy, sampler, 2.0)
    found = accountants.epsilon(event, delta=1e-5, **RELATION)
    assert found.label == "exact"
    norms = np.sqrt((strategy.matrix() ** 2).sum(axis=0))
    norms = norms if isinstance(sampler, Poisson) else norms[::4]
    steps = [
        events.PoissonSampledDpEvent(
            sampler.sampling_probability, events.GaussianDpEvent(2.0 / norm)
        )
        for norm in norms
    ]
    alone = accountants.epsilon(events.ComposedDpEvent(steps), delta=1e-5, **RELATION)
    assert float(found) == pytest.approx(float(alone), rel=1e-8)
    assert float(found) > 1.3 * float(accountants.epsilon(event, delta=1e-5))


@pytest.mark.parametrize(
    ("strategy", "sampler"),
    [
        (LambdaCGD(20, 0.5), Poisson(0.05)),
        (Dense(np.tril(np.ones((6, 6)))), Poisson(0.3)),
        (Banded(40, 4), MinSeparation(2, 0.1)),
        (Dense(np.tril(np.ones((6, 6)))), CyclicPoisson(2, 0.3)),
    ],
)
def test_other_runs_have_a_proved_bound(strategy, sampler):
    event = events.CorrelatedGaussianDpEvent(strategy, sampler, 3.0, draws=1_000, seed=1)
    found = accountants.epsilon(event, delta=1e-5, **RELATION)
    assert found.label == "certified"
    bound = proved_replaced(Mechanism.of(strategy, noise_multiplier=3.0), sampler)
    assert found == bound.epsilon(1e-5).value
    assert bound.delta(float(found)) <= 1e-5 * (1 + 1e-8)
    assert found >= accountants.epsilon(event, delta=1e-5, statistics="none")


def test_plans_are_not_made_for_replaced_records():
    with pytest.raises(UnsupportedEvent, match="'replace-one'"):
        calibrate.correlated_dpsgd(
            Banded(20, 2), n=100, batch_size=10, epsilon=1.0, delta=1e-5, **RELATION
        )
