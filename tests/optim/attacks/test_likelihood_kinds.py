"""Nine tenths of the claim are reached for each kind of run, and less noise is accused."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from dpcal import calibrate
from dpcal.accountants.matrix import LambdaCGD
from dpcal.calibrate import Constants, Plan, Query
from dpcal.optim import PrivateOracle, attacks
from dpcal.optim.boundary.choices import PrivateChoices
from dpcal.optim.registry import find

# Records: each answer in whole numbers takes the square of them.
SIZES = {"gaussian": 2_000, "discrete": 200}
# Canaries that reach a claim, and that accuse a run with less noise.
MANY, FEW = 80_000, 20_000
CONSTANTS = Constants(
    lipschitz=1.0, smoothness=0.25, gap=0.7, hessian_lipschitz=0.1, strong_concavity=0.25
)
TARGET = {"epsilon": 4.0, "delta": 1e-5}
POISSON = {"neighboring_relation": "add-or-remove-one"}
SURE = {"confidence": 0.95, "seed": 1}
QUIETER = 0.7


def minimax(n):
    return calibrate.dp_rgda(
        CONSTANTS,
        n=n,
        dimensions=(n - 2, 2),
        steps=12,
        period=4,
        batch_size=n // 10,
        difference_norm=0.3,
        **POISSON,
        **TARGET,
    )


def second_order(n):
    return calibrate.sto_spider(CONSTANTS, n=n, dimension=n, steps=10, **POISSON, **TARGET)


def correlated(n):
    return calibrate.correlated_dpsgd(
        LambdaCGD(10, 0.5), n=n, batch_size=n, sampler="full", **TARGET
    )


def silos(n):
    return calibrate.distributed_psgd(CONSTANTS, silos=2, n=n, dimension=n, **TARGET)


KINDS = (minimax, second_order, correlated, silos)
REACHED = 0.9


def with_noise(factor, plan):
    queries = tuple(
        dataclasses.replace(query, noise_multiplier=factor * query.noise_multiplier)
        for query in plan.queries
    )
    return dataclasses.replace(plan, queries=queries)


def asked(canaries, plan, noise):
    """Run a plan's optimizer; canaries are no minimax problem, so its queries are asked alone."""
    if plan.optimizer != "dp_rgda":
        find(plan.optimizer).optimizer()(canaries, plan, noise=noise)
        return
    oracle = PrivateOracle(canaries, plan, noise=noise)
    far, near = np.ones(plan.n), np.zeros(plan.n)
    for query in plan.queries:
        for _ in range(query.count):
            if query.kind == "gradient":
                oracle.gradient(near, query.name)
            else:
                oracle.difference(far, near, query.name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("noise", ["gaussian", "discrete"])
@pytest.mark.parametrize("made", KINDS)
def test_the_claim_is_reached_and_less_noise_is_accused(made, noise):
    plan = made(SIZES[noise])
    honest = attacks.likelihood(plan, run=lambda *run: asked(*run, noise), samples=MANY, **SURE)
    assert honest.holds, str(honest)
    assert honest.epsilon > REACHED * plan.epsilon, str(honest)
    quiet = attacks.likelihood(
        plan,
        run=lambda canaries, plan: asked(canaries, with_noise(QUIETER, plan), noise),
        samples=FEW,
        **SURE,
    )
    assert not quiet.holds, str(quiet)


def told_by_medians(plan, values, medians, seed):
    """Return how many medians are above all values, each of an interval with values of its own."""
    places = np.arange(medians)
    plan = dataclasses.replace(plan, n=3 * medians)
    choices = PrivateChoices(
        np.add.outer(places, values).reshape(-1, 1), plan, seed=seed, noise="gaussian"
    )
    (query,) = plan.queries
    points = choices.medians(0, np.arange(len(places) + 1.0), query.name)
    return int((points - places > 0.9001).sum())


@pytest.mark.slow
def test_the_claim_of_a_selection_is_reached_and_less_noise_is_accused():
    """A record below all others pulls the median from a rare place above them."""
    epsilon = 3.0
    once = Query(
        name="medians",
        kind="selection",
        sampler="full",
        max_norm=0.5,
        noise_multiplier=2 / epsilon,
        count=1,
    )
    plan = Plan(optimizer="medians", n=3, queries=(once,), epsilon=4.0, delta=1e-9)
    claim = float(plan.price())
    assert claim == pytest.approx(epsilon, rel=1e-3)
    found = []
    for factor, few, many in ((1.0, 20_000, 60_000), (QUIETER, 6_000, 6_000)):
        noisy = dataclasses.replace(once, noise_multiplier=factor * once.noise_multiplier)
        once_each = dataclasses.replace(plan, queries=(noisy,), epsilon=1e9)
        blank = told_by_medians(once_each, [0.9, 0.9, np.nan], few, seed=1)
        known = told_by_medians(once_each, [0.9, 0.9, 1e-5], many, seed=2)
        least = stats.beta.ppf(0.025, blank, few - blank + 1)
        most = stats.beta.ppf(0.975, known + 1, many - known)
        found.append(float(np.log(least / most)))
    assert 0.9 * claim < found[0] <= claim
    assert found[1] > claim
