"""Attacks on what runs release: they prove no more than is claimed, and find too little noise."""

import math

import numpy as np
import pytest
from scipy import stats

from dpcal import calibrate, optim
from dpcal.calibrate import Constants

N, RUNS, DELTA = 16, 700, 1e-3
# Each bound of a rate is wrong with this chance, so a false alarm has one of 4e-6 over both plans.
CHANCE = 1e-6

OPTIONS = {
    "noisy_gd": {"steps": 3},
    "recursive_regularization": {},
}


def logistic(flipped):
    """As many records pull one way as the other, but for one, which changes sides."""
    labels = np.ones(N, dtype=int)
    labels[: N // 2] = 0
    labels[0] = 1 if flipped else 0
    return optim.Logistic(np.ones((N, 2)) / math.sqrt(2), labels, fit_intercept=False)


def released(name, plan, flipped):
    """The mean iterate along the records, as far as the run shows it, for many seeds."""
    optimizer, objective = getattr(optim, name), logistic(flipped)
    found = np.empty(RUNS)
    for seed in range(RUNS):
        path = []
        result = optimizer(
            objective,
            plan,
            seed=seed + RUNS * flipped,
            callback=lambda progress, path=path: path.append(progress.w.sum()),
            callback_every=1,
        )
        found[seed] = (sum(path) if path else 0.0) + 1e-6 * result.w.sum()
    return found


def proved(first, second):
    """A lower bound on epsilon: half of the runs choose a threshold, the others test it."""
    half = RUNS // 2

    def bound(level, low, high):
        hits, alarms = int((high > level).sum()), int((low > level).sum())
        least = stats.beta.ppf(CHANCE, hits, half - hits + 1) if hits else 0.0
        most = stats.beta.ppf(1 - CHANCE, alarms + 1, half - alarms) if alarms < half else 1.0
        return math.log((least - DELTA) / most) if least > DELTA else -math.inf

    levels = np.quantile(np.concatenate([first[:half], second[:half]]), np.linspace(0.02, 0.98, 49))
    best = max(levels, key=lambda level: bound(level, first[:half], second[:half]))
    return bound(best, first[half:], second[half:])


@pytest.mark.parametrize("name", OPTIONS)
def test_attacks_stay_below_the_claim_and_find_too_little_noise(name):
    constants = Constants(lipschitz=1.0, smoothness=0.25, gap=0.7)

    def shown(epsilon):
        plan = getattr(calibrate, name)(
            constants,
            n=N,
            dimension=2,
            epsilon=epsilon,
            delta=DELTA,
            neighboring_relation="replace-one",
            **OPTIONS[name],
        )
        return proved(*(released(name, plan, flipped) for flipped in (False, True)))

    assert shown(2.0) <= 2.0
    # A small part of the noise that a claim of 2 needs.
    assert shown(400.0) > 2.0
