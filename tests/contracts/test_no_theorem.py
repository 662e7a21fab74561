"""Every event has a price under a relation or a refusal with its reason, as the documents say."""

import itertools
import re

import pytest
from contracts._events import ALL, EXAMPLES, PAGE, WRITTEN, answered, made, page
from dp_accounting import dp_event

import dpcal
from dpcal import accountants
from dpcal.accountants import events
from dpcal.accountants.directions import RELATIONS
from dpcal.errors import UnsupportedEvent

# What is priced on everyone and refused in these places, and why.
REFUSED = [(made(event), *about) for event, *about in WRITTEN["no_theorem"]]

ASKED = {
    "epsilon": lambda event, **how: dpcal.epsilon(event, delta=0.5, **how),
    "delta": lambda event, **how: dpcal.delta(event, epsilon=1.0, **how),
    "log_delta": lambda event, **how: accountants.log_delta(event, epsilon=1.0, **how),
    "compare": lambda event, **how: accountants.compare(event, delta=0.5, **how),
    "privacy_profile": lambda event, **how: accountants.privacy_profile(event, [1.0], **how),
    "trade_off": lambda event, **how: accountants.trade_off(event, [0.1], **how),
    "gdp_mu": accountants.gdp_mu,
    "Account": lambda event, **how: accountants.Account(**how).compose(event).epsilon(0.5),
}


def classes(root):
    """Return a class and all classes below it."""
    return {root} | {found for child in root.__subclasses__() for found in classes(child)}


def test_every_class_of_events_has_a_row_and_an_example_of_it():
    packages = ("dp_accounting.", "dpcal.")
    # dp-accounting's own tests have an event that no accountant knows.
    known = {
        event
        for event in classes(dp_event.DpEvent)
        if event.__module__.startswith(packages) and not event.__module__.endswith("_test")
    }
    assert {type(example) for example in EXAMPLES} == known - {dp_event.DpEvent}


def test_the_page_is_that_of_the_rows():
    assert page(PAGE.read_text()) == PAGE.read_text(), (
        "PYTHONPATH=tests python -m contracts._events"
    )


def test_only_non_private_events_cost_all_and_what_is_refused_has_its_reason_here():
    for place, relation in itertools.product(range(len(EXAMPLES)), RELATIONS):
        event, answer = EXAMPLES[place], answered(place, relation)
        if isinstance(answer, str):
            assert type(event) in {type(each) for each, *_ in REFUSED}
        else:
            assert 0 <= answer.lower <= answer.upper, (event, relation)
            infinite = answer.upper == float("inf")
            assert infinite == isinstance(event, events.NonPrivateDpEvent), (event, relation)


def test_what_no_theorem_covers_is_refused_in_a_sentence_with_the_reason():
    for (event, relation, reason), name in itertools.product(REFUSED, ASKED):
        with pytest.raises(UnsupportedEvent) as refusal:
            ASKED[name](event, neighboring_relation=relation)
        sentence = str(refusal.value)
        form = rf"(?=.*{relation!r})(?=.*{reason})[A-Z].*\."
        assert re.fullmatch(form, sentence, re.DOTALL), (name, sentence, form)


@pytest.mark.slow
def test_no_accountant_contradicts_another_or_says_that_nothing_prices_what_auto_prices():
    places = range(len(ALL))
    for place, relation in itertools.product(places, RELATIONS):
        auto, *others = (answered(place, relation, name) for name in accountants.ACCOUNTANTS)
        refusals = [each for each in others if isinstance(each, str)]
        about = (ALL[place], relation, auto, others)
        for text in refusals:
            assert text.rstrip().endswith("."), about
            assert ("No theorem" in text) == isinstance(auto, str), about
            # The whole-run prices of accountant 'auto' are named where no other accountant answers.
            alone = not isinstance(auto, str) and len(refusals) == len(others)
            assert ("accountant 'auto' prices" in text) == alone, about
        for one, other in itertools.combinations([auto, *others], 2):
            if not isinstance(one, str) and not isinstance(other, str):
                assert one.lower <= other.upper, about
                assert other.lower <= one.upper, about
