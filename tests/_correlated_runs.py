"""Runs with correlated noise: strategies, samplers, and a plan of each."""

import tomllib

import numpy as np
from _tree import DATA

from dpcal import accountants, calibrate
from dpcal.accountants import correlated, events
from dpcal.accountants.matrix import LambdaCGD
from dpcal.optim import Logistic

N, T = 120, 12
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3))
OBJECTIVE = Logistic(X, X[:, 0] > 0.2, classes_from_data=True)

RUNS = tomllib.loads((DATA / "correlated_runs.toml").read_text(encoding="utf-8"))
EXACT = {name for name, row in RUNS.items() if row.pop("exact", False)}


def plan_for(strategy=None, *, batch_size=12, **options):
    settings = {"n": N, "epsilon": 2.0, "delta": 1e-2, "draws": 4_000, "seed": 1, **options}
    strategy = LambdaCGD(T, 0.5) if strategy is None else strategy
    return calibrate.correlated_dpsgd(strategy, batch_size=batch_size, **settings)


def price(strategy, sampler, *, epsilon=None, delta=None, **run):
    """Return the delta of a run at an epsilon, or its epsilon at a delta."""
    event = events.CorrelatedGaussianDpEvent(strategy, sampler, **run)
    if delta is None:
        return accountants.delta(event, epsilon=epsilon)
    return accountants.epsilon(event, delta=delta)


def revealed_delta(strategy, sampler, *, epsilon, noise_multiplier):
    """Return a bound on delta if all participations are public."""
    mechanism = correlated.Mechanism.of(strategy, noise_multiplier=noise_multiplier)
    return correlated.revealed(mechanism, sampler).delta(epsilon)
