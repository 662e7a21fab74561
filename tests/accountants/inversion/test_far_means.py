"""Far means of tiny weight: bounds without them, against closed forms and brute force."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from dpcal import accountants
from dpcal.accountants import characteristic, events
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.failure import log_delta_with_failures
from dpcal.accountants.inversion.far_means import without_far_means
from dpcal.accountants.losses.gaussian_mixtures import GaussianMixtures

MEANS, WEIGHTS = np.array([0.0, 1.0, 2.0, 12.0]), np.array([0.9, 0.0999, 1e-4, 1e-10])
WEIGHTS[0] = 1 - WEIGHTS[1:].sum()
LOSS = GaussianMixtures(tuple(zip(MEANS, WEIGHTS, strict=True)), ((0.0, 1.0),), 1.5)


def log_delta(direction, epsilon):
    return log_delta_with_failures(
        direction, lambda given: characteristic.without_contour(given, epsilon)
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, 5.0])
@pytest.mark.parametrize("rest", [1e-8, 1e-3])
def test_one_step_lies_between_its_two_sides(epsilon, rest):
    truth = LOSS.log_delta(epsilon)[0]
    below, above = without_far_means(Direction("remove", ((LOSS, 1),)), math.log(rest))
    kept = 3 if rest < 1e-4 else 2
    assert len(below.parts[0][0].numerator) == kept
    low, high = (log_delta(side, epsilon) for side in (below, above))
    assert low.lower <= truth <= high.upper
    assert high.upper <= math.log(math.exp(truth) + rest) + 1e-9
    # Below, far means are taken for the last near one, which is half as far or nearer.
    far = WEIGHTS[kept:].sum()
    assert math.exp(low.lower) >= math.exp(truth) - (0.5 * far if epsilon == 0 else far) - 1e-15


def convolved(epsilon, steps):
    """Delta of a composition from its densities on a grid of the losses, rounded up and down."""
    x = np.linspace(-12, 30, 400_001)
    p = sum(w * np.diff(ndtr((x - a) / 1.5)) for a, w in zip(MEANS, WEIGHTS, strict=True))
    ratio = sum(
        w * np.exp(a * (2 * x - a) / (2 * 1.5**2)) for a, w in zip(MEANS, WEIGHTS, strict=True)
    )
    loss, unit = np.log(ratio), 2e-4
    found = []
    for rounded in (np.floor(loss[:-1] / unit), np.ceil(loss[1:] / unit)):
        places = rounded.astype(int)
        masses = np.bincount(places - places[0], weights=p)
        size = 1 << math.ceil(math.log2(steps * len(masses)))
        composed = np.fft.irfft(np.fft.rfft(masses, size) ** steps, size)
        values = unit * (np.arange(size) + steps * places[0])
        large = values > epsilon
        found.append(float((composed[large] * -np.expm1(epsilon - values[large])).sum()))
    return found


@pytest.mark.slow
def test_a_composition_lies_where_its_convolution_says():
    steps = 3
    event = events.SelfComposedDpEvent(
        events.MixtureOfGaussiansDpEvent(1.5, list(MEANS), list(WEIGHTS)), steps
    )
    answer = accountants.epsilon(event, delta=1e-6)
    low, high = (convolved(at, steps) for at in (answer.lower, answer.upper))
    # The sums of a million terms are within 1e-11.
    assert high[0] <= 1e-6 + 1e-10
    assert low[1] >= 1e-6 - 1e-10
    assert answer.upper < 1.01 * answer.lower


def test_a_mean_far_beyond_delta_does_not_decide_its_price():
    """A tail of 1e-15 in each of 100 steps is a tenth of a millionth of delta."""
    far = events.MixtureOfGaussiansDpEvent(4.0, [0.0, 1.0, 300.0], [0.9, 0.1 - 1e-15, 1e-15])
    near = events.MixtureOfGaussiansDpEvent(4.0, [0.0, 1.0], [0.9, 0.1])
    prices = [
        accountants.epsilon(events.SelfComposedDpEvent(each, 100), delta=1e-6)
        for each in (near, far)
    ]
    assert prices[0].lower <= prices[1].upper <= 1.0001 * prices[0].upper
