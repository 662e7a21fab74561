"""Groups and orders of many records: their laws, the same bits again, and their memory."""

import itertools
import tracemalloc
from collections import Counter
from itertools import islice

import numpy as np
import pytest
from _answers import parted, plan_for
from scipy import stats

from dpcal.accountants import random_groups, samplers
from dpcal.accountants.random_groups import RandomOrder
from dpcal.optim.boundary.batches import Parts
from dpcal.optim.boundary.seeds import Streams, keyed_generator

MADE = [np.random.default_rng, lambda seed: keyed_generator(bytes([seed]) * 32)]
# A p-value below this is a false alarm once in a million runs; the streams are fixed.
ALARM = 1e-6


@pytest.fixture
def few(monkeypatch):
    """Let a few records count as many."""
    monkeypatch.setattr(random_groups, "_KEPT", 2)
    monkeypatch.setattr(random_groups, "_TOGETHER", 2)


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("kept", [1, 40, 1_000])
def test_groups_that_are_drawn_again_are_those_of_one_draw(monkeypatch, made, kept):
    monkeypatch.setattr(random_groups, "_KEPT", kept)
    monkeypatch.setattr(random_groups, "_TOGETHER", 17)
    n, count = 300, 7
    at_once, generator, other = made(4), made(4), made(4)
    first, second = at_once.integers(count, size=n), at_once.integers(count, size=n)
    expected = [np.flatnonzero(group == j) for group in (first, second) for j in range(count)]
    bins = samplers.BallsInBins(count).batches(n, 2 * count, other)
    allocation = samplers.RandomAllocation(1, epoch=count).batches(n, 2 * count, generator)
    for number, rows in enumerate(allocation):
        assert rows.tolist() == expected[number].tolist()
        assert next(bins).tolist() == expected[number % count].tolist()
    # Draws in between, as those of cyclic Poisson samples, are never made twice.
    assert generator.integers(1 << 40) == at_once.integers(1 << 40)


def test_all_long_orders_are_equally_likely(few):
    generator, seen = keyed_generator(bytes(32)), Counter()
    for _ in range(2_400):
        order = RandomOrder(4, generator)
        seen[*order.take(1), *order.take(2), *order.take(5)] += 1
        assert not len(order.take(1))
    assert set(seen) == set(itertools.permutations(range(4)))
    assert stats.chisquare(list(seen.values())).pvalue > ALARM


def test_all_subsets_of_the_groups_of_a_long_epoch_are_equally_likely(few):
    generator, seen, n = keyed_generator(bytes(32)), Counter(), 40
    for _ in range(25):
        joined = np.zeros((n, 5), bool)
        batches = samplers.RandomAllocation(3, epoch=5).batches(n, 5, generator)
        for j, rows in enumerate(batches):
            assert (np.diff(rows) > 0).all()
            joined[rows, j] = True
        seen.update(map(tuple, joined.tolist()))
    assert len(seen) == 10
    assert {sum(each) for each in seen} == {3}
    assert stats.chisquare(list(seen.values())).pvalue > ALARM


def test_shuffles_of_many_records_have_the_sizes_of_one_of_few(monkeypatch):
    batches = samplers.ShuffledEpochs(4).batches(103, 8, keyed_generator(bytes(32)))
    monkeypatch.setattr(random_groups, "_KEPT", 10)
    monkeypatch.setattr(random_groups, "_TOGETHER", 7)
    long = samplers.ShuffledEpochs(4).batches(103, 8, keyed_generator(bytes(32)))
    epochs = []
    for _ in range(2):
        few, many = list(islice(batches, 4)), list(islice(long, 4))
        assert list(map(len, few)) == list(map(len, many)) == [26, 26, 26, 25]
        assert sorted(np.concatenate(many)) == list(range(103))
        epochs.append(np.concatenate(many).tolist())
    assert epochs[0] != epochs[1]


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize(("separation", "rate"), [(1, 0.3), (2, 1.0), (5, 0.2), (30, 0.05)])
def test_records_that_sit_out_are_those_of_a_counter_for_each(made, warm_start, separation, rate):
    n = 200
    sampler = samplers.MinSeparation(separation, rate, warm_start)
    generator = made(5)
    start = np.exp(sampler.automaton(1).start)
    due = generator.choice(separation, size=n, p=start / start.sum())
    for rows in islice(sampler.batches(n, 60, made(5)), 60):
        eligible = np.flatnonzero(due == 0)
        joined = eligible[samplers.Poisson(rate).draw(len(eligible), generator)]
        due = np.maximum(due - 1, 0)
        due[joined] = separation - 1
        assert rows.tolist() == joined.tolist()


def test_disjoint_parts_of_many_records_cut_one_order(few):
    """Each partition has an order of its own, whatever order the parts are asked for in."""
    queries = [parted(name, 4, 3, partition=name) for name in ("a", "b")]
    plan = plan_for(*queries, n=12)

    def parts(*turns):
        streams = Streams.restored({"secret": "5", "public": "6", "given": True}, plan)
        made, found, spent = Parts(plan, streams), {"a": [], "b": []}, Counter()
        for name in turns:
            query = plan.query(name)
            made.check(query, 1, spent[name])
            made.allot(query, 1, spent[name])
            spent[name] += 1
            found[name] += made.take(query).tolist()
        return found

    first, second = parts(*"aaabbb"), parts(*"abbaba")
    assert first == second
    assert sorted(first["a"]) == sorted(first["b"]) == list(range(12))
    assert first["a"] != first["b"]


@pytest.mark.parametrize(
    "sampler",
    [
        samplers.RandomAllocation(1, epoch=100),
        samplers.RandomAllocation(3, epoch=300),
        samplers.ShuffledEpochs(100),
        samplers.MinSeparation(3, 0.01),
        samplers.BallsInBins(100),
    ],
    ids=str,
)
def test_batches_take_no_memory_for_each_record(monkeypatch, sampler):
    monkeypatch.setattr(random_groups, "_KEPT", 1 << 14)
    monkeypatch.setattr(random_groups, "_TOGETHER", 1 << 13)
    n, seen, batches = 200_000, 0, 30
    tracemalloc.start()
    for rows in islice(sampler.batches(n, 300, keyed_generator(bytes(32))), batches):
        seen += len(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seen == pytest.approx(batches * sampler.expected_batch_size(n, 300), rel=0.03)
    # The numbers of all records are 1.6 MB; those of the groups that are kept at once, 128 KB.
    assert peak < 800_000
