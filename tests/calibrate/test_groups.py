"""People with several rows: the price is that of everything that their sampled rows can add."""

import dataclasses
import json
import math

import numpy as np
import pytest
from scipy.stats import binom, norm

import dpcal
from dpcal import calibrate, optim
from dpcal.accountants import delta, epsilon, events
from dpcal.calibrate import Plan, Query
from dpcal.calibrate.persons import for_group, rows_of_one_person
from dpcal.errors import BudgetExceeded, UnsupportedEvent
from dpcal.report import composed_reports

RELATIONS = ("add-or-remove-one", "replace-special")


def law(k, q, sigma, x):
    """Density of the sum where a person's rows all push the same way."""
    return sum(binom.pmf(j, k, q) * norm.pdf(x, j, sigma) for j in range(k + 1))


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("k", "q", "sigma"), [(2, 0.3, 1.0), (3, 0.05, 0.8), (5, 0.5, 4.0)])
def test_one_answer_is_the_mixture_of_its_samples(k, q, sigma, relation):
    """Hockey-stick divergences by sums over a grid, in both directions."""
    event = rows_of_one_person(noise_multiplier=sigma, group_size=k, sampling_probability=q)
    x = np.linspace(-12 * sigma, k + 12 * sigma, 400_001)
    with_person, without = law(k, q, sigma, x), norm.pdf(x, 0, sigma)
    for target in (0.1, 0.5, 1.5):
        both = [
            np.maximum(one - math.exp(target) * other, 0).sum() * (x[1] - x[0])
            for one, other in ((with_person, without), (without, with_person))
        ]
        found = delta(event, epsilon=target, neighboring_relation=relation)
        assert float(found) == pytest.approx(max(both), rel=1e-6, abs=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_plan_for_people_knows_of_people(relation):
    target = {"epsilon": 1.0, "delta": 1e-6, "neighboring_relation": relation}
    plan = calibrate.dpsgd(n=2000, batch_size=100, epochs=5, group_size=4, **target)
    assert 1 - 1e-4 < plan.price() <= 1
    # A record's price alone would be about a quarter.
    (query,) = plan.queries
    alone = dataclasses.replace(query, group_size=1).event(2000)
    assert epsilon(events.SelfComposedDpEvent(alone, query.count), delta=1e-6) < 0.3


@pytest.mark.parametrize("k", [1, 2, 7])
def test_a_group_moves_noise_so_many_times_as_far(k):
    laplace = for_group(events.LaplaceDpEvent(3.0), k)
    # Laplace noise on a sum that moves by k: delta is 1 - exp((eps - k / b) / 2) below k / b.
    exact = -math.expm1((0.1 - k / 3.0) / 2)
    assert exact <= delta(laplace, epsilon=0.1) <= exact * (1 + 1e-9)
    gaussian = for_group(events.ComposedDpEvent([events.GaussianDpEvent(9.0)]), k)
    wanted = epsilon(events.GaussianDpEvent(9.0 / k), delta=1e-6)
    for event in (gaussian, rows_of_one_person(noise_multiplier=9.0, group_size=k)):
        assert wanted <= epsilon(event, delta=1e-6) <= wanted * (1 + 1e-9)
    sampled = events.PoissonSampledDpEvent(0.1, events.GaussianDpEvent(2.0))
    assert for_group(sampled, k) == rows_of_one_person(
        noise_multiplier=2.0, group_size=k, sampling_probability=0.1
    )


@pytest.mark.parametrize("k", [2, 5])
def test_a_group_multiplies_what_randomized_response_gives_away(k):
    """Each of k steps costs epsilon and a share of delta; here both are the worst there is."""
    whole = for_group(events.EpsilonDeltaDpEvent(0.3, 1e-4), k)
    steps = 0.0
    for _ in range(k):  # P(x) <= e^eps (e^((j - 1) eps) ...) + delta, step by step
        steps = steps * math.exp(0.3) + 1e-4
    assert whole.epsilon == pytest.approx(0.3 * k)
    assert steps <= whole.delta <= steps * (1 + 1e-9)
    assert for_group(events.ExponentialMechanismDpEvent(0.3), k).epsilon >= 0.3 * k
    assert for_group(events.EpsilonDeltaDpEvent(3.0, 0.2), k + 2).delta == 1.0


def test_all_queries_of_a_plan_are_priced_for_its_largest_person():
    asked = {"kind": "gradient", "sampler": "full", "max_norm": 1.0, "noise_multiplier": 40.0}
    mixed = Query(name="a", count=1, **asked), Query(name="b", count=1, group_size=3, **asked)
    plan = Plan(optimizer="noisy_gd", n=9, queries=mixed, epsilon=9.0, delta=1e-6)
    both = epsilon(events.GaussianDpEvent(40.0 / 3 / math.sqrt(2)), delta=1e-6)
    assert plan.price() == pytest.approx(both, rel=1e-9)


EMPTY = {"n": 400, "neighboring_relation": "add-or-remove-one", "entries": []}
OPTIONS = {"n": 400, "batch_size": 40, "steps": 30, "epsilon": 1.0, "delta": 1e-6}
X = np.random.default_rng(0).standard_normal((400, 2))
OBJECTIVE = optim.Logistic(X, X[:, 0] > 0, classes=[False, True])


@pytest.mark.slow
def test_runs_about_rows_are_priced_for_the_persons_of_other_runs(tmp_path):
    book = optim.BudgetBook(tmp_path / "b", epsilon=4.0, delta=1e-6)
    persons, rows = calibrate.dpsgd(**OPTIONS, group_size=4), calibrate.dpsgd(**OPTIONS)
    (query,) = rows.queries
    priced = rows_of_one_person(
        noise_multiplier=query.noise_multiplier,
        group_size=4,
        sampling_probability=query.sampling_probability,
    )
    alone = epsilon(events.SelfComposedDpEvent(priced, query.count), delta=1e-6)
    assert alone > 3.9
    optim.dpsgd(OBJECTIVE, rows, store=book)
    assert (book.group_size, book.spent() <= 1.0) == (1, True)
    with pytest.raises(BudgetExceeded, match="what is spent on these records to epsilon = 4"):
        optim.dpsgd(OBJECTIVE, persons, store=book)
    book.change_total(epsilon=9.0)
    optim.dpsgd(OBJECTIVE, persons, store=book)
    assert book.to_dict()["unit"].startswith("one person, who has at most 4")
    assert book.spent() > alone
    with dpcal.budget(epsilon=9.0, delta=1e-6) as shared:
        optim.dpsgd(OBJECTIVE, rows)
        assert shared.spent <= 1.0
        optim.dpsgd(OBJECTIVE, persons)
    assert shared.spent == pytest.approx(book.spent().upper, rel=1e-6)
    assert "by a person of 4 records" in repr(shared)
    told = [
        {"runs": [{"plan": json.loads(plan.to_json()), "ledger": EMPTY, "delta": 1e-6}]}
        for plan in (persons, rows)
    ]
    found = composed_reports(told)["epsilon"]["upper"]
    assert found == pytest.approx(book.spent().upper, rel=1e-6)
    fixed = events.SampledWithoutReplacementDpEvent(400, 40, events.GaussianDpEvent(4.0))
    with pytest.raises(UnsupportedEvent, match="prices SampledWithout"):
        shared.pay(fixed, "add-or-remove-one")


def test_the_unit_of_a_filter_does_not_grow(tmp_path):
    book = optim.BudgetBook(tmp_path / "b", epsilon=9.0, delta=1e-6, composition="renyi")
    book.check(calibrate.dpsgd(**OPTIONS, group_size=4))
    optim.dpsgd(OBJECTIVE, calibrate.dpsgd(**OPTIONS), store=book)
    with pytest.raises(UnsupportedEvent, match=r"one training record .* this run is about one p"):
        book.check(calibrate.dpsgd(**OPTIONS, group_size=4))


@pytest.mark.parametrize("k", [2, 9])
@pytest.mark.parametrize("sigma", [0.5, 20.0])
def test_labels_of_a_person_are_priced_with_all_her_rows(k, sigma):
    """Her own label shows with the probability that k records pass: no epsilon makes it less."""
    threshold = 1 + 5 * sigma
    asked = {"sampler": "full", "max_norm": 1.0, "count": 1}
    noise = {"noise_multiplier": sigma, "threshold": threshold}
    labels = Query(name="labels", kind="labels", **noise, **asked)
    total = Query(name="count", kind="total", noise_multiplier=50.0 * k, group_size=k, **asked)
    plan = Plan(optimizer="release", n=100, queries=(labels, total), epsilon=9.0, delta=1e-6)
    shows = 0.5 * math.erfc((threshold - k) / (sigma * math.sqrt(2)))
    # At an epsilon that the noise does not reach, what is left is that a label of hers shows.
    far = 60.0 * (k / sigma) + 60.0 * (k / sigma) ** 2 + 5.0
    assert float(plan.price(epsilon=far).upper) >= min(1.0, shows) * (1 - 1e-9)


def test_what_no_theorem_prices_for_a_group_is_refused_by_name():
    gaussian = events.GaussianDpEvent(0.5)
    fixed = events.SampledWithoutReplacementDpEvent(100, 10, gaussian)
    failing = events.ComposedDpEvent([gaussian, events.EpsilonDeltaDpEvent(0.0, 1e-8)])
    for event, words in ((events.SelfComposedDpEvent(fixed, 9), "SampledWithout"), (failing, "")):
        assert for_group(event, 1) == event
        with pytest.raises(UnsupportedEvent, match=rf"prices {words}.* person with 4 records"):
            for_group(event, 4)
