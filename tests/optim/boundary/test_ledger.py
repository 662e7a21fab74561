"""The ledger holds what is released before a record is read for it; its event composes that."""

import dataclasses
import inspect
import itertools
import pickle
from unittest import mock

import pytest
from _answers import POISSON, adaptive_plan, parted, plan_for, query
from _built_plans import CASES, built
from hypothesis import given, strategies as st

from dpcal import optim
from dpcal.accountants import events
from dpcal.errors import BudgetExceeded, LedgerMismatch, UnsupportedEvent
from dpcal.optim import Ledger, PrivateOracle
from dpcal.optim.boundary.noise import observing
from dpcal.optim.boundary.seeds import Streams

GRADIENT = query("gradient", count=1_000, **POISSON)
DIFFERENCE = query("difference", "gradient difference", count=1_000, proportional=True)
PARTS = parted("parts", 5, 4, each=2, partition=None)


@given(st.lists(st.tuples(st.sampled_from([GRADIENT, DIFFERENCE]), st.integers(1, 9)), min_size=1))
def test_runs_are_compressed_and_nothing_is_lost(answers):
    ledger = Ledger(n=10)
    for asked, count in answers:
        ledger.record(asked, count)
    flat = [asked.name for asked, count in answers for _ in range(count)]
    assert [entry.name for entry in ledger.entries for _ in range(entry.count)] == flat
    names = [entry.name for entry in ledger.entries]
    assert all(a != b for a, b in itertools.pairwise(names))
    assert all(ledger.count(asked.name) == flat.count(asked.name) for asked, _ in answers)
    again = Ledger.from_json(ledger.to_json())
    assert (again, again.event) == (ledger, ledger.event)
    again.record(DIFFERENCE)
    assert again != ledger


def test_event_is_the_composition_of_what_was_recorded_in_any_order():
    ledger = Ledger(n=10)
    assert ledger.event == events.NoOpDpEvent()
    ledger.record(GRADIENT, 3)
    once = events.PoissonSampledDpEvent(0.3, events.GaussianDpEvent(2.0))
    assert ledger.event == events.SelfComposedDpEvent(once, 3)
    for _ in range(3):
        ledger.record(DIFFERENCE)
        ledger.record(GRADIENT)
    asked = GRADIENT.with_count(6), DIFFERENCE.with_count(3)
    assert ledger.event == plan_for(*asked, n=10, relation="add-or-remove-one").event
    # The same name with other noise is another mechanism.
    ledger.record(dataclasses.replace(GRADIENT, noise_multiplier=1.0))
    assert [each.noise_multiplier for each in ledger.totals] == [2.0, 2.0, 1.0]
    assert ledger.count("gradient") == 7


def test_a_ledger_of_a_plan_is_not_written_beyond_it():
    ledger = Ledger.of(plan_for(query(count=3)))
    for change in ({"noise_multiplier": 0.1}, {"name": "other"}, {"max_norm": 2.0}):
        with pytest.raises(BudgetExceeded, match="the plan holds no such query"):
            ledger.record(query(**{"count": 3, **change}))
    assert ledger.entries == ()
    adaptive = Ledger.of(adaptive_plan())
    (asked, _) = adaptive_plan().queries
    adaptive.record(asked.with_noise(4.0), 2)
    with pytest.raises(BudgetExceeded, match="of the adaptive budget"):
        adaptive.record(asked.with_noise(2.0))
    assert adaptive.count("g") == 2


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 5),
        ({"partition": "p", "answers_per_part": 1}, 3),
    ],
)
def test_parts_that_cannot_be_disjoint_have_no_price(changes, count):
    # Ten records are two parts of five: of a third one some record would be in two.
    ledger = Ledger(10, "replace-one", entries=[PARTS])
    assert ledger.epsilon(1e-5) > 0
    ledger = Ledger(10, "replace-one", entries=[dataclasses.replace(PARTS, count=count, **changes)])
    with pytest.raises(LedgerMismatch, match="there are 10"):
        ledger.epsilon(1e-5)


def test_parts_are_not_priced_under_another_relation_that_is_asked_for():
    ledger = Ledger(10, "replace-one", entries=[PARTS])
    plan = plan_for(PARTS, n=10, relation="replace-one")
    for price in (ledger.epsilon, plan.price):
        assert price(1e-5, neighboring_relation="replace-special") < price(1e-5)
        with pytest.raises(UnsupportedEvent, match="disjoint parts"):
            price(1e-5, neighboring_relation="add-or-remove-one")
    with pytest.raises(UnsupportedEvent):
        _ = Ledger(10, entries=[PARTS]).event


def test_a_frozen_ledger_is_a_copy_that_takes_nothing_more():
    asked, ledger = query(count=9), Ledger(50)
    ledger.record(asked, 3)
    frozen = ledger.frozen()
    assert frozen == ledger
    assert ledger != [*ledger.entries]
    assert frozen.frozen() is frozen
    ledger.record(asked)
    assert (ledger.answers, frozen.answers) == (4, 3)
    for each in frozen, pickle.loads(pickle.dumps(frozen)):
        with pytest.raises(LedgerMismatch, match="takes no more answers"):
            each.record(asked)
    # Whoever goes on from it has a copy.
    frozen.within(plan_for(asked, n=50, relation="add-or-remove-one")).record(asked)
    assert frozen.answers == 3


# -- before a record is read, also in fused loops


FIRST = {}
for case in CASES:
    FIRST.setdefault(case.values[0], case.values)


class Watch:
    """Notes where the streams stand when an entry is written; the oracle's loops stay compiled.

    A sum follows its batch and precedes its noise, so a stream that has moved for an answer tells
    that records may have been read for it.
    """

    def __init__(self):
        self.streams_of, self.written, self._opened = {}, {}, None

    def streams(self, seed, plan, digest):
        self._opened = Streams(seed, plan, digest)
        return self._opened

    def watched(self, mechanism, plan, ledger):
        self.streams_of[id(ledger)] = (ledger, self._opened)
        self.written[id(ledger)] = []
        return mechanism

    def note(self, ledger, count):
        _, streams = self.streams_of[id(ledger)]
        states = (streams.sampling.bit_generator.state, streams.noise.bit_generator.state)
        self.written[id(ledger)] += [str(states)] * count


def watched(name, plan, objective):
    """Return where the streams stood at each entry of a run, ledger by ledger."""
    watch, record = Watch(), Ledger.record

    def noted(ledger, query, count=1):
        if id(ledger) in watch.streams_of:
            watch.note(ledger, count)
        record(ledger, query, count)

    optimizer = getattr(optim, name)
    rarely = "callback_every" in inspect.signature(optimizer).parameters
    options = {"callback_every": 10**9} if rarely else {}
    with optim.replaying(), observing(watch), mock.patch.object(Ledger, "record", noted):
        optimizer(objective, plan, seed=3, **options)
    return list(watch.written.values())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FIRST)
def test_no_stream_has_moved_for_an_answer_that_is_not_in_the_ledger(name):
    plan, objective = built(*FIRST[name])
    loops = watched(name, plan, objective)
    with mock.patch.object(PrivateOracle, "_compiled", return_value=[]):
        one_by_one = watched(name, plan, objective)
    assert [len(entries) for entries in loops] == [len(entries) for entries in one_by_one]
    for entries, before in zip(loops, one_by_one, strict=True):
        assert entries
        reached = {state: answers for answers, state in reversed(list(enumerate(before)))}
        for answers, state in enumerate(entries):
            assert reached[state] <= answers
