"""Samplers of queries: fields, expected batch sizes, events and words."""

import numpy as np
import pytest

from dpcal.accountants import events, samplers
from dpcal.accountants.matrix import LambdaCGD
from dpcal.calibrate import Correlation, Query
from dpcal.calibrate.samplers import SAMPLERS, sampler_of
from dpcal.errors import UnsupportedEvent

FIELDS = {
    "poisson": {"sampling_probability": 0.2},
    "fixed-size": {"batch_size": 20},
    "full": {},
    "cyclic-poisson": {"separation": 3, "sampling_probability": 0.6},
    "min-separation": {"separation": 3, "sampling_probability": 0.25},
    "balls-in-bins": {"separation": 4},
    "random-allocation": {"participations": 1, "epoch": 4},
    "shuffled-epochs": {"epoch": 4},
}
WRONG = {
    "sampling_probability": 1.5,
    "batch_size": 0,
    "separation": 0,
    "participations": 2.5,
    "epoch": 0,
}
# The samplers that no correlated noise goes with.
BY_EPOCH = {"random-allocation", "shuffled-epochs"}
ALONE = {"fixed-size", "shuffled-epochs"}
ROUNDS, N = 12, 120


def query(name, fields, **more):
    return Query(
        name="gradient",
        kind="gradient",
        sampler=name,
        max_norm=1.0,
        noise_multiplier=2.0,
        count=ROUNDS,
        **fields,
        **more,
    )


def test_every_sampler_has_a_case():
    assert set(FIELDS) == set(SAMPLERS)


@pytest.mark.parametrize("name", sorted(set(FIELDS) - ALONE))
def test_the_expected_batch_is_what_the_law_of_one_record_gives(name):
    correlation = Correlation(strategy=LambdaCGD(ROUNDS, 0.5))
    asked = query(name, FIELDS[name], correlation=correlation)
    rates = asked.sampling.law.automaton(ROUNDS).rates
    assert asked.expected_batch_size(N) == pytest.approx(N * np.mean(rates), rel=1e-12)


def test_a_batch_of_fixed_size_has_its_size_and_no_law_under_correlated_noise():
    assert query("fixed-size", FIELDS["fixed-size"]).expected_batch_size(N) == 20
    with pytest.raises(UnsupportedEvent, match="fixed size"):
        _ = sampler_of("fixed-size", batch_size=20).law


def test_events_of_one_answer():
    gaussian = events.GaussianDpEvent(2.0)
    assert query("full", {}).event(N) == gaussian
    assert query("poisson", FIELDS["poisson"]).event(N) == events.PoissonSampledDpEvent(
        0.2, gaussian
    )
    assert query("fixed-size", FIELDS["fixed-size"]).event(
        N
    ) == events.SampledWithoutReplacementDpEvent(N, 20, gaussian)


@pytest.mark.parametrize("name", FIELDS)
def test_independent_noise_goes_with_batches_that_have_a_price(name):
    if SAMPLERS[name].independent_noise:
        event, times = query(name, FIELDS[name]).answers(N, ROUNDS)
        assert times in (1, ROUNDS // 4, ROUNDS)
        assert event.noise_multiplier == 2.0 if name in BY_EPOCH else event
        return
    with pytest.raises(ValueError, match="is for correlated noise"):
        query(name, FIELDS[name])
    with pytest.raises(UnsupportedEvent, match="no price of its own"):
        sampler_of(name, **FIELDS[name]).event(events.GaussianDpEvent(2.0), N)


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("field", WRONG)
def test_fields_are_those_of_the_sampler_and_within_range(name, field):
    fields = {**FIELDS[name], field: WRONG[field]}
    with pytest.raises(ValueError, match=field):
        sampler_of(name, **fields)
    if field in FIELDS[name]:
        without = {**FIELDS[name], field: None}
        if (name, field) == ("random-allocation", "epoch"):
            assert sampler_of(name, **without) == samplers.RandomAllocation(1)
            return
        with pytest.raises(ValueError, match=f"{field} goes with"):
            sampler_of(name, **without)


@pytest.mark.parametrize("name", FIELDS)
def test_words_name_the_values_of_the_fields(name):
    sampler = sampler_of(name, **FIELDS[name])
    for field, value in FIELDS[name].items():
        named = value - 1 if (name, field) == ("min-separation", "separation") else value
        assert repr(named) in sampler.sentence
    assert "{" not in sampler.sentence + sampler.summary


DRAWN = [
    samplers.Full(),
    samplers.Poisson(0.2),
    samplers.CyclicPoisson(3, 0.6, random_shift=True),
    samplers.MinSeparation(3, 0.25),
    samplers.MinSeparation(3, 0.25, warm_start=True),
    samplers.BallsInBins(4),
    samplers.RandomAllocation(3),
    samplers.RandomAllocation(2, epoch=4),
    samplers.RandomAllocation(1, epoch=4),
]


@pytest.mark.parametrize("sampler", DRAWN, ids=repr)
def test_batches_are_drawn_by_the_law_that_is_priced(sampler):
    records = 20_000
    y = np.zeros((ROUNDS, records))
    batches = sampler.batches(records, ROUNDS, np.random.default_rng(0))
    for row, rows in zip(y, batches, strict=False):
        assert len(set(rows)) == len(rows)
        row[rows] = 1.0
    law = sampler.law.automaton(ROUNDS)
    # Of means over 20,000 independent records: 5 standard errors, over at most 25 numbers.
    assert np.abs(y.mean(axis=1) - law.rates).max() < 5 * 0.5 / np.sqrt(records)
    counts = np.bincount(y.sum(axis=0).astype(int), minlength=ROUNDS + 1) / records
    assert np.abs(counts - np.exp(law.counts())).max() < 5 * 0.5 / np.sqrt(records)
    apart = sampler.least_separation
    assert all((y[t : t + apart].sum(axis=0) <= 1).all() for t in range(ROUNDS) if apart > 1)


def test_a_batch_of_fixed_size_has_distinct_records():
    batches = samplers.FixedSize(20).batches(N, ROUNDS, np.random.default_rng(0))
    for _ in range(ROUNDS):
        rows = next(batches)
        assert len(rows) == len(set(rows)) == 20
        assert rows.max() < N
