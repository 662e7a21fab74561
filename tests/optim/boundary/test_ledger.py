"""The ledger holds what was released, and its event is the composition of that."""

import dataclasses
import itertools
import json
import pickle

import pytest
from _answers import POISSON, adaptive_plan, parted, plan_for, query
from hypothesis import given, strategies as st

from dpcal.accountants.events import (
    GaussianDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)
from dpcal.calibrate import Plan
from dpcal.errors import BudgetExceeded, LedgerMismatch, UnsupportedEvent
from dpcal.optim import Ledger

GRADIENT = query("gradient", count=1_000, **POISSON)
DIFFERENCE = query("difference", "gradient difference", count=1_000, proportional=True)
PARTS = parted("parts", 5, 4, each=2, partition=None)


def test_event_is_the_composition_of_what_was_recorded():
    ledger = Ledger(n=10)
    assert ledger.event == NoOpDpEvent()
    ledger.record(GRADIENT, 3)
    once = PoissonSampledDpEvent(0.3, GaussianDpEvent(2.0))
    assert ledger.event == SelfComposedDpEvent(once, 3)
    with pytest.raises(ValueError, match="count must be a whole number >= 1, got 0"):
        ledger.record(GRADIENT, 0)


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


def test_order_does_not_change_the_number_of_mechanisms():
    alternating = Ledger(n=10)
    for _ in range(5):
        alternating.record(GRADIENT)
        alternating.record(DIFFERENCE)
    asked = (dataclasses.replace(each, count=5) for each in (GRADIENT, DIFFERENCE))
    assert len(alternating.entries) == 10
    assert alternating.event == plan_for(*asked, n=10, relation="add-or-remove-one").event
    # The same name with other noise is another mechanism.
    alternating.record(dataclasses.replace(GRADIENT, noise_multiplier=1.0))
    assert [each.noise_multiplier for each in alternating.totals] == [2.0, 2.0, 1.0]
    assert alternating.count("gradient") == 6


def test_a_ledger_of_a_plan_is_not_written_beyond_it():
    plan = plan_for(query(count=3))
    ledger = Ledger.of(plan)
    with pytest.raises(BudgetExceeded, match="may be asked 3 times, 0 are spent, 4 more"):
        ledger.record(query(), 4)
    for change in ({"noise_multiplier": 0.1}, {"name": "other"}, {"max_norm": 2.0}):
        with pytest.raises(BudgetExceeded, match="the plan holds no such query"):
            ledger.record(query(**{"count": 3, **change}))
    assert ledger.entries == ()
    ledger.record(query(count=3), 3)
    assert ledger.event == plan.event
    adaptive = Ledger.of(adaptive_plan())
    (asked, _) = adaptive_plan().queries
    adaptive.record(asked.with_noise(4.0), 2)
    with pytest.raises(BudgetExceeded, match="of the adaptive budget"):
        adaptive.record(asked.with_noise(2.0))
    assert adaptive.count("g") == 2


def test_json_round_trip_keeps_every_entry():
    ledger = Ledger(n=10, neighboring_relation="replace-one")
    ledger.record(GRADIENT, 7)
    ledger.record(DIFFERENCE)
    again = Ledger.from_json(ledger.to_json())
    assert (again, again.event) == (ledger, ledger.event)
    again.record(DIFFERENCE)
    assert again != ledger
    fields = json.loads(ledger.to_json())
    fields["entries"][0]["noise_multiplier"] = -1
    with pytest.raises(ValueError, match="noise_multiplier must be"):
        Ledger.from_json(json.dumps(fields))


DEEP = ["[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 5000 + "1" + "}" * 5000]
WRONG = [*DEEP, "1" * 5000, "null", "[]", "7", "", "{}", '{"entries": 1}']
WRONG += ['{"n": 3, "entries": [{}]}', '{"n": 3, "entries": [], "spare": 1}']


@pytest.mark.parametrize("kind", [Ledger, Plan])
def test_json_that_is_no_ledger_and_no_plan_is_one_sentence(kind):
    words = f"document must be a {kind.__name__.lower()} in JSON, got "
    for text in WRONG:
        with pytest.raises(ValueError, match=words) as caught:
            kind.from_json(text)
        assert str(caught.value).endswith(".")
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 5),
        ({"sampler": "full", "batch_size": None}, 3),
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
        _ = Ledger(10, entries=[dataclasses.replace(GRADIENT, composition="disjoint")]).event


def test_a_frozen_ledger_is_a_copy_that_takes_nothing_more():
    asked, ledger = query(count=9), Ledger(50)
    ledger.record(asked, 3)
    frozen = ledger.frozen()
    assert frozen == ledger
    assert frozen.frozen() is frozen
    ledger.record(asked)
    assert (ledger.answers, frozen.answers) == (4, 3)
    for each in frozen, pickle.loads(pickle.dumps(frozen)):
        with pytest.raises(LedgerMismatch, match="takes no more answers"):
            each.record(asked)
    # Whoever goes on from it has a copy.
    frozen.within(plan_for(asked, n=50, relation="add-or-remove-one")).record(asked)
    assert frozen.answers == 3
