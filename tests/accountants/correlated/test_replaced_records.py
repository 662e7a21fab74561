"""Records that are replaced under correlated noise: C y against -C y, by quadrature and attacks."""

import math

import numpy as np
import pytest
from _integrals import independent, log_ratios

from dpcal import accountants, calibrate
from dpcal.accountants import events
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
# One of two rounds, as log-probabilities of all patterns.
ONE_OF_TWO = np.array([-np.inf, math.log(0.5), math.log(0.5), -np.inf])


def quadrature(C, log_chances, sigma, epsilon, other=-1.0):
    """Return delta of mixtures over patterns, by a grid in two dimensions."""
    x = np.linspace(-12, 12, 241) * sigma
    grid = np.stack([axis.ravel() for axis in np.meshgrid(x, x, indexing="ij")])
    q = np.exp(-(grid**2).sum(axis=0) / (2 * sigma**2)) / (2 * math.pi * sigma**2)
    one, two = (q * np.exp(log_ratios(sign * C, sigma, grid, log_chances)) for sign in (1, other))
    return float(np.maximum(one - math.exp(epsilon) * two, 0).sum() * (x[1] - x[0]) ** 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "sampler", "log_chances"),
    [
        (Banded(2, 2, [1.0, 0.6]), RandomAllocation(1), ONE_OF_TWO),
        (LambdaCGD(2, 0.5), BallsInBins(2), ONE_OF_TWO),
        (Banded(2, 2, [1.0, 0.6]), Poisson(0.3), independent([0.3, 0.3])),
        (Identity(2), RandomAllocation(1), ONE_OF_TWO),
    ],
)
def test_two_rounds_by_quadrature(strategy, sampler, log_chances):
    sigma, C = 1.5, np.abs(strategy.matrix())
    event = events.CorrelatedGaussianDpEvent(strategy, sampler, sigma, draws=20_000, seed=1)
    for epsilon in (0.2, 1.0):
        exact = quadrature(C, log_chances, sigma, epsilon)
        answer = accountants.delta(event, epsilon=epsilon, **RELATION)
        assert answer.lower <= exact <= answer < 1.15 * exact + 0.01
        bound = accountants.delta(event, epsilon=epsilon, statistics="none", **RELATION)
        assert (bound.label, exact <= bound) == ("certified", True)
        # A blank costs less, and so do contributions in between.
        blank = accountants.delta(event, epsilon=epsilon, neighboring_relation="replace-special")
        assert blank.lower < exact
        for other in (-0.5, 0.5):
            assert quadrature(C, log_chances, sigma, epsilon, other) <= exact + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "sampler"),
    [
        (LambdaCGD(20, 0.5), Poisson(0.05)),
        (Dense(np.tril(np.ones((6, 6)))), Poisson(0.3)),
        (Banded(40, 4), MinSeparation(2, 0.1)),
        (Dense(np.tril(np.ones((6, 6)))), CyclicPoisson(2, 0.3)),
    ],
)
def test_other_runs_have_a_proved_bound_above_that_of_a_blank(strategy, sampler):
    event = events.CorrelatedGaussianDpEvent(strategy, sampler, 3.0, draws=1_000, seed=1)
    found = accountants.epsilon(event, delta=1e-5, **RELATION)
    assert found.label == "certified"
    assert accountants.delta(event, epsilon=float(found), **RELATION) <= 1e-5 * (1 + 1e-8)
    assert found >= accountants.epsilon(event, delta=1e-5, statistics="none")


def test_plans_are_not_made_for_replaced_records():
    with pytest.raises(UnsupportedEvent, match="'replace-one'"):
        calibrate.correlated_dpsgd(
            Banded(20, 2), n=100, batch_size=10, epsilon=1.0, delta=1e-5, **RELATION
        )
