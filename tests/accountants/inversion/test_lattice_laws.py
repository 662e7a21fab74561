"""Contours of lattice losses hold the sum over all values, in balls of 200 bits."""

import ctypes
import math
import signal
import sys
from functools import partial
from unittest import mock

import numpy as np
import pytest
from flint import arb, arb_poly, ctx

from dpcal._ext import question
from dpcal.accountants.losses.discrete import ScatteredLoss
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.laplace import Laplace


def some_atoms(rng):
    """A loss with 2 to 30 values k u, of a few to all near, and k, probabilities and u."""
    size = int(rng.integers(2, 31))
    span = size * int(rng.choice([1, 3, 20, 60]))
    k = np.unique(rng.choice(np.arange(-span, span + 1), size))
    k = np.unique([*k, -int(rng.integers(1, span)), int(rng.integers(1, span))])
    unit = float(np.float32(10 ** rng.uniform(-4, 1.3) / span))
    weights = [arb(float(x)) for x in 10 ** (-rng.uniform(0, 10 ** rng.uniform(-1, 1.15), len(k)))]
    growth = [(arb(unit) * int(at)).exp() for at in k]
    rest = arb(float(rng.uniform(0, 0.999))) if 0 in k else arb(0)

    def total(side, factors):
        return sum(
            (w * f for w, f, at in zip(weights, factors, k, strict=True) if side * at > 0), arb(0)
        )

    below, above, ones = total(-1, growth), total(1, growth), [arb(1)] * len(k)
    n, p = total(-1, ones), total(1, ones)
    # Shares of both sides with which P and Q have mass 1.
    shares = (1 - rest) / (n * above - p * below)
    left, right = shares * (above - p), shares * (n - below)
    reference = [
        rest if at == 0 else w * (left if at < 0 else right)
        for w, at in zip(weights, k, strict=True)
    ]
    masses = [q * f for q, f in zip(reference, growth, strict=True)]
    loss = ScatteredLoss(tuple(unit * k), tuple(float(q.log()) for q in reference), "atoms")
    return loss, k, masses, arb(unit), arb(0)


def some_noise(rng):
    """Discrete Gaussian noise, and the same of its loss less an offset."""
    sigma, s = float(np.float32(10 ** rng.uniform(-0.7, 0.7))), int(rng.integers(1, 4))
    far = int(13 * sigma) + 20
    k, v = np.arange(-far, far + s + 1), arb(sigma) ** 2
    masses = [(-(arb(int(x) - s) ** 2) / (2 * v)).exp() for x in k]
    norm = sum(masses, arb(0))
    return DiscreteGaussian(sigma, s), k, [m / norm for m in masses], arb(s) / v, -s * s / (2 * v)


def deltas(k, masses, unit, offset, times, epsilons):
    """Delta of the sum at each epsilon."""
    one = [arb(0)] * int(k[-1] - k[0] + 1)
    for at, mass in zip(k, masses, strict=True):
        one[int(at - k[0])] = mass
    power = arb_poly(one) ** times
    for epsilon in epsilons:
        least = (arb(epsilon) - times * offset) / unit - int(k[0]) * times
        gain, total = (-unit).exp(), arb(0)
        first = max(0, int(least.floor().unique_fmpz()) + 1)
        left = (unit * (least - first)).exp()
        for i in range(first, power.length()):
            total, left = total + power[i] * (1 - left), left * gain
        yield total


@pytest.mark.parametrize(
    ("law", "seeds"),
    [
        (some_atoms, range(25)),
        (some_noise, range(4)),
        pytest.param(some_atoms, range(25, 1200), marks=pytest.mark.study),
        pytest.param(some_noise, range(4, 300), marks=pytest.mark.study),
    ],
)
def test_both_ends_hold_the_sum_over_all_values(law, seeds):
    compared, widths = 0, []
    with ctx.workprec(200):
        for seed in seeds:
            rng = np.random.default_rng([5, seed])
            loss, k, masses, unit, offset = law(rng)
            times = max(1, min(int(10 ** rng.uniform(0, 2.7)), int(20_000 / (k[-1] - k[0]))))
            laws, target = [(loss.pointed, times)], math.log(10 ** rng.uniform(-15, -0.05))
            found = question.epsilon(laws, target, patient=True)
            if found is None or math.isinf(found[1]):
                continue
            low, high, _ = found
            at = high * float(rng.uniform(0.5, 1.0))
            bounds = question.log_delta(laws, at, patient=True)
            above, below, truth = deltas(k, masses, unit, offset, times, [low, high, at])
            assert low == 0.0 or above >= arb(target).exp(), (seed, found)
            assert below <= arb(target).exp(), (seed, found)
            widths.append(high - low)
            if bounds is not None:
                outside = arb(bounds[0]).exp() > truth or arb(bounds[1]).exp() < truth
                assert not outside, (seed, at, bounds)
                compared += 1
    assert compared > len(seeds) / 2
    assert np.median(widths) < 1e-6


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_a_long_question_ends_at_a_signal():
    parts = [(Laplace(20.0 + 1e-3 * i).pointed, 1) for i in range(500)]
    ask = partial(question.epsilon, parts, -14.0, True)
    assert ask() is not None  # and all points that it takes are there
    # All in C from here: the signal waits when the question begins, and is heard by it or after it.
    calls, answers = [partial(ctypes.CDLL(None)["raise"], int(signal.SIGUSR1)), ask], []
    before = signal.signal(signal.SIGUSR1, mock.Mock(side_effect=TimeoutError))
    try:
        with pytest.raises(TimeoutError):
            answers.extend(map(partial.__call__, calls))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert answers == [0]
