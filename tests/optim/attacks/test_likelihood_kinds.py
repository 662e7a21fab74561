"""Each kind of run: attacks come near the claim, stay below it, and accuse less noise."""

import dataclasses
import warnings

import numpy as np
import pytest
from _answers import plan_for, query
from scipy import stats

from dpcal import calibrate
from dpcal.accountants.matrix import LambdaCGD
from dpcal.calibrate import Constants
from dpcal.errors import VacuousSchedule
from dpcal.optim import PrivateOracle, attacks
from dpcal.optim.boundary.choices import PrivateChoices
from dpcal.optim.registry import find

CONSTANTS = Constants(
    lipschitz=1.0, smoothness=0.25, gap=0.7, hessian_lipschitz=0.1, strong_concavity=0.25
)
TARGET = {"epsilon": 4.0, "delta": 1e-5}
POISSON = {"neighboring_relation": "add-or-remove-one"}
REPLACED = {"neighboring_relation": "replace-one"}
SMALL = {"batch_size": 25, "difference_batch_size": 5, "drift": 0.05}
# A claim that holds is accused with at most this chance, in each test.
ALARM = 1e-6


def planned(builder, dimension=None, **options):
    """Return what makes a plan of so many records, with the claim that it costs."""

    def made(n):
        return builder(CONSTANTS, n=n, dimension=dimension or n, **{**TARGET, **options})

    return made


def whole(builder, **options):
    """Return what makes a plan of one pass over disjoint parts: no small estimate ends it."""

    def made(n):
        plan = planned(builder, 5, **options)(n)
        return dataclasses.replace(plan, parameters={**plan.parameters, "threshold": 1e-300})

    return made


def minimax(n):
    given = {"dimensions": (n - 2, 2), "steps": 12, "period": 4, "batch_size": n // 10}
    return calibrate.dp_rgda(CONSTANTS, n=n, difference_norm=0.3, **given, **POISSON, **TARGET)


def fixed(n):
    plan = calibrate.dpsgd(n=n, batch_size=n // 10, steps=20, **TARGET, **REPLACED)
    (asked,) = plan.queries
    fields = {"sampler": "fixed-size", "batch_size": n // 10, "sampling_probability": None}
    asked = dataclasses.replace(asked, noise_multiplier=2 * asked.noise_multiplier, **fields)
    plan = dataclasses.replace(plan, queries=(asked,))
    return dataclasses.replace(plan, epsilon=float(plan.price()))


def correlated(sampler):
    def made(n):
        all_records = sampler == "full"
        given = {} if all_records else {"seed": 0, "draws": 5_000, "epsilon": 2.0, "delta": 1e-3}
        return calibrate.correlated_dpsgd(
            LambdaCGD(10, 0.5),
            n=n,
            batch_size=n if all_records else n // 10,
            sampler=sampler,
            **{**TARGET, **given},
        )

    return made


@dataclasses.dataclass(frozen=True)
class Case:
    """A kind of plan, its records and canaries, and the share of the claim that is reached."""

    made: object
    n: int
    samples: int
    reached: float
    less: float = 0.5
    noise: str = "gaussian"


LARGE = {"n": 2_000, "samples": 80_000, "reached": 0.8, "less": 0.7}
# Each answer in whole numbers takes the square of the records.
WHOLE = {**LARGE, "n": 200, "noise": "discrete"}
FEW = {**WHOLE, "samples": 8_000, "reached": 0.5, "less": 0.5}
PARTS = {"n": 250, "samples": 20_000, "reached": 0.15}
MORE = {**PARTS, "samples": 40_000}
SHORT = {"n": 1_000, "samples": 12_000, "reached": 0.2, "less": 1 / 3}
KINDS = {
    "minimax": minimax,
    "second order": planned(calibrate.sto_spider, steps=10, **POISSON),
    "correlated": correlated("full"),
    "silos": planned(calibrate.distributed_psgd, silos=2),
}
CASES = {
    **{name: Case(made, **LARGE) for name, made in KINDS.items()},
    **{f"{name}, whole numbers": Case(made, **WHOLE) for name, made in KINDS.items()},
    **{f"{name}, few": Case(made, **FEW) for name, made in KINDS.items()},
    "parts of a tree": Case(whole(calibrate.tree_spider), **PARTS),
    "parts of a walk": Case(planned(calibrate.gauss_psgd, 5, **SMALL), **PARTS),
    "batches of one size": Case(fixed, **PARTS),
    "correlated, Poisson": Case(correlated("poisson"), **MORE),
    "correlated, bins": Case(correlated("balls-in-bins"), **MORE),
    "descent": Case(planned(calibrate.noisy_gd, 2, steps=3), **SHORT),
    "differences": Case(planned(calibrate.spiderboost, 2, steps=12, batch_size=100), **SHORT),
    "rounds": Case(
        planned(calibrate.recursive_regularization, 2, distance=3.0, **REPLACED), **SHORT
    ),
}


def with_noise(factor, plan):
    queries = tuple(
        dataclasses.replace(each, noise_multiplier=factor * each.noise_multiplier)
        for each in plan.queries
    )
    return dataclasses.replace(plan, queries=queries)


def asked(canaries, plan, noise):
    """Run a plan's optimizer; canaries are no minimax problem, so its queries are asked alone."""
    if plan.optimizer != "dp_rgda":
        find(plan.optimizer).optimizer()(canaries, plan, noise=noise)
        return
    oracle = PrivateOracle(canaries, plan, noise=noise)
    far, near = np.ones(plan.n), np.zeros(plan.n)
    for each in plan.queries:
        for _ in range(each.count):
            if each.kind == "gradient":
                oracle.gradient(near, each.name)
            else:
                oracle.difference(far, near, each.name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.study if "whole numbers" in name else ())
        for name in CASES
    ],
)
def test_the_claim_is_nearly_reached_and_less_noise_is_accused(name):
    case = CASES[name]
    options = {"samples": case.samples, "confidence": 1 - ALARM, "seed": 2}
    with warnings.catch_warnings():
        # A walk is informative from more records on.
        warnings.simplefilter("ignore", VacuousSchedule)
        plan = case.made(case.n)
        honest, quiet = (
            attacks.likelihood(
                plan,
                run=lambda canaries, plan, factor=factor: asked(
                    canaries, with_noise(factor, plan), case.noise
                ),
                **options,
            )
            for factor in (1.0, case.less)
        )
    assert honest.holds, str(honest)
    assert honest.epsilon > case.reached * plan.epsilon, str(honest)
    assert quiet.epsilon > plan.epsilon, str(quiet)
    assert not quiet.holds


def told_by_medians(plan, values, medians, seed):
    """Return how many medians are above all values, each of an interval with values of its own."""
    places = np.arange(medians)
    plan = dataclasses.replace(plan, n=3 * medians)
    table = np.add.outer(places, values).reshape(-1, 1)
    choices = PrivateChoices(table, plan, seed=seed, noise="gaussian")
    points = choices.medians(0, np.arange(medians + 1.0), "q")
    return int((points - places > 0.9001).sum())


@pytest.mark.slow
def test_the_claim_of_a_selection_is_reached_and_less_noise_is_accused():
    """A record below all others pulls the median from a rare place above them."""
    once = query(kind="selection", noise_multiplier=2 / 3, count=1)
    plan = plan_for(once, n=3, epsilon=4.0, delta=1e-9)
    claim = float(plan.price())
    assert claim == pytest.approx(3.0, rel=1e-3)
    found = []
    for factor, few, many in ((1.0, 10_000, 30_000), (0.7, 6_000, 6_000)):
        noisy = dataclasses.replace(with_noise(factor, plan), epsilon=1e9)
        blank = told_by_medians(noisy, [0.9, 0.9, np.nan], few, seed=1)
        known = told_by_medians(noisy, [0.9, 0.9, 1e-5], many, seed=2)
        least = stats.beta.ppf(0.025, blank, few - blank + 1)
        most = stats.beta.ppf(0.975, known + 1, many - known)
        found.append(float(np.log(least / most)))
    assert 0.85 * claim < found[0] <= claim
    assert found[1] > claim
