"""Every finite loss with a law keeps the contract of losses, and so do answers about it."""

import math

import numpy as np
import pytest
from _integrals import transform

from dpcal.accountants import delta, epsilon
from dpcal.accountants.events import DominatingPairDpEvent, SelfComposedDpEvent
from dpcal.accountants.losses.discrete import discrete_laplace, pure, randomized_response
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.laplace import BoundedRange, Laplace
from dpcal.accountants.losses.random_choice import RandomChoice
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

REMOVED, ADDED = (SampledGaussian(0.1, 1.5, side) for side in ("remove", "add"))
GEOMETRIC = discrete_laplace(noise_parameter=0.5, sensitivity=2)
LOSSES = [
    *(Gaussian(2.0), Laplace(1.5), BoundedRange(0.8), DiscreteGaussian(2.0, 1), pure(1.0)),
    *(FixedBatchGaussian(0.02, 0.7), REMOVED, ADDED, GEOMETRIC),
    *(randomized_response(noise_parameter=0.3, num_buckets=4),),
    RandomChoice(((0.6, REMOVED), (0.4, SampledGaussian(0.3, 2.0, "remove")))),
]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
# Tilts inside of the strip Re z > -1, on both sides of 0, and a step along them.
TILTS, STEP = np.array([-0.75, -0.5, -0.25, 0.0, 0.5, 1.0, 2.0]), 1e-3


@each_loss
def test_moments_are_those_of_one_law_and_bounds_are_bounds(loss):
    log_mgf, mean, variance, fourth = loss.cumulants(TILTS).T
    assert log_mgf[3] == pytest.approx(0.0, abs=1e-9)
    # Q has mass 1.
    assert loss.cumulants([-1 + 1e-7])[0, 0] == pytest.approx(0.0, abs=1e-3)
    assert (variance > 0).all()
    assert (fourth >= variance**2 * 0.999).all()
    assert (mean <= loss.upper * (1 + 1e-12) + 1e-12).all()
    up, down = loss.cumulants(TILTS + STEP), loss.cumulants(TILTS - STEP)
    slopes = (up[:, :2] - down[:, :2]) / (2 * STEP)
    assert (np.abs(slopes[:, 0] - mean) <= 1e-3 * (np.abs(mean) + variance**0.5)).all()
    assert slopes[:, 1] == pytest.approx(variance, rel=2e-3)
    for c, value in zip(TILTS[4:], log_mgf[4:], strict=True):
        assert value <= loss.log_mgf_bound(float(c)) * (1 + 1e-9) + 1e-12
    for at in loss.cumulants([0.0])[0, 2] ** 0.5 * np.array([0.0, 1.0, 3.0]):
        closed = loss.log_delta(at)
        if closed is not None:
            assert closed[0] <= (log_mgf - TILTS * at)[4:].min() + 1e-9
    if loss.opposite is not None:
        reversed_pair = loss.opposite.cumulants(TILTS[:3])[:, 0]
        assert loss.cumulants(-1 - TILTS[:3])[:, 0] == pytest.approx(reversed_pair, rel=2e-3)


@pytest.mark.parametrize("loss", LOSSES[1:], ids=repr)
@pytest.mark.parametrize("c", TILTS.tolist())
def test_the_transform_on_a_line_has_the_moments_of_the_tilted_law(loss, c):
    log_mgf, mean, variance, _ = loss.cumulants([c])[0]
    step = 0.25 / variance**0.5
    psi = [transform(loss, c + 1j * step * k) / math.exp(log_mgf) for k in range(12)]
    assert psi[0] == pytest.approx(1.0, abs=1e-12)
    assert (np.abs(psi) <= 1 + 1e-12).all()
    small = np.log(transform(loss, c + 1j * step / 25)) - log_mgf
    assert small.real == pytest.approx(-0.5 * variance * (step / 25) ** 2, rel=0.05)
    assert small.imag == pytest.approx(mean * step / 25, abs=1e-4)


@pytest.mark.parametrize(
    "pair", [*((loss, loss) for loss in (Gaussian(2.0), pure(1.0), GEOMETRIC)), (REMOVED, ADDED)]
)
@pytest.mark.parametrize("level", [1e-2, 1e-6, 1e-12])
def test_answers_keep_their_order(pair, level):
    once = DominatingPairDpEvent("a loss", "replace-one", *pair)
    twice, how = SelfComposedDpEvent(once, 2), {"neighboring_relation": "replace-one"}
    one, two = (epsilon(event, delta=level, **how) for event in (once, twice))
    assert one.lower <= two.upper
    # Basic composition is an upper bound.
    assert epsilon(twice, delta=2 * level, **how).lower <= 2 * one.upper * (1 + 1e-9)
    assert delta(once, epsilon=one.upper, **how).lower <= level * (1 + 1e-9)
    if one.lower > 0:
        assert delta(once, epsilon=one.lower, **how).upper >= level * (1 - 1e-9)
    largest = max(loss.upper for loss in pair)
    if math.isfinite(largest):
        assert delta(once, epsilon=largest * (1 + 1e-9), **how).lower == 0
