"""A smoothed contour encloses delta of laws with atoms, at second order in the smoothing."""

import math

import mpmath
import numpy as np
import pytest

from dpcal._ext import question
from dpcal.accountants.answers import Bounds
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.accountants.mechanisms.own import from_pmf


def random_law(rng):
    """Return a loss with a few values anywhere, and its values and probabilities under Q."""
    size = int(rng.integers(2, 6))
    p = rng.dirichlet(np.full(size, 10 ** rng.uniform(-1, 1)))
    q = p * np.exp(rng.normal(0, 10 ** rng.uniform(-2, 0.5), size))
    p, q = np.maximum(p, 1e-12), np.maximum(q / q.sum(), 1e-12)
    (loss, _), *_ = (
        decompose(from_pmf(p / p.sum(), q / q.sum()), "add-or-remove-one").directions[0].parts
    )
    return loss


def exact_log_delta(loss, times, epsilon):
    """Return log delta of a sum of independent losses, over all of its values, in 40 digits."""
    with mpmath.workdps(40):
        sums = {mpmath.mpf(0): mpmath.mpf(1)}
        values = [mpmath.mpf(float(value)) for value in loss.values]
        logs = [mpmath.mpf(float(log)) for log in loss.log_reference]
        # The masses under Q are rounded logarithms: Q is what they add up to.
        for _ in range(times):
            found = {}
            for total, mass in sums.items():
                for value, log in zip(values, logs, strict=True):
                    found[total + value] = found.get(total + value, 0) + mass * mpmath.exp(log)
            sums = found
        delta = sum(
            mass * (mpmath.exp(total) - mpmath.exp(epsilon))
            for total, mass in sums.items()
            if total > epsilon
        )
        return float(mpmath.log(delta)) if delta else -math.inf


def compared(seeds):
    """Yield what was asked, bounds of one contour, and the truth, for laws drawn by seed."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        loss, times = random_law(rng), int(rng.integers(1, 7))
        epsilon = times * loss.upper * 10 ** rng.uniform(-2, -0.05)
        truth = exact_log_delta(loss, times, epsilon)
        if truth < -600:
            continue
        found = question.log_delta([(loss.compiled, times)], epsilon, patient=True)
        if found is not None and found[2] == "smoothed":
            yield (seed, times, epsilon), Bounds(*found), truth


@pytest.mark.parametrize(
    "seeds", [range(40), pytest.param(range(40, 10_000), marks=pytest.mark.study)]
)
def test_bounds_hold_sums_over_all_values(seeds):
    """Most are close to the truth, too."""
    widths = []
    for asked, bounds, truth in compared(seeds):
        assert bounds.lower - 1e-13 * abs(truth) <= truth, (asked, bounds, truth)
        assert bounds.upper + 1e-13 * abs(truth) >= truth, (asked, bounds, truth)
        widths.append(bounds.upper - bounds.lower)
    assert len(widths) > len(seeds) / 4
    assert np.median(widths) < 1e-6
