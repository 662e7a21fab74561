"""Attacks on loaders: likelihood ratios are right, and bounds are below the truth and near it."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from dpcal import accountants
from dpcal.accountants import events
from dpcal.errors import UnsupportedEvent
from dpcal.optim.attacks import loader
from dpcal.optim.attacks.loaders import _Runs

SIZES = {"n": 60, "batch_size": 6, "epochs": 1, "noise_multiplier": 0.8}


@pytest.mark.parametrize("means", [(2.0, 1.0), (2.0, 0.0), (1.0, -1.0)])
def test_likelihood_ratios_have_mean_one_without_the_record(means):
    """Two batches of two records and one of one, two epochs."""
    runs = _Runs(np.array([2, 2, 1]), 2, 4.0, means)
    ratios = np.exp(runs.log_ratios(means[1], 40_000, np.random.default_rng(1)))
    assert abs(ratios.mean() - 1) < 5 * ratios.std() / 200
    inverse = np.exp(-runs.log_ratios(means[0], 40_000, np.random.default_rng(2)))
    assert abs(inverse.mean() - 1) < 5 * inverse.std() / 200


def test_one_batch_is_a_gaussian_answer_of_which_most_is_found():
    """Four epochs with noise 2 are mu = 1 (Balle and Wang 2018, Theorem 8)."""
    exact = brentq(
        lambda x: norm.cdf(0.5 - x) - math.exp(x) * norm.cdf(-0.5 - x) - 0.01, 0.0, 9.0, xtol=1e-9
    )
    sizes = {"n": 5, "batch_size": 5, "epochs": 4, "noise_multiplier": 2.0}
    for sampler in ("shuffled-epochs", "random-allocation"):
        found = loader(sampler, **sizes, epsilon=exact, delta=0.01, samples=50_000, seed=3)
        assert found.holds
        assert 0.8 * exact < found.epsilon


def test_a_shuffle_breaks_a_claim_that_allocation_keeps():
    bracket = accountants.epsilon(
        events.ShuffledEpochsDpEvent(0.8, 10, 1), delta=1e-3, neighboring_relation="replace-special"
    )
    exact = accountants.epsilon(events.RandomAllocationDpEvent(0.8, 10), delta=1e-3)
    claim = {"epsilon": exact, "delta": 1e-3, "samples": 20_000, "seed": 4}
    found = loader("shuffled-epochs", **SIZES, **claim)
    assert not found.holds
    assert exact < found.epsilon < bracket.upper
    assert loader("random-allocation", **SIZES, **claim).holds


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"sampler": "poisson"}, ValueError, "sampler must be one of"),
        ({"neighboring_relation": "add-or-remove-one"}, UnsupportedEvent, "moves others"),
        ({"batch_size": 61}, ValueError, r"batch_size must be in \[1, n=60\]"),
        ({"samples": 10}, ValueError, "samples must be at least 1000"),
    ],
)
def test_wrong_arguments_are_refused(change, error, sentence):
    given = {"sampler": "shuffled-epochs", **SIZES, "epsilon": 2.0, "delta": 1e-3, **change}
    with pytest.raises(error, match=sentence):
        loader(given.pop("sampler"), **given)
