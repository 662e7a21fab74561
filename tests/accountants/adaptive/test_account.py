"""Accounts: a composition that grows says what the whole event says, and grows cheaply."""

import math
import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st

from dpcal.accountants import (
    Account,
    CharacteristicAccountant,
    correlated,
    delta,
    epsilon,
    events,
    matrix,
)
from dpcal.errors import UnsupportedEvent

STEPS = [
    events.PoissonSampledDpEvent(0.01, events.GaussianDpEvent(1.0)),
    events.PoissonSampledDpEvent(0.02, events.GaussianDpEvent(1.5)),
    events.GaussianDpEvent(20.0),
]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 20)), min_size=1, max_size=12))
@settings(max_examples=6, deadline=None)
def test_step_by_step_equals_at_once(steps):
    account = Account()
    for event, count in steps:
        account.compose(event, count)
    whole = events.ComposedDpEvent([events.SelfComposedDpEvent(*step) for step in steps])
    assert account.epsilon(1e-6) == pytest.approx(epsilon(whole, delta=1e-6), rel=1e-9)
    assert account.delta(0.5) == pytest.approx(delta(whole, epsilon=0.5), rel=1e-9)


def test_equal_steps_merge_whatever_their_nesting():
    account = Account()
    account.compose(STEPS[0]).compose(events.SelfComposedDpEvent(STEPS[0], 4), 2)
    account.compose(events.ComposedDpEvent([STEPS[0], STEPS[2]]))
    expected = [events.SelfComposedDpEvent(STEPS[0], 10), STEPS[2]]
    assert account.event == events.ComposedDpEvent(expected)


def test_a_refused_event_adds_nothing():
    account = Account().compose(STEPS[0])
    with pytest.raises(UnsupportedEvent):
        account.compose(events.ComposedDpEvent([STEPS[1], events.UnsupportedDpEvent()]))
    assert account.event == STEPS[0]
    with pytest.raises(ValueError, match="count must be a whole number >= 1"):
        account.compose(STEPS[0], 0)


def test_a_whole_run_has_its_price_alone_and_beside_others():
    run = events.CorrelatedGaussianDpEvent(
        matrix.LambdaCGD(6, 0.5), correlated.Poisson(0.5), 2.0, statistics="none"
    )
    account = Account().compose(run)
    alone = account.epsilon(1e-5)
    assert alone == epsilon(run, delta=1e-5)
    for event in (run, STEPS[0]):
        assert account.supports(event)
        account.compose(event)
    assert account.event == events.ComposedDpEvent([events.SelfComposedDpEvent(run, 2), STEPS[0]])
    assert account.epsilon(1e-5) > alone


def test_a_whole_run_is_refused_where_others_leave_it_no_price():
    shuffles = events.ShuffledEpochsDpEvent(3.0, 2, 1)
    with pytest.raises(UnsupportedEvent, match="moves others to other batches"):
        Account().compose(shuffles)
    account = Account(neighboring_relation="replace-one").compose(shuffles)
    assert account.epsilon(1e-5) == epsilon(
        shuffles, delta=1e-5, neighboring_relation="replace-one"
    )
    with pytest.raises(UnsupportedEvent, match="Only accountant 'auto' prices"):
        account.compose(shuffles)
    assert account.event == shuffles
    both = events.ComposedDpEvent([shuffles, events.UnsupportedDpEvent()])
    with pytest.raises(UnsupportedEvent, match="No theorem here prices"):
        Account(neighboring_relation="replace-special").compose(both)


def test_adding_a_step_is_as_cheap_after_many_as_after_one():
    def calls(account):
        count = 0

        def counted(frame, event, argument):
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(counted)
        try:
            account.compose(STEPS[0])
        finally:
            sys.setprofile(None)
        return count

    account = Account().compose(STEPS[0])
    calls(account)  # the first has its caches to fill
    once = calls(account)
    for _ in range(1000):
        account.compose(STEPS[0])
    assert calls(account) == once < 100


def test_length_and_support():
    account = Account().compose(events.SelfComposedDpEvent(STEPS[0], 0))
    assert (account.event, len(account), account.delta(0.0)) == (events.NoOpDpEvent(), 0, 0)
    assert account
    account.compose(events.SelfComposedDpEvent(STEPS[0], 4), 3).compose(STEPS[1])
    assert len(account) == 13
    assert account.supports(events.ComposedDpEvent([STEPS[2], STEPS[0]]))
    assert not account.supports(events.ComposedDpEvent([STEPS[2], events.UnsupportedDpEvent()]))
    mixture = events.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.9, 0.1])
    assert account.supports(mixture)
    assert not Account(neighboring_relation="replace-one").supports(mixture)
    assert len(account) == 13


def test_delta_at_an_infinite_epsilon_is_the_chance_of_an_infinite_loss():
    accountant = CharacteristicAccountant()
    accountant.compose(events.EpsilonDeltaDpEvent(1.0, 1e-6), 3)
    truth = 1 - (1 - Fraction(1e-6)) ** 3
    assert truth <= Fraction(accountant.get_delta(math.inf)) <= truth * (1 + Fraction(1, 10**12))
