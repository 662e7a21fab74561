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

N = 4_000
CONSTANTS = Constants(
    lipschitz=1.0, smoothness=0.25, gap=0.7, hessian_lipschitz=0.1, strong_concavity=0.25
)
TARGET = {"n": N, "epsilon": 2.0, "delta": 1e-5}
POISSON = {"neighboring_relation": "add-or-remove-one"}
SURE = {"samples": 1_000_000, "confidence": 0.99, "seed": 1}
QUIETER = 0.7


def minimax():
    return calibrate.dp_rgda(
        CONSTANTS,
        dimensions=(N - 2, 2),
        steps=12,
        period=4,
        batch_size=400,
        difference_norm=0.3,
        **POISSON,
        **TARGET,
    )


def second_order():
    return calibrate.sto_spider(CONSTANTS, dimension=N, steps=20, **POISSON, **TARGET)


def correlated():
    return calibrate.correlated_dpsgd(LambdaCGD(20, 0.5), batch_size=N, sampler="full", **TARGET)


def silos():
    return calibrate.distributed_psgd(CONSTANTS, silos=2, dimension=N, **TARGET)


# The share of the claim that is reached. A silo's partition gives each record one part or none, and
# the claim is about a record whose part tells most.
CLAIMS = {minimax: 0.9, second_order: 0.9, correlated: 0.9, silos: 0.75}


def with_noise(factor, plan):
    queries = tuple(
        dataclasses.replace(query, noise_multiplier=factor * query.noise_multiplier)
        for query in plan.queries
    )
    return dataclasses.replace(plan, queries=queries)


def asked(canaries, plan):
    """Ask all of a plan's queries between points at which each canary tells all it may."""
    if isinstance(canaries, list):
        find(plan.optimizer).optimizer()(canaries, plan, noise="gaussian")
        return
    oracle = PrivateOracle(canaries, plan, noise="gaussian")
    far, near = np.ones(N), np.zeros(N)
    for query in plan.queries:
        for _ in range(query.count):
            if query.kind == "gradient":
                oracle.gradient(near, query.name)
            else:
                oracle.difference(far, near, query.name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("made", CLAIMS)
def test_the_claim_is_reached_and_less_noise_is_accused(made):
    plan = made()
    honest = attacks.likelihood(plan, run=asked, **SURE)
    assert honest.holds, str(honest)
    assert honest.epsilon > CLAIMS[made] * plan.epsilon, str(honest)
    quiet = attacks.likelihood(
        plan, run=lambda canaries, plan: asked(canaries, with_noise(QUIETER, plan)), **SURE
    )
    assert not quiet.holds, str(quiet)


def told_by_medians(plan, values, seed):
    """Return how many medians are above all values, of how many."""
    choices = PrivateChoices(np.array(values)[:, np.newaxis], plan, seed=seed, noise="gaussian")
    (query,) = plan.queries
    points = [choices.medians(0, [0.0, 1.0], query.name)[0] for _ in range(query.count)]
    return int((np.array(points) > 0.9001).sum())


@pytest.mark.slow
def test_the_claim_of_a_selection_is_reached_and_less_noise_is_accused():
    """A record below all others pulls the median from a rare place above them."""
    answers, epsilon = 120_000, 3.0
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
    for factor in (1.0, QUIETER):
        many = dataclasses.replace(
            once, count=answers, noise_multiplier=factor * once.noise_multiplier
        )
        repeated = dataclasses.replace(plan, queries=(many,), epsilon=1e9)
        blank = told_by_medians(repeated, [0.9, 0.9, np.nan], seed=1)
        known = told_by_medians(repeated, [0.9, 0.9, 1e-5], seed=2)
        least = stats.beta.ppf(0.005, blank, answers - blank + 1)
        most = stats.beta.ppf(0.995, known + 1, answers - known)
        found.append(float(np.log(least / most)))
    assert 0.9 * claim < found[0] <= claim
    assert found[1] > claim
