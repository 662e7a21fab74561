"""Samplers of queries: fields, expected batch sizes, events and words."""

import re
from dataclasses import dataclass, make_dataclass
from itertools import islice
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import binom

from dpcal import calibrate, optim
from dpcal.accountants import events, samplers
from dpcal.accountants.matrix import LambdaCGD
from dpcal.calibrate import Correlation, Query
from dpcal.calibrate.batching import CORRELATED, PLANNED
from dpcal.calibrate.samplers import SAMPLERS, sampler_of
from dpcal.errors import UnsupportedEvent

FIELDS = {
    "poisson": {"sampling_probability": 0.2},
    "fixed-size": {"batch_size": 20},
    "truncated-poisson": {"sampling_probability": 0.2, "batch_size": 25},
    "full": {},
    "cyclic-poisson": {"separation": 3, "sampling_probability": 0.6},
    "min-separation": {"separation": 3, "sampling_probability": 0.25},
    "balls-in-bins": {"separation": 4},
    "random-allocation": {"participations": 1, "epoch": 4},
    "shuffled-epochs": {"epoch": 4},
}
WRONG = {"sampling_probability": 1.5, "participations": 2.5}
WRONG |= {"batch_size": 0, "separation": 0, "epoch": 0}
BY_EPOCH = {*PLANNED} - {"poisson"}
ALONE = SAMPLERS.keys() - {*CORRELATED}
ROUNDS, N = 12, 120


def query(name, fields, **more):
    asked = {"kind": "gradient", "max_norm": 1.0, "noise_multiplier": 2.0, "count": ROUNDS}
    return Query(name="gradient", sampler=name, **asked, **fields, **more)


@pytest.mark.parametrize("name", sorted(SAMPLERS.keys() - ALONE))
def test_the_expected_batch_is_what_the_law_of_one_record_gives(name):
    correlation = Correlation(strategy=LambdaCGD(ROUNDS, 0.5))
    asked = query(name, FIELDS[name], correlation=correlation)
    rates = asked.sampling.law.automaton(ROUNDS).rates
    assert asked.expected_batch_size(N) == pytest.approx(N * np.mean(rates), rel=1e-12)


def test_events_of_one_answer_and_a_batch_of_fixed_size_without_a_law():
    assert query("fixed-size", FIELDS["fixed-size"]).expected_batch_size(N) == 20
    with pytest.raises(UnsupportedEvent, match="fixed size"):
        _ = sampler_of("fixed-size", batch_size=20).law
    gaussian = events.GaussianDpEvent(2.0)
    for name, event in {
        "full": gaussian,
        "poisson": events.PoissonSampledDpEvent(0.2, gaussian),
        "fixed-size": events.SampledWithoutReplacementDpEvent(N, 20, gaussian),
        "truncated-poisson": events.TruncatedSubsampledGaussianDpEvent(N, 0.2, 25, 2.0),
    }.items():
        assert query(name, FIELDS[name]).event(N) == event


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
def test_fields_are_those_of_the_sampler_and_within_range(name):
    for field, wrong in WRONG.items():
        with pytest.raises(ValueError, match=field):
            sampler_of(name, **{**FIELDS[name], field: wrong})
    for field in FIELDS[name]:
        without = {**FIELDS[name], field: None}
        if (name, field) == ("random-allocation", "epoch"):
            assert sampler_of(name, **without) == samplers.RandomAllocation(1)
        else:
            with pytest.raises(ValueError, match=f"{field} goes with"):
                sampler_of(name, **without)
    # What is printed of it names the values of all fields.
    said = sampler_of(name, **FIELDS[name])
    for value in FIELDS[name].values():
        assert repr(value) in re.findall(r"\d[\d.]*\d|\d", said.sentence)
    assert "{" not in said.sentence


def test_a_truncated_sample_is_a_random_subset_of_a_poisson_sample():
    """The sizes are those of a binomial law, cut; any record is in it as often."""
    sampler, counts = samplers.TruncatedPoisson(25, 0.2), np.zeros(N)
    rows = list(islice(sampler.batches(N, 4000, np.random.default_rng(0)), 4000))
    sizes = np.array([len(each) for each in rows])
    for each in rows:
        counts[each] += 1
    assert all((np.diff(each) > 0).all() for each in rows)
    assert sizes.max() == 25
    assert abs((sizes == 25).mean() - binom.sf(24, N, 0.2)) < 0.04
    assert abs((sizes == 20).mean() - binom.pmf(20, N, 0.2)) < 0.03
    assert abs(counts / counts.mean() - 1).max() < 0.15
    plans = [
        calibrate.dpsgd(n=N, batch_size=20, steps=9, noise_multiplier=2.0, delta=1e-5, sampler=each)
        for each in ("poisson", "truncated-poisson")
    ]
    assert plans[1].queries[0].batch_size == 47
    assert plans[0].epsilon <= plans[1].epsilon < 1.0001 * plans[0].epsilon
    with pytest.raises(UnsupportedEvent, match="priced for Gaussian noise"):
        sampler.event(events.LaplaceDpEvent(1.0), N)
    with pytest.raises(UnsupportedEvent, match="under correlated noise"):
        _ = sampler.law


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


# -- samplers of other packages


@dataclass(frozen=True)
class Halved(samplers.Sampler):
    """A Poisson sample, half of which arrives."""

    name: ClassVar[str] = "halved"
    words: ClassVar[str] = "half of a Poisson sample at rate {sampling_probability!r}"
    fresh: ClassVar[bool] = True
    independent_noise: ClassVar[bool] = True
    sampling_probability: float

    def event(self, mechanism, n):
        return events.PoissonSampledDpEvent(self.sampling_probability / 2, mechanism)

    def expected_batch_size(self, n, rounds):
        return self.sampling_probability * n / 2

    def draw(self, n, generator):
        return (generator.random(n) < self.sampling_probability / 2).nonzero()[0]


@pytest.fixture
def entered(monkeypatch):
    monkeypatch.setattr(calibrate.samplers, "_ENTERED", {})
    return calibrate.register_sampler(Halved)


def test_a_registered_sampler_is_priced_by_its_event_and_run(entered):
    target = {"n": 500, "steps": 20, "epsilon": 1.0, "delta": 1e-6}
    plan = calibrate.dpsgd(batch_size=100, sampler="halved", **target)
    same = calibrate.dpsgd(batch_size=50, **target)
    noises = [each.query("gradient").noise_multiplier for each in (plan, same)]
    assert noises[0] == pytest.approx(noises[1], rel=1e-9)
    assert calibrate.Plan.from_json(plan.to_json()) == plan
    X = np.random.default_rng(0).normal(size=(500, 2))
    result = optim.dpsgd(optim.Logistic(X, X[:, 0] > 0, classes=[0, 1]), plan)
    result.verify()
    assert result.epsilon(1e-6) == pytest.approx(same.price(), rel=1e-9)
    with pytest.raises(UnsupportedEvent, match="no law of one record's participations"):
        plan.query("gradient").sampling.automaton(3)


def test_its_fields_are_checked_and_its_name_is_unknown_elsewhere(entered, monkeypatch):
    with pytest.raises(ValueError, match=r"sampling_probability goes with .* or 'halved'"):
        sampler_of("halved")
    with pytest.raises(ValueError, match="epoch goes with"):
        sampler_of("halved", sampling_probability=0.1, epoch=3)
    target = {"n": 500, "steps": 2, "epsilon": 1.0, "delta": 1e-6}
    document = calibrate.dpsgd(batch_size=100, sampler="halved", **target).to_json()
    monkeypatch.setattr(calibrate.samplers, "_ENTERED", {})
    with pytest.raises(ValueError, match=r"sampler must be one of .*, got 'halved'"):
        calibrate.Plan.from_json(document)


def test_a_sampler_that_lacks_something_is_refused():
    fields = [("rate", float)]
    for sampler, sentence in (
        (type("Other", (Halved,), {"name": "poisson"}), "name must be new, got 'poisson'"),
        (type("Other", (Halved,), {"independent_noise": False}), "independent_noise = True"),
        (Halved(0.5), "must be a class that inherits from Sampler"),
        (make_dataclass("Other", fields, bases=(Halved,), frozen=True), "fields must be among"),
    ):
        with pytest.raises(ValueError, match=sentence):
            calibrate.register_sampler(sampler)
