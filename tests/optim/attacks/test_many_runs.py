"""Bounds from many runs, and of equal scores: none accuses without a leak."""

import math

import numpy as np
import pytest
from scipy import stats

import dpcal
from dpcal.optim import attacks

DELTA = 1e-5


def alarms(count, trials, level=0.05):
    """Whether so many alarms of chance `level` each are credible: false with chance below 1e-6."""
    return stats.binom.sf(count - 1, trials, level) > 1e-6


# -- ties


SCORES = {
    "constant": lambda rng, m: np.zeros(m),
    "mostly equal": lambda rng, m: np.where(rng.random(m) < 0.9, 0.0, rng.standard_normal(m)),
    "rounded": lambda rng, m: np.round(rng.standard_normal(m)),
    "saturated": lambda rng, m: np.clip(rng.standard_normal(m), -0.5, 0.5),
    "two values": lambda rng, m: (rng.random(m) < 0.02).astype(float),
}


@pytest.mark.parametrize("order", ["coins", "absent first", "present first"])
@pytest.mark.parametrize("scores", SCORES)
def test_equal_scores_accuse_nobody(scores, order):
    """Scores know nothing of the coins; at confidence 0.95 at most 5 percent are above 0."""
    rng, positive, trials = np.random.default_rng(7), 0, 150
    for trial in range(trials):
        m = (40, 200, 1_000)[trial % 3]
        included = rng.random(m) < 0.5
        if order != "coins":
            included = np.sort(included) if order == "absent first" else np.sort(included)[::-1]
        guesses = max(2, m // (1, 4, 20)[trial // 3 % 3])
        found = attacks.one_run(included, SCORES[scores](rng, m), guesses=guesses, delta=DELTA)
        positive += found.epsilon > 0 or found.mu > 0
    # Two bounds, each with its own confidence.
    assert alarms(positive, trials, 0.1)


# -- many runs


def counted(*counts, delta=DELTA, **options):
    names = ("true_positives", "false_negatives", "false_positives", "true_negatives")
    given = dict(zip(names, counts, strict=True))
    return attacks.from_confusion_matrix(**given, delta=delta, **options)


@pytest.mark.parametrize("counts", [(310, 190, 40, 460), (500, 0, 3, 497), (12, 488, 0, 500)])
def test_counts_are_bounded_as_exact_intervals_say(counts):
    hits, misses, false, silent = counts
    found = counted(*counts, confidence=0.9)
    # An exact two-sided interval has half of its failures on each side.
    least, most = (
        stats.binomtest(k, n).proportion_ci(0.9, method="exact")
        for k, n in ((hits, hits + misses), (false, false + silent))
    )
    expected = max(
        math.log((least.low - DELTA) / most.high),
        math.log((1 - most.high - DELTA) / (1 - least.low)),
    )
    assert found.epsilon == pytest.approx(max(0.0, expected), rel=1e-8)
    assert (found.present, found.absent) == (hits + misses, false + silent)
    assert found.to_dict()["confidence"] == 0.9


def test_a_test_that_never_errs_is_bounded_by_its_runs():
    # Rule of three: a rate of which nothing is seen in n runs is below -log(chance) / n.
    bound = counted(1_000, 0, 0, 1_000, delta=0).epsilon
    assert bound == pytest.approx(math.log(1_000 / -math.log(0.025)), abs=0.01)


@pytest.mark.parametrize("mu", [0.0, 1.0])
@pytest.mark.parametrize("arranged", [np.asarray, np.sort, lambda x: np.round(np.sort(x)[::-1])])
def test_bounds_of_many_runs_are_seldom_above_the_truth(mu, arranged):
    """One Gaussian answer is attacked, in any order of its runs."""
    event = dpcal.events.GaussianDpEvent(1 / mu) if mu else None
    truth = float(dpcal.epsilon(event, delta=DELTA).lower) if mu else 0.0
    rng, above, trials = np.random.default_rng(11), 0, 100
    for _ in range(trials):
        present, absent = rng.standard_normal(300) + mu, rng.standard_normal(300)
        found = attacks.many_runs(arranged(present), arranged(absent), delta=DELTA)
        above += found.epsilon > truth
    assert alarms(above, trials)


@pytest.mark.parametrize("arranged", [np.asarray, np.sort])
def test_many_runs_find_a_leak(arranged):
    rng = np.random.default_rng(3)
    present, absent = (arranged(rng.standard_normal(2_000) + mean) for mean in (3.0, 0.0))
    found = attacks.many_runs(present, absent, delta=DELTA)
    truth = float(dpcal.epsilon(dpcal.events.GaussianDpEvent(1 / 3), delta=DELTA))
    assert 3.0 < found.epsilon < truth
    # Scores of the other sign are those of a test that is always wrong.
    assert attacks.many_runs(-present, -absent, delta=DELTA).epsilon == 0.0
