"""Runs whose batches hang together by epochs: random allocation and shuffles."""

import dataclasses
import json
import math
from itertools import chain, islice, product

import _built_plans
import numpy as np
import pytest
from _built_plans import query
from scipy.special import logsumexp
from scipy.stats import chi2

from dpcal import accountants, calibrate, optim
from dpcal.accountants import events, samplers
from dpcal.adapters.stepwise import StepwiseOracle
from dpcal.errors import BudgetExceeded, UnsupportedEvent
from dpcal.optim.attacks import promises, recording
from dpcal.optim.attacks.evidence import Evidence
from dpcal.optim.boundary.batches import Batches
from dpcal.optim.boundary.seeds import Streams
from dpcal.report import composed_epsilon, document_of, verify

N, EPOCH, PASSES, DELTA = 60, 7, 3, 1e-5
# 7 batches of 9 records, but for the last one: a shuffle hides a record among 6 of them.
SAMPLERS = {
    "random-allocation": ({"participations": 1}, "add-or-remove-one"),
    "shuffled-epochs": ({}, "replace-special"),
}
# Chance that a test of a law rejects a correct one; seeds are fixed.
ALARM = 1e-4


def query_of(sampler, *, sigma=0.45, count=PASSES * EPOCH, epoch=EPOCH, **fields):
    given = {**SAMPLERS[sampler][0], **fields}
    return query(sampler=sampler, noise_multiplier=sigma, count=count, epoch=epoch, **given)


def plan_of(sampler, n=N, **fields):
    one, relation = query_of(sampler, **fields), SAMPLERS[sampler][1]
    given = {"optimizer": "dpsgd", "epsilon": 5_000.0, "neighboring_relation": relation}
    return _built_plans.plan_of(one, n=n, **given)


def records(n=N):
    X = np.random.default_rng(0).standard_normal((n, 2))
    return optim.Logistic(X, X[:, 0] > 0, classes=[False, True])


# -- the law of batches


def batches_of(sampler, n, seed, epochs=1):
    found = sampler.batches(n, epochs * sampler.epoch, np.random.default_rng(seed))
    return [rows.tolist() for rows in islice(found, epochs * sampler.epoch)]


@pytest.mark.parametrize(
    ("sampler", "n", "cells"),
    [
        (samplers.RandomAllocation(1, epoch=3), 4, 3**4),
        (samplers.ShuffledEpochs(3), 6, math.factorial(6) // 2**3),
        (samplers.ShuffledEpochs(3), 5, math.factorial(5) // 2**2),
    ],
    ids=str,
)
def test_every_arrangement_of_an_epoch_is_equally_likely(sampler, n, cells):
    epochs = 60 * cells
    made = batches_of(sampler, n, seed=1, epochs=epochs)
    found = {}
    for first in range(0, len(made), sampler.epoch):
        epoch = [sorted(rows) for rows in made[first : first + sampler.epoch]]
        assert sorted(chain.from_iterable(epoch)) == list(range(n))
        found[str(epoch)] = found.get(str(epoch), 0) + 1
    counts = np.array(list(found.values()))
    assert len(counts) == cells
    assert chi2.sf(((counts - 60) ** 2 / 60).sum(), cells - 1) > ALARM


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_draws_of_two_epochs_are_independent(name):
    sampler = query_of(name).sampling
    n = 20_000
    made = batches_of(sampler, n, seed=2, epochs=2)
    place = np.empty((2, n), dtype=int)
    for number, rows in enumerate(made):
        place[number // EPOCH, rows] = number % EPOCH
    counts = np.histogram2d(*place, bins=EPOCH)[0]
    expected = n / EPOCH**2
    # Sizes of a shuffle are fixed, which leaves fewer degrees of freedom than of single draws.
    degrees = EPOCH**2 - 1 if name == "random-allocation" else (EPOCH - 1) ** 2
    assert chi2.sf(((counts - expected) ** 2 / expected).sum(), degrees) > ALARM


@pytest.mark.parametrize(("n", "epoch"), [(60, 7), (10, 6), (3, 5), (8, 8), (5, 1)])
def test_a_shuffle_hides_a_record_among_the_full_batches(n, epoch):
    sampler = samplers.ShuffledEpochs(epoch)
    sizes = [len(rows) for rows in batches_of(sampler, n, seed=3)]
    event, times = sampler.answers(2.0, n, epoch + 1)
    assert (event.batches, event.epochs, times) == (sizes.count(max(sizes)), 2, 1)
    assert sum(sizes) == n
    assert sampler.expected_batch_size(n, 2 * epoch) == np.mean(sizes)


# -- the price


def test_a_plan_costs_what_its_epochs_do():
    # The reference value is from contours in 400-bit arithmetic on two rays.
    plan = plan_of("random-allocation", n=60_000, sigma=0.8, epoch=117, count=1170)
    assert plan.price() == pytest.approx(2.6647247892, rel=1e-9)
    one = query_of("random-allocation", sigma=1.0, epoch=1, count=4)
    alone = dataclasses.replace(plan, queries=(one,))
    gaussian = accountants.epsilon(events.GaussianDpEvent(0.5), delta=1e-5)
    assert alone.price() == pytest.approx(gaussian, rel=1e-10)


@pytest.mark.parametrize("name", SAMPLERS)
def test_an_epoch_is_paid_from_its_first_answer_on(name):
    query = query_of(name)
    whole = [query.answers(N, EPOCH * passes) for passes in (1, 2, 3)]
    for count in range(1, 3 * EPOCH + 1):
        assert query.answers(N, count) == whole[(count - 1) // EPOCH]
    ledger = optim.Ledger(N, SAMPLERS[name][1])
    for each in range(EPOCH + 1):
        ledger.record(query)
        assert ledger.event == plan_of(name, count=1 + each).event


def test_the_answers_of_a_broken_off_epoch_cost_no_more_than_the_whole_one():
    """The first of two answers alone is a Poisson sample at rate one half."""
    first = events.PoissonSampledDpEvent(0.5, events.GaussianDpEvent(1.0))
    whole, _ = query_of("random-allocation", sigma=1.0, epoch=2).answers(N, 1)
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        delta = accountants.delta(first, epsilon=epsilon)
        assert delta.upper < accountants.delta(whole, epsilon=epsilon).lower


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_plan_against_a_replaced_record_pays_the_upper_end_of_its_bracket(name):
    asked = {"n": 100, "batch_size": 50, "epochs": 2, "epsilon": 3.0, "delta": DELTA}
    plan = calibrate.dpsgd(**asked, neighboring_relation="replace-one", sampler=name)
    price = plan.price()
    assert 3.0 * (1 - 1e-6) < price.upper <= 3.0
    assert price.lower < (0.9 if name == "shuffled-epochs" else 1.0) * price.upper
    noise = plan.query("gradient").noise_multiplier
    if name == "random-allocation":
        blanked = calibrate.dpsgd(**asked, sampler=name)
        assert noise > blanked.query("gradient").noise_multiplier
        return
    assert price.method.startswith("bracket")
    # The upper end of a replaced record is that of batches that are known.
    known = events.GaussianDpEvent(noise / math.sqrt(8))
    assert price.upper == pytest.approx(accountants.epsilon(known, delta=DELTA), rel=1e-9)


# -- runs


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_ledger_is_first_and_each_record_is_in_one_batch_of_an_epoch(name, monkeypatch):
    oracle, seen = optim.PrivateOracle(records(), plan_of(name)), {"allotting": [], "sample": []}
    for owner, method in ((Streams, "allotting"), (Batches, "sample")):
        before = getattr(owner, method)

        def noted(self, *about, before=before, seen=seen[method]):
            seen.append((oracle.ledger.answers, before(self, *about)))
            return seen[-1][1]

        monkeypatch.setattr(owner, method, noted)
    for _ in range(PASSES * EPOCH):
        oracle.gradient(np.zeros(3), "gradient")
    assert [answers for answers, _ in seen["allotting"]] == [1]
    assert [answers for answers, _ in seen["sample"]] == list(range(1, PASSES * EPOCH + 1))
    for first in range(0, PASSES * EPOCH, EPOCH):
        epoch = [rows.tolist() for _, rows in seen["sample"][first : first + EPOCH]]
        assert sorted(chain.from_iterable(epoch)) == list(range(N))
    with pytest.raises(BudgetExceeded):
        oracle.gradient(np.zeros(3), "gradient")


def test_a_batch_without_records_has_noise_and_the_public_divisor():
    plan = plan_of("random-allocation", n=1, sigma=2.0, epoch=1_000, count=1_000)
    oracle = optim.PrivateOracle(records(1), plan, seed=0)
    answers = np.array([oracle.gradient(np.zeros(3), "gradient") for _ in range(1_000)])
    # Three numbers with noise 2 over the mean size 1 / 1000 each; one batch has a record in it.
    square = float((answers**2).sum()) / 2_000.0**2
    assert chi2.sf(square, 3_000) > ALARM
    assert chi2.cdf(square, 3_000) > ALARM


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_loop_that_goes_on_from_a_state_keeps_the_draws_of_its_epoch(name):
    oracle = StepwiseOracle(plan_of(name), dimension=2)
    epoch = [_answered(oracle) for _ in range(3)]
    again = StepwiseOracle.continued(json.loads(json.dumps(oracle.state())))
    assert again._streams.root["secret"] != oracle._streams.root["secret"]
    epoch += [_answered(again) for _ in range(EPOCH - 3)]
    assert sorted(chain.from_iterable(epoch)) == list(range(N))
    ledger = again.ledger
    fresh = StepwiseOracle(
        plan_of(name), dimension=2, ledger=optim.Ledger.from_json(ledger.to_json())
    )
    assert sorted(chain.from_iterable(_answered(fresh) for _ in range(EPOCH))) == list(range(N))
    _answered(again)
    with pytest.raises(ValueError, match="ledger must end with an epoch of 7 answers"):
        StepwiseOracle(plan_of(name), dimension=2, ledger=ledger)


def _answered(oracle):
    rows = oracle.draw().tolist()
    oracle.answer()
    return rows


def test_reports_are_priced_again_and_two_shuffles_have_no_price():
    runs = {name: optim.dpsgd(records(), plan_of(name), seed=2) for name in SAMPLERS}
    documents = {name: json.loads(json.dumps(document_of(run))) for name, run in runs.items()}
    for name, said in (("random-allocation", "draws 1 of every"), ("shuffled-epochs", "fresh")):
        assert f"{said} " in documents[name]["privacy"]["mechanism"]
        assert all(row["holds"] for row in verify(documents[name]))
        # A ledger of longer epochs, which are cheaper, is not that of the plan.
        documents[name]["runs"][0]["ledger"]["entries"][0]["epoch"] = 2 * EPOCH
        assert not all(row["holds"] for row in verify(documents[name]))
    both = composed_epsilon([runs["random-allocation"]] * 2, DELTA)["epsilon"]
    twice = plan_of("random-allocation", count=2 * PASSES * EPOCH)
    assert both["upper"] == pytest.approx(twice.price().upper, rel=1e-9)
    with pytest.raises(UnsupportedEvent, match="ShuffledEpochsDpEvent"):
        composed_epsilon([runs["shuffled-epochs"]] * 2, DELTA)


def test_a_public_number_of_records_goes_with_batches_that_each_record_draws():
    plan = dataclasses.replace(plan_of("random-allocation"), public_n=True)
    result = optim.dpsgd(records(N - 1), plan, seed=3)
    assert result.complete
    assert result.plan.query("gradient").expected_batch_size(plan.n) == N / EPOCH
    with pytest.raises(ValueError, match="public_n"):
        dataclasses.replace(plan_of("shuffled-epochs"), public_n=True)


# -- attacks


@pytest.mark.parametrize(
    ("claimed", "drawn", "why"),
    [
        ("random-allocation", samplers.BallsInBins(EPOCH), "come back 7 answers later 2520 times"),
        ("random-allocation", samplers.ShuffledEpochs(EPOCH), "sizes of batches vary by 0.0"),
        ("random-allocation", samplers.Poisson(1 / EPOCH), "which its sampler rules out"),
        ("shuffled-epochs", samplers.RandomAllocation(1, epoch=EPOCH), "records, planned 40"),
    ],
)
def test_a_run_with_other_batches_is_found_out(claimed, drawn, why, monkeypatch):
    plan = plan_of(claimed, n=280, count=10 * EPOCH)
    law = type(plan.query("gradient").sampling)
    other = drawn.batches
    monkeypatch.setattr(law, "batches", lambda sampler, n, rounds, bits: other(n, rounds, bits))
    tape = recording.record(lambda objective: optim.dpsgd(objective, plan), records(280))
    (found,) = promises.broken_promises(tape, price=False)
    assert (found.violation, why in found.detail) == ("sampler", True), found


def test_ratios_of_allocated_records_are_means_over_all_their_draws():
    sigma, passes = 1.5, 2
    query = query_of("random-allocation", sigma=sigma, epoch=3, count=6)
    answers = np.random.default_rng(3).standard_normal((6, 40)) * sigma
    for taken in (2, 3, 5, 6):
        evidence = Evidence(query, n=40)
        for x in answers[:taken]:
            evidence.add(x, np.arange(40))
        exponents = []
        for draws in product(range(3), repeat=passes):
            joined = [place for place in (draws[0], 3 + draws[1]) if place < taken]
            exponents.append(((answers[joined] - 0.5) / sigma**2).sum(axis=0))
        expected = logsumexp(exponents, axis=0) - math.log(len(exponents))
        assert evidence.log_ratios() == pytest.approx(expected, abs=1e-12)
    with pytest.raises(UnsupportedEvent, match="shuffled epochs"):
        Evidence(query_of("shuffled-epochs"), n=40)


# -- what is refused
