"""Samplers of loaders: laws, resumption, prices; and what a loader's sampler costs."""

import json
from itertools import chain, combinations, islice
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import chi2

from dpcal import accountants
from dpcal.accountants import events
from dpcal.adapters.loaders import AllocationSampler, FixedSizeSampler, PoissonSampler, check

MADE = {
    "allocation": lambda **options: AllocationSampler(12, 5, **options),
    "poisson": lambda **options: PoissonSampler(12, 0.21, **options),
    "fixed-size": lambda **options: FixedSizeSampler(12, 5, **options),
}
each_sampler = pytest.mark.parametrize("make", MADE.values(), ids=MADE)


def agree(counts, expected):
    """Whether counts are those of a law, at a false-alarm rate of 1e-4."""
    counts, expected = np.ravel(counts), np.ravel(expected)
    distance = ((counts - expected) ** 2 / expected).sum()
    return chi2.sf(distance, len(counts) - 1) > 1e-4


def test_a_record_is_in_one_batch_of_each_epoch_drawn_afresh_and_alone():
    """Of 20,000 records all 16 pairs of batches of two epochs, and of two neighbors' batches."""
    n, batches = 20_000, 4
    sampler, drawn = AllocationSampler(n, batches, seed=1), []
    for _ in range(2):
        epoch = list(sampler)
        assert len(epoch) == len(sampler) == batches
        assert sorted(chain(*epoch)) == list(range(n))
        place = np.empty(n, dtype=int)
        for number, rows in enumerate(epoch):
            place[rows] = number
        drawn.append(place)
    even = np.full((batches, batches), n / batches**2)
    assert agree(np.histogram2d(*drawn, bins=batches)[0], even)
    assert agree(np.histogram2d(drawn[0][::2], drawn[0][1::2], bins=batches)[0], even / 2)


def test_poisson_batches_are_independent_coins():
    """Of 3 records in the two batches of 5,000 epochs, 64 patterns of 6 coins."""
    q, n, epochs = 0.4, 3, 5_000
    sampler, patterns = PoissonSampler(n, q, seed=2), np.zeros(64)
    for _ in range(epochs):
        one, two = sampler
        patterns[sum(1 << row for row in [*one, *(n + row for row in two)])] += 1
    members = np.array([pattern.bit_count() for pattern in range(64)])
    assert agree(patterns, epochs * q**members * (1 - q) ** (6 - members))


def test_batches_of_a_fixed_size_are_even_sets_and_independent():
    """The 36 pairs of sets of 2 of 4 records, in the two batches of 4,000 epochs."""
    sampler, epochs = FixedSizeSampler(4, 2, seed=3), 4_000
    places = {rows: place for place, rows in enumerate(combinations(range(4), 2))}
    counts = np.zeros((6, 6))
    for _ in range(epochs):
        one, two = (places[tuple(sorted(rows))] for rows in sampler)
        counts[one, two] += 1
    assert agree(counts, np.full((6, 6), epochs / 36))


@each_sampler
def test_a_run_goes_on_from_any_batch_with_the_same_batches(make):
    whole = make()
    start = json.loads(json.dumps(whole.state_dict()))
    batches = [batch for _ in range(3) for batch in whole]
    for cut in range(2 * len(whole) + 1):
        first = make()
        first.load_state_dict(start)
        told = chain.from_iterable(first for _ in range(3))
        assert list(islice(told, cut)) == batches[:cut]
        again = make(seed=9)
        again.load_state_dict(json.loads(json.dumps(first.state_dict())))
        rest = list(islice(chain.from_iterable(again for _ in range(3)), len(batches) - cut))
        assert rest == batches[cut:]


@each_sampler
def test_batches_taken_in_advance_are_given_again_by_a_loop_that_counts(make):
    sampler = make()
    ahead = list(sampler)
    again = make()
    again.load_state_dict(sampler.state_dict(batches=2))
    assert list(again) == ahead[2:]
    with pytest.raises(ValueError, match=f"from 0 to the {len(ahead)} batches"):
        sampler.state_dict(batches=len(ahead) + 1)


def test_an_epoch_that_is_broken_off_is_over_and_an_old_iterator_moves_no_state():
    sampler = AllocationSampler(1000, 5, seed=4)
    old = iter(sampler)
    first = next(old)
    second = next(iter(sampler))
    assert first != second
    state = sampler.state_dict()
    assert (state["epoch"], state["batches"]) == (2, 1)
    next(old)
    assert sampler.state_dict() == state


@each_sampler
def test_a_seed_repeats_batches_and_none_does_not(make):
    seeded = [list(make(seed=seed)) for seed in (5, 5, 6, None, None)]
    assert seeded[0] == seeded[1]
    assert len({str(batches) for batches in seeded}) == 4


def test_prices_are_those_of_the_laws():
    allocated = events.SelfComposedDpEvent(events.RandomAllocationDpEvent(0.8, 117), 100)
    assert AllocationSampler(60_000, 117).event(0.8, 100) == allocated
    poisson = PoissonSampler(60_000, 512 / 60_000)
    assert (len(poisson), poisson.expected_batch_size) == (117, 512.0)
    assert poisson.event(0.8, 100) == events.dpsgd(
        sampling_probability=512 / 60_000, noise_multiplier=0.8, steps=11_700
    )
    fixed = FixedSizeSampler(1000, 30)
    assert fixed.event(2.0, 3) == events.SelfComposedDpEvent(
        events.SampledWithoutReplacementDpEvent(1000, 30, events.GaussianDpEvent(2.0)), 102
    )
    assert AllocationSampler(10, 4).expected_batch_size == 2.5


def test_a_state_is_of_one_sampler_before_a_batch():
    sampler = AllocationSampler(10, 5)
    with pytest.raises(ValueError, match="batches must be a whole number"):
        sampler.state_dict(1.0)
    with pytest.raises(ValueError, match="state must be of a sampler with"):
        sampler.load_state_dict(AllocationSampler(10, 4).state_dict())
    state = sampler.state_dict()
    next(iter(sampler))
    with pytest.raises(ValueError, match="before the first batch"):
        sampler.load_state_dict(state)


def of_torch(name, **attributes):
    """Return an object of a class that is named as one of torch's samplers."""
    home = {"__module__": "torch.utils.data.sampler"}
    return SimpleNamespace(
        batch_sampler=type("BatchSampler", (), home)(), dataset=range(60_000)
    ), type(name, (), {**home, **attributes})()


def test_a_shuffle_costs_more_than_poisson_batches_whatever_its_true_price_is():
    """Batches of 512 of 60,000, 100 epochs, noise 0.8: at least 66.2, where Poisson's are 9.13."""
    loader, sampler = of_torch(
        "RandomSampler", data_source=range(60_000), replacement=False, num_samples=60_000
    )
    loader.batch_sampler.__dict__.update(sampler=sampler, batch_size=512, drop_last=False)
    found = check(loader)
    assert found.name == "RandomSampler"
    assert found.law is None
    assert "Poisson samples is too low" in found.sentence
    assert "only the upper end" in found.sentence
    event = found.event(0.8, 100)
    assert event == events.ShuffledEpochsDpEvent(0.8, 117, 100)
    bracket = accountants.epsilon(event, delta=1e-5, neighboring_relation="replace-special")
    poisson = PoissonSampler(60_000, 512 / 60_000).event(0.8, 100)
    assert accountants.epsilon(poisson, delta=1e-5) < 9.2 < 66 < bracket.lower < bracket.upper
