"""Every event has a price under a relation or a refusal with its reason, as the documents say."""

import itertools
import re

import pytest
from contracts._events import (
    ADD,
    ALL,
    DISCRETE,
    EXAMPLES,
    GAUSSIAN,
    REPLACE,
    SPECIAL,
    answered,
    documented,
)
from dp_accounting import dp_event

import dpcal
from dpcal import accountants
from dpcal.accountants import events
from dpcal.accountants.directions import RELATIONS
from dpcal.errors import UnsupportedEvent

POISSON, FIXED = events.PoissonSampledDpEvent, events.SampledWithoutReplacementDpEvent
SELECTION = events.ExponentialMechanismDpEvent(1.0)
WIDE = events.DiscreteGaussianDpEvent(1e6)
CORRELATED = next(each for each in EXAMPLES if isinstance(each, events.CorrelatedGaussianDpEvent))

# What is priced on everyone and refused in these places, and why.
REFUSED = [
    (events.RandomizedResponseDpEvent(0.5, 3), ADD, "reveals the record's presence"),
    (POISSON(0.3, events.RandomizedResponseDpEvent(0.4, 3)), ADD, "reveals the record's presence"),
    (accountants.from_pmf([0.6, 0.4], [0.4, 0.6]), SPECIAL, "dominates it under 'add-or-remove"),
    (events.ExchangedRowsDpEvent(1.0, (0.0, 2.0), (0.9, 0.1)), REPLACE, "rows in both worlds"),
    (events.ShuffledEpochsDpEvent(3.0, 2, 1), ADD, "moves others to other batches"),
    (events.SingleEpochTreeAggregationDpEvent(1.0, [3]), REPLACE, "Only a blanked record leaves"),
    (events.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.5]), REPLACE, "exchanging two"),
    (events.UnsupportedDpEvent(), SPECIAL, "has no description"),
    (events.ComposedDpEvent([GAUSSIAN, events.UnsupportedDpEvent()]), ADD, "has no description"),
    (events.ComposedDpEvent([CORRELATED, GAUSSIAN]), ADD, "alone and not in a composition"),
    (POISSON(0.1, events.ZCDpEvent(0.5)), ADD, "law .* is not known"),
    (POISSON(0.1, WIDE), REPLACE, "up to sigma"),
    (POISSON(0.1, WIDE), ADD, "up to sigma"),
    (POISSON(0.1, events.NonPrivateDpEvent()), ADD, "not private"),
    (FIXED(10, 10, GAUSSIAN), ADD, "no neighbor"),
    (FIXED(9, 3, events.PermuteAndFlipDpEvent(1.0)), SPECIAL, "takes its place"),
    # What is claimed for an added record may cost half of what a replaced one does.
    (FIXED(9, 3, events.PermuteAndFlipDpEvent(1.0)), ADD, "takes another's place"),
    (FIXED(9, 3, events.EpsilonDeltaDpEvent(1.0, 1e-6)), ADD, "takes another's place"),
    (FIXED(9, 3, SELECTION), ADD, "takes another's place"),
    (FIXED(9, 3, events.ComposedDpEvent([DISCRETE, SELECTION])), ADD, "takes another's place"),
    (FIXED(9, 3, events.RepeatAndSelectDpEvent(SELECTION, 2.0, 1.0)), ADD, "another's place"),
    (events.SampledWithReplacementDpEvent(9, 3, DISCRETE), REPLACE, "repeated draws"),
    (events.AllocatedDpEvent(SELECTION, 4), SPECIAL, "A blanked record may leave"),
    (events.AllocatedDpEvent(events.ZCDpEvent(0.1), 4), ADD, "The law of what is sampled"),
    (events.AllocatedDpEvent(events.EpsilonDeltaDpEvent(0.5, 0.3), 200), ADD, "batches fail"),
]

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


def test_every_class_of_events_has_an_example_and_a_row():
    modules = (dp_event.__name__, events.__name__)
    known = {c for c in classes(dp_event.DpEvent) if c.__module__ in modules} - {dp_event.DpEvent}
    assert {type(example) for example in EXAMPLES} == known
    assert {name for name, _ in documented()} == {each.__name__ for each in known}


def verdict(answer):
    """Return the word of the page: bounds on either side, a bracket, an upper end, or none."""
    if isinstance(answer, str):
        return "refused"
    if answer.method.startswith("bracket"):
        return "a bracket"
    return "Renyi" if answer.lower == 0 < answer.upper else "yes"


def test_the_page_of_mechanisms_is_true():
    cells, wrong = documented(), []
    for place, event in enumerate(EXAMPLES):
        for relation in RELATIONS:
            answer, name = answered(place, relation), type(event).__name__
            said = [part.strip() for part in cells[name, relation].split(",")]
            found = verdict(answer)
            if found not in said or (found == "a bracket") != ("a bracket" in said):
                wrong.append((name, relation, said, found))
            if not isinstance(answer, str):
                infinite = answer.upper == float("inf")
                assert 0 <= answer.lower <= answer.upper, (name, relation)
                assert infinite == isinstance(event, events.NonPrivateDpEvent), (name, relation)
    assert wrong == []


def test_what_the_page_refuses_has_its_reason_here():
    refused = {name for (name, _), cell in documented().items() if cell.startswith("refused")}
    assert refused <= {type(event).__name__ for event, *_ in REFUSED}


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
