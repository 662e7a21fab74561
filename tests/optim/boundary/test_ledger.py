"""The ledger holds what was released, and its event is the composition of that."""

import dataclasses
import itertools
import json
import pickle

import pytest
from hypothesis import given, strategies as st

from dpcal.accountants.events import (
    GaussianDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)
from dpcal.calibrate import Plan, Query
from dpcal.errors import LedgerMismatch, UnsupportedEvent
from dpcal.optim import Ledger

GRADIENT = Query(
    name="gradient",
    kind="gradient",
    sampler="poisson",
    sampling_probability=0.1,
    max_norm=1.0,
    noise_multiplier=2.0,
    count=1_000,
)
DIFFERENCE = Query(
    name="difference",
    kind="gradient difference",
    sampler="full",
    max_norm=0.5,
    noise_multiplier=3.0,
    count=1_000,
    proportional=True,
)


def test_empty_ledger_costs_nothing():
    assert Ledger(n=10).event == NoOpDpEvent()


def test_event_is_the_composition_of_what_was_recorded():
    ledger = Ledger(n=10)
    ledger.record(GRADIENT, 3)
    once = PoissonSampledDpEvent(0.1, GaussianDpEvent(2.0))
    assert ledger.event == SelfComposedDpEvent(once, 3)


@given(st.lists(st.tuples(st.sampled_from([GRADIENT, DIFFERENCE]), st.integers(1, 9)), min_size=1))
def test_runs_are_compressed_and_nothing_is_lost(answers):
    ledger = Ledger(n=10)
    for query, count in answers:
        ledger.record(query, count)
    flat = [query.name for query, count in answers for _ in range(count)]
    assert [entry.name for entry in ledger.entries for _ in range(entry.count)] == flat
    names = [entry.name for entry in ledger.entries]
    assert all(a != b for a, b in itertools.pairwise(names))
    assert all(ledger.count(query.name) == flat.count(query.name) for query, _ in answers)


def test_order_does_not_change_the_number_of_mechanisms():
    alternating = Ledger(n=10)
    for _ in range(5):
        alternating.record(GRADIENT)
        alternating.record(DIFFERENCE)
    plan = Plan(
        optimizer="spiderboost",
        n=10,
        queries=(
            dataclasses.replace(GRADIENT, count=5),
            dataclasses.replace(DIFFERENCE, count=5),
        ),
        epsilon=1.0,
        delta=1e-5,
    )
    assert len(alternating.entries) == 10
    assert alternating.event == plan.event


def test_same_name_with_other_noise_is_another_mechanism():
    ledger = Ledger(n=10)
    ledger.record(GRADIENT)
    ledger.record(dataclasses.replace(GRADIENT, noise_multiplier=1.0))
    assert [query.noise_multiplier for query in ledger.totals] == [2.0, 1.0]
    assert ledger.count("gradient") == 2


def test_json_round_trip_keeps_every_entry():
    ledger = Ledger(n=10, neighboring_relation="replace-one")
    ledger.record(GRADIENT, 7)
    ledger.record(DIFFERENCE)
    again = Ledger.from_json(ledger.to_json())
    assert again == ledger
    assert again.event == ledger.event
    again.record(DIFFERENCE)
    assert again != ledger


@pytest.mark.parametrize(
    "document",
    [
        "",
        "[]",
        "{}",
        '{"n": 3, "entries": [{}]}',
        '{"n": 3, "entries": [], "spare": 1}',
        '{"n": 0, "entries": []}',
    ],
)
def test_other_documents_are_refused(document):
    with pytest.raises(ValueError, match=r"must be a ledger in JSON|n must be a whole number"):
        Ledger.from_json(document)


def test_entries_out_of_range_are_refused():
    ledger = Ledger(n=10)
    ledger.record(GRADIENT)
    fields = json.loads(ledger.to_json())
    fields["entries"][0]["noise_multiplier"] = -1
    with pytest.raises(ValueError, match="noise_multiplier must be"):
        Ledger.from_json(json.dumps(fields))
    with pytest.raises(ValueError, match="count must be a whole number >= 1, got 0"):
        ledger.record(GRADIENT, 0)


def test_disjoint_parts_are_not_priced_where_no_theorem_covers_them():
    ledger = Ledger(n=10)
    ledger.record(dataclasses.replace(GRADIENT, composition="disjoint"), 2)
    with pytest.raises(UnsupportedEvent):
        _ = ledger.event


PARTS = Query(
    name="parts",
    kind="gradient",
    sampler="fixed-size",
    batch_size=5,
    max_norm=1.0,
    noise_multiplier=2.0,
    count=4,
    composition="disjoint",
    answers_per_part=2,
)


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
    plan = Plan(
        optimizer="x",
        n=10,
        queries=(PARTS,),
        epsilon=9.0,
        delta=1e-5,
        neighboring_relation="replace-one",
    )
    for price in (ledger.epsilon, plan.price):
        assert price(1e-5, neighboring_relation="replace-special") < price(1e-5)
        with pytest.raises(UnsupportedEvent, match="disjoint parts"):
            price(1e-5, neighboring_relation="add-or-remove-one")


DEEP = ["[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 5000 + "1" + "}" * 5000]


@pytest.mark.parametrize("text", [*DEEP, "1" * 5000, "null", "[]", "7", "", '{"entries": 1}'])
@pytest.mark.parametrize("kind", [Ledger, Plan])
def test_json_that_is_no_ledger_and_no_plan_is_one_sentence(kind, text):
    words = f"document must be a {kind.__name__.lower()} in JSON, got "
    with pytest.raises(ValueError, match=words) as caught:
        kind.from_json(text)
    assert str(caught.value).endswith(".")
    assert len(str(caught.value)) < 300


def test_a_frozen_ledger_is_a_copy_that_takes_nothing_more():
    query = Query(
        name="g", kind="gradient", sampler="full", max_norm=1.0, noise_multiplier=4.0, count=9
    )
    ledger = Ledger(50)
    ledger.record(query, 3)
    frozen = ledger.frozen()
    assert frozen == ledger
    assert frozen.frozen() is frozen
    ledger.record(query)
    assert (ledger.answers, frozen.answers) == (4, 3)
    for each in frozen, pickle.loads(pickle.dumps(frozen)):
        with pytest.raises(LedgerMismatch, match="takes no more answers"):
            each.record(query)
    # Whoever goes on from it has a copy.
    plan = Plan(optimizer="noisy_gd", n=50, queries=(query,), epsilon=9.0, delta=1e-6)
    frozen.within(plan).record(query)
    assert frozen.answers == 3
