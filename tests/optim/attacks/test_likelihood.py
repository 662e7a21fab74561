"""Likelihood ratios and canaries: they come close to what a run leaks, and stay below it."""

import dataclasses
import itertools
import math
import warnings
from functools import partial

import numpy as np
import pytest
from _answers import N, parted, plan_for, query
from contracts._runs import CONSTANTS
from scipy import stats
from scipy.special import logsumexp

from dpcal import accountants, calibrate, optim
from dpcal.accountants.curves.tradeoff import gdp_mu
from dpcal.accountants.matrix import LambdaCGD
from dpcal.calibrate import Correlation
from dpcal.errors import UnsupportedEvent, VacuousSchedule
from dpcal.optim import PrivateOracle, attacks
from dpcal.optim.attacks.canaries import power
from dpcal.optim.attacks.evidence import Evidence
from dpcal.optim.boundary.choices import PrivateChoices
from dpcal.optim.registry import OPTIMIZERS, find

DELTA = 1e-5


def with_noise(factor, plan):
    """Return a plan with a share of its noise."""
    queries = tuple(
        dataclasses.replace(
            each,
            noise_multiplier=factor * each.noise_multiplier,
            budget=each.budget and factor * each.budget,
        )
        for each in plan.queries
    )
    return dataclasses.replace(plan, queries=queries)


def test_ratios_of_one_gaussian_answer_have_their_law():
    """Of one answer about everybody: x / z^2 - 1 / (2 z^2), normal with mean -+ 1 / (2 z^2)."""
    plan = plan_for(query(count=1), relation="add-or-remove-one", optimizer="noisy_gd")
    found = attacks.likelihood(
        plan, run=lambda o, p: optim.noisy_gd(o, p, learning_rate=1.0), samples=4_000, seed=4
    )
    for ratios, sign in ((found.members, 1), (found.others, -1)):
        law = stats.norm(sign / 8, 1 / 2)
        assert stats.kstest(ratios, law.cdf).pvalue > 1e-6
    positives, negatives = found.rates()
    exact = stats.norm.cdf(stats.norm.isf(positives[50]) - 0.5)
    assert negatives[50] == pytest.approx(exact, abs=0.05)


def test_what_mixes_canaries_is_refused():
    plan = calibrate.adaptive_gd(CONSTANTS, n=N, dimension=3, steps=3, epsilon=1.0, delta=DELTA)
    with pytest.raises(UnsupportedEvent, match="in which each canary has a coordinate"):
        attacks.likelihood(plan)


# -- one run, seen from outside


def test_right_guesses_alone_bound_epsilon_as_in_closed_form():
    """With delta = 0 and k guesses, all right, epsilon is the logit of chance^(1/k)."""
    included = np.arange(100) % 2 == 0
    found = attacks.one_run(included, included, guesses=100, delta=0.0)
    root = 0.05 ** (1 / 100)
    assert found.epsilon == pytest.approx(math.log(root / (1 - root)), abs=2e-3)
    assert found.right == 100


@pytest.mark.parametrize("mu", [0.0, 1.0])
def test_bounds_of_one_run_are_seldom_above_the_truth(mu):
    """Scores of mu-Gaussian privacy: each bound is wrong in at most one run of twenty."""
    rng, m, runs, epsilon = np.random.default_rng(5), 400, 150, 0.0
    if mu:
        event = accountants.events.GaussianDpEvent(1 / mu)
        epsilon = float(accountants.epsilon(event, delta=DELTA))
    wrong = np.zeros(2)
    for run in range(runs):
        included = np.random.default_rng(run).random(m) < 0.5
        scores = mu * included + rng.standard_normal(m)
        found = attacks.one_run(included, scores, guesses=m // 2, delta=DELTA)
        wrong += [found.mu > mu, found.epsilon > epsilon]
    # 5 percent of 150 are 7.5; 18 and more of them have a chance of 4e-4.
    assert (wrong < 18).all()


@pytest.mark.slow
def test_one_run_shows_about_what_its_power_says_and_more_canaries_show_more():
    plan = calibrate.dpsgd(n=2_000, batch_size=2_000, steps=20, epsilon=8.0, delta=DELTA)
    found, expected = attacks.plant(plan, seed=8)
    assert found.epsilon <= plan.epsilon
    assert found.mu <= gdp_mu(plan.event)
    assert found.mu > 0.7 * expected.mu > 0.3
    few, many = (power(mu=1.5, canaries=m, delta=DELTA, seed=9) for m in (100, 3_000))
    assert few.mu < many.mu < 1.5


@pytest.mark.parametrize(
    "plan",
    [
        calibrate.dpsgd(n=1_000, batch_size=1_000, steps=20, epsilon=1.0, delta=DELTA),
        # With norms too, to which all canaries contribute.
        calibrate.adaptive_gd(
            CONSTANTS, n=1_000, dimension=1_000, steps=3, epsilon=2.0, delta=DELTA
        ),
    ],
    ids=lambda plan: plan.optimizer,
)
def test_a_run_with_hardly_any_noise_is_found(plan):
    def shown(factor):
        def run(records, plan):
            return optim.run(records, with_noise(factor, plan))

        return attacks.plant(plan, run=run, confidence=0.999, seed=8)[0].epsilon

    assert shown(1.0) <= plan.epsilon < shown(0.05)


# -- samplers: over all ways in which a record can take part

ROUNDS, NOISE = 6, 1.5


def query_of(sampler, **fields):
    rows = Correlation(strategy=LambdaCGD(ROUNDS, 0.6))
    fields |= {"sampler": sampler, "correlation": rows, "count": ROUNDS}
    return query(max_norm=1.0, noise_multiplier=NOISE, **fields)


def of_all(patterns, chances, z):
    """Return log of the mean over patterns y of N(C y, NOISE^2) over N(0, NOISE^2), at C z."""
    C = LambdaCGD(ROUNDS, 0.6).matrix()
    means = patterns @ C.T
    exponents = (means @ (C @ z)) / NOISE**2
    exponents -= (means**2).sum(axis=1)[:, np.newaxis] / (2 * NOISE**2)
    return logsumexp(exponents, axis=0, b=chances[:, np.newaxis])


EVERY = np.array(list(itertools.product([0.0, 1.0], repeat=ROUNDS)))


def bernoulli(q, allowed=1.0):
    """Return the chance of each pattern, where rounds are independent and some allowed."""
    return np.prod(np.where(EVERY == 1, q * allowed, 1 - q * allowed), axis=1)


BINS = np.tile(np.eye(3), (2, 1)).T
CHOSEN = EVERY[EVERY.sum(axis=1) == 2]
PATTERNS = {
    "full": (query_of("full"), np.ones((1, ROUNDS)), np.ones(1)),
    "poisson": (query_of("poisson", sampling_probability=0.3), EVERY, bernoulli(0.3)),
    "balls-in-bins": (query_of("balls-in-bins", separation=3), BINS, np.full(3, 1 / 3)),
    "cyclic-poisson": (
        query_of("cyclic-poisson", separation=3, sampling_probability=0.4),
        EVERY,
        np.mean([bernoulli(0.4, allowed) for allowed in BINS], axis=0),
    ),
    "random-allocation": (
        query_of("random-allocation", participations=2),
        CHOSEN,
        np.full(len(CHOSEN), 1 / len(CHOSEN)),
    ),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_ratios_of_correlated_noise_are_means_over_all_participations(name):
    asked, patterns, chances = PATTERNS[name]
    answers = np.random.default_rng(3).standard_normal((ROUNDS, 40)) * NOISE
    evidence = Evidence(asked, n=40)
    for number, x in enumerate(answers):
        if number == 1:
            with pytest.raises(UnsupportedEvent, match="6 answers, got one of 1"):
                evidence.log_ratios()
        evidence.add(x, np.arange(40))
    assert chances.sum() == pytest.approx(1)
    assert evidence.log_ratios() == pytest.approx(of_all(patterns, chances, answers), abs=1e-6)


def test_a_part_says_nothing_of_records_that_are_not_in_it():
    part = parted("q", 2, 2, max_norm=1.0, noise_multiplier=NOISE, partition=None)
    evidence = Evidence(part, n=4)
    evidence.add(np.array([1.0, 9.0, 0.0, 9.0]), np.array([0, 2]))
    expected = [0.5 / NOISE**2, 0.0, -0.5 / NOISE**2, 0.0]
    assert evidence.log_ratios() == pytest.approx(expected)


def test_records_that_are_drawn_together_have_the_bound_of_hoeffding():
    """Its exponent is a divergence of Bernoulli laws, which no bound by Clopper and Pearson has."""
    alarm, sizes = 1e-6, {"n": 250, "dimension": 5, "batch_size": 25, "steps": 20}
    target = {"epsilon": 2.0, "delta": DELTA, "neighboring_relation": "replace-one"}
    plan = calibrate.spiderboost(CONSTANTS, **sizes, **target)
    found = attacks.likelihood(plan, samples=4_000, confidence=1 - alarm, seed=2)
    p, q = (found.members > 0).mean(), found.true_positive_rate
    divergence = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    assert len(found.members) * divergence == pytest.approx(math.log(2 / alarm), rel=1e-6)


# -- each kind of run: attacks come near the claim, stay below it, and accuse less noise

TARGET = {"epsilon": 4.0, "delta": 1e-5}
POISSON = {"neighboring_relation": "add-or-remove-one"}
REPLACED = {"neighboring_relation": "replace-one"}
SMALL = {"batch_size": 25, "difference_batch_size": 5, "drift": 0.05}


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


def minimax(builder, **options):
    def made(n):
        given = {"dimensions": (n - 2, 2), "steps": 12, **options}
        return builder(CONSTANTS, n=n, **given, **POISSON, **TARGET)

    return made


def sampled(n, **options):
    return calibrate.dpsgd(n=n, batch_size=n // 10, steps=20, **{**TARGET, **options})


def fixed(n):
    # More noise, of more steps, has a curve that takes a tenth of the time.
    plan = calibrate.dpsgd(n=n, batch_size=n // 10, steps=60, **REPLACED, **TARGET)
    (asked,) = plan.queries
    fields = {"sampler": "fixed-size", "batch_size": n // 10, "sampling_probability": None}
    asked = dataclasses.replace(asked, noise_multiplier=2 * asked.noise_multiplier, **fields)
    plan = dataclasses.replace(plan, queries=(asked,))
    return dataclasses.replace(plan, epsilon=float(plan.price()))


def correlated(sampler):
    def made(n):
        all_records = sampler == "full"
        given = {} if all_records else {"seed": 0, "draws": 5_000, "epsilon": 2.0, "delta": 1e-3}
        sizes = {"n": n, "batch_size": n if all_records else n // 10, "sampler": sampler}
        return calibrate.correlated_dpsgd(LambdaCGD(10, 0.5), **sizes, **{**TARGET, **given})

    return made


@dataclasses.dataclass(frozen=True)
class Case:
    """A kind of plan, its records and canaries, and the share of the claim that is reached."""

    made: object
    n: int
    samples: int
    reached: float
    less: float = 0.5
    # A claim that holds is accused with at most this chance.
    alarm: float = 1e-6
    study: bool = False


# Each answer in whole numbers takes the square of the records.
WHOLE = {"n": 200, "samples": 80_000, "reached": 0.8, "less": 0.7, "study": True}
FEW = {**WHOLE, "samples": 8_000, "reached": 0.4, "less": 0.5, "study": False}
PARTS = {"n": 250, "samples": 20_000, "reached": 0.15}
MORE = {**PARTS, "samples": 40_000}
SHORT = {"n": 1_000, "samples": 12_000, "reached": 0.2, "less": 1 / 3}
KINDS = {
    "minimax": minimax(calibrate.dp_rgda, difference_norm=0.3, period=4, batch_size=200),
    "second order": planned(calibrate.sto_spider, steps=10, **POISSON),
    "correlated": correlated("full"),
    "silos": planned(calibrate.distributed_psgd, silos=2),
}
ALLOCATED = partial(sampled, epsilon=2.0, sampler="random-allocation")
# Rates are known to within the root of the samples: a small epsilon needs more of them.
SAMPLED = {"n": 500, "less": 0.8, "alarm": 0.05}
ALL = {"reached": 0.9, "less": 0.7, "alarm": 0.01, "study": True}
KL = {"gamma": 1.5, "kappa": 2.0, "epsilon": 2.0, **REPLACED}
CASES = {
    **{name: Case(made, **WHOLE) for name, made in KINDS.items()},
    **{f"{name}, few": Case(made, **FEW) for name, made in KINDS.items()},
    "sampled": Case(partial(sampled, epsilon=8.0), samples=80_000, reached=0.9, **SAMPLED),
    "sampled, replaced": Case(
        partial(sampled, **REPLACED), samples=60_000, reached=0.85, **SAMPLED
    ),
    "sampled, middle": Case(sampled, samples=400_000, reached=0.9, study=True, **SAMPLED),
    "sampled, small": Case(
        partial(sampled, epsilon=1.0), samples=1_000_000, reached=0.9, study=True, **SAMPLED
    ),
    "allocated": Case(ALLOCATED, 500, 120_000, **{**ALL, "reached": 0.8}),
    "parts of a tree": Case(whole(calibrate.tree_spider), **PARTS),
    "parts of a walk": Case(planned(calibrate.gauss_psgd, 5, **SMALL), **PARTS),
    "batches of one size": Case(fixed, **PARTS),
    "correlated, Poisson": Case(correlated("poisson"), **MORE, less=0.4),
    "correlated, bins": Case(correlated("balls-in-bins"), **MORE),
    "descent": Case(planned(calibrate.noisy_gd, 2, steps=3), **SHORT),
    "differences": Case(planned(calibrate.spiderboost, 2, steps=12, batch_size=100), **SHORT),
    "KL spider": Case(planned(calibrate.kl_spider, 2, **KL), 1_000, 24_000, 0.0, less=0.1),
    "proximal points": Case(
        planned(calibrate.proximal_point, 2, inner_steps=3, **KL), 1_000, 24_000, 0.0, less=0.1
    ),
    "second order, adaptive": Case(
        planned(calibrate.ada_dp_spider, steps=10, batch_size=1_000, refresh_size=1_000, **POISSON),
        **SHORT,
    ),
    "minimax descent": Case(minimax(calibrate.dp_sgda, batch_size=SHORT["n"]), **SHORT),
    "minimax differences": Case(minimax(calibrate.privatediff), **SHORT),
    "embedded": Case(
        planned(calibrate.jl_glm, inner="noisy_gd", embedding_dimension=2, steps=3, **REPLACED),
        **SHORT,
    ),
    "rounds": Case(
        planned(calibrate.recursive_regularization, 2, distance=3.0, **REPLACED), **SHORT
    ),
}


def asked(canaries, plan):
    """Run a plan's optimizer, or ask its queries alone where canaries are no problem for it."""
    if not OPTIMIZERS[plan.optimizer].blocks and plan.optimizer != "jl_glm":
        find(plan.optimizer).optimizer()(canaries, plan)
        return
    oracle = PrivateOracle(canaries, plan)
    far, near = np.ones(plan.n), np.zeros(plan.n)
    for each in plan.queries:
        for _ in range(each.count):
            if each.kind == "gradient":
                oracle.gradient(near, each.name)
            else:
                oracle.difference(far, near, each.name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpcal.errors.VacuousSchedule")
def test_every_optimizer_is_attacked():
    """But for one whose norms mix canaries, which is refused."""
    plans = [case.made(case.n) for name, case in CASES.items() if "correlated" not in name]
    attacked = {plan.optimizer for plan in plans} | {"correlated_dpsgd"}
    assert attacked == {*OPTIMIZERS} - {"adaptive_gd"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.study if case.study else ())
        for name, case in CASES.items()
    ],
)
def test_the_claim_is_nearly_reached_and_less_noise_is_accused(name):
    case = CASES[name]
    options = {"samples": case.samples, "confidence": 1 - case.alarm, "seed": 2}
    with warnings.catch_warnings():
        # A walk is informative from more records on.
        warnings.simplefilter("ignore", VacuousSchedule)
        plan = case.made(case.n)
        honest, quiet = (
            attacks.likelihood(
                plan,
                run=lambda canaries, plan, factor=factor: asked(canaries, with_noise(factor, plan)),
                **options,
            )
            for factor in (1.0, case.less)
        )
    assert honest.holds, str(honest)
    assert 0 < honest.alone < plan.epsilon
    assert honest.epsilon > case.reached * plan.epsilon, str(honest)
    assert quiet.epsilon > plan.epsilon, str(quiet)
    assert not quiet.holds
    assert math.isnan(quiet.scale) or quiet.scale < 1
    # The truth is an upper end for the attack on any mechanism.
    assert quiet.epsilon <= with_noise(case.less, plan).price()


def told_by_medians(plan, values, medians, seed):
    """Return how many medians are above all values, each of an interval with values of its own."""
    places = np.arange(medians)
    plan = dataclasses.replace(plan, n=3 * medians)
    table = np.add.outer(places, values).reshape(-1, 1)
    choices = PrivateChoices(table, plan, seed=seed)
    points = choices.quantiles(0, np.arange(medians + 1.0), "q")
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
