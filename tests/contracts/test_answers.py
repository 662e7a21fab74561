"""Epsilon and delta are one bound read both ways, rounded outward, whatever way they are asked."""

import math
import pickle

import numpy as np
import pytest
from contracts._events import GAUSSIAN, RELATIONS, WRITTEN, made, priced
from dp_accounting import NeighboringRelation
from dp_accounting.privacy_accountant import UnsupportedEventError

from dpcal import accountants
from dpcal.accountants import events
from dpcal.errors import UnsupportedEvent

DELTA, EPSILON, RATE = 1e-5, 0.3, 0.1
# Beside what rounding costs, upper ends of both questions come from one bound.
GAP = 1e-6
OWN = dict(zip(RELATIONS, NeighboringRelation, strict=True))


def again(event):
    """Return the same mechanism in other words."""
    parts = [events.NoOpDpEvent(), events.SelfComposedDpEvent(event, 1)]
    return events.ComposedDpEvent(parts)


def in_notation(neighboring_relation):
    """Return dp-accounting's value of a relation, as a keyword."""
    return {"neighboring_relation": OWN[neighboring_relation]}


def of_grid(event, **how):
    """Return both ends of a grid of one point."""
    return accountants.grid(lambda count: events.SelfComposedDpEvent(event, count), count=1, **how)


def of_logarithm(event, **how):
    found = accountants.log_delta(event, **how)
    return math.exp(found.lower), math.exp(found.upper)


def of_comparison(event, **how):
    return min(accountants.compare(event, accountants=["auto"], **how).rows, key=lambda x: x.upper)


def adapted(event, neighboring_relation):
    return accountants.CharacteristicAccountant(OWN[neighboring_relation]).compose(event)


def filled(event, **how):
    return accountants.Account(**how).compose(event)


EPSILONS = {
    "epsilon": lambda event, **how: accountants.epsilon(event, delta=DELTA, **how),
    "other words": lambda event, **how: accountants.epsilon(
        again(event), delta=DELTA, **in_notation(**how)
    ),
    "compare": lambda event, **how: of_comparison(event, delta=DELTA, **how),
    "Account": lambda event, **how: filled(event, **how).epsilon(DELTA),
    "profile": lambda event, **how: accountants.epsilon_profile(event, [DELTA], **how),
    "grid": lambda event, **how: of_grid(event, delta=DELTA, **how),
    "dp-accounting": lambda event, **how: adapted(event, **how).get_epsilon(DELTA),
}
DELTAS = {
    "delta": lambda event, **how: accountants.delta(event, epsilon=EPSILON, **how),
    "other words": lambda event, **how: accountants.delta(
        again(event), epsilon=EPSILON, **in_notation(**how)
    ),
    "log_delta": lambda event, **how: of_logarithm(event, epsilon=EPSILON, **how),
    "Account": lambda event, **how: filled(event, **how).delta(EPSILON),
    "profile": lambda event, **how: accountants.privacy_profile(event, [EPSILON], **how),
    "grid": lambda event, **how: of_grid(event, epsilon=EPSILON, **how),
    "dp-accounting": lambda event, **how: adapted(event, **how).get_delta(EPSILON),
}
# Whole runs and brackets have no law, and claims of zCDP have no lower end.
DRAWN = (
    "AllocatedDpEvent",
    "RandomAllocationDpEvent",
    "ShuffledEpochsDpEvent",
    "UnequalAllocationDpEvent",
)
LAWLESS = (*DRAWN, "CorrelatedGaussianDpEvent", "RepeatAndSelectDpEvent", "ZCDpEvent")


def ends(answer):
    """Return both ends of an answer; dp-accounting's have an upper one alone."""
    if isinstance(answer, tuple):
        return answer
    lower, upper = getattr(answer, "lower", None), getattr(answer, "upper", answer)
    return (lower, upper) if lower is None else (float(np.ravel(lower)[0]), np.ravel(upper)[0])


@pytest.mark.slow
@pytest.mark.parametrize("ways", [EPSILONS, DELTAS], ids=["epsilon", "delta"])
def test_every_way_of_asking_gives_the_same_number(ways):
    for event, relation, _ in priced():
        answers = {}
        for name, way in ways.items():
            about = (name, event, relation, answers)
            try:
                answers[name] = answer = way(event, neighboring_relation=relation)
            except (UnsupportedEvent, UnsupportedEventError):
                assert type(event).__name__ in LAWLESS, about
                assert name in ("compare", "profile", "dp-accounting"), about
                continue
            (lower, upper), (low, high) = ends(answer), ends(next(iter(answers.values())))
            lower = low if lower is None else lower
            assert lower <= high, about
            assert low <= upper, about
            assert lower == pytest.approx(low, rel=GAP, abs=GAP), about
            assert upper == pytest.approx(high, rel=GAP, abs=1e-300), about
            assert name != "other words" or (lower, upper) == (low, high), about
        first = next(iter(answers.values()))
        assert pickle.loads(pickle.dumps(first)).to_dict() == first.to_dict(), first


@pytest.mark.slow
def test_epsilon_and_delta_are_one_bound_read_both_ways():
    """What is rounded outward on the way there and back holds without any tolerance."""
    for event, relation, epsilon in priced():
        how, about = {"neighboring_relation": relation}, (event, relation, epsilon)
        assert 0 <= epsilon.lower <= epsilon.upper, about
        if epsilon.upper == math.inf:
            continue
        at_upper, at_lower = (
            accountants.delta(event, epsilon=end, **how) for end in (epsilon.upper, epsilon.lower)
        )
        assert at_upper.lower <= DELTA, about
        assert at_lower.upper >= DELTA or epsilon.lower == 0, about
        if epsilon.method.startswith("bracket"):
            continue
        # An infinite slope of epsilon in delta is where a loss has an atom at the end.
        assert at_upper.upper <= DELTA * (1 + 1e-4), about
        delta = accountants.delta(event, epsilon=EPSILON, **how)
        assert 0 <= delta.lower <= delta.upper <= 1, about
        if 0 < delta.upper < 1:
            back = accountants.epsilon(event, delta=delta.upper, **how)
            assert back.lower <= EPSILON, about
            assert back.upper <= EPSILON * (1 + GAP), about


@pytest.mark.slow
def test_answers_at_neighboring_numbers_are_in_order():
    for event, relation, epsilon in priced():
        how, about = {"neighboring_relation": relation}, (event, relation, epsilon)
        if isinstance(event, events.ShuffledEpochsDpEvent | events.NonPrivateDpEvent):
            continue  # A search of seconds, and no search at all.
        more, less = (
            accountants.epsilon(event, delta=math.nextafter(DELTA, end), **how) for end in (1, 0)
        )
        assert more.lower <= epsilon.upper, about
        assert epsilon.lower <= less.upper, about
        # A unit in the last place of delta moves neither end by more than rounding does.
        for one in (more, less):
            for end in ("lower", "upper"):
                assert getattr(one, end) == pytest.approx(getattr(epsilon, end), rel=GAP), about


@pytest.mark.slow
def test_trade_offs_and_risks_say_what_deltas_say():
    for event, relation, _ in priced():
        how, about = {"neighboring_relation": relation}, (event, relation)
        try:
            curve = accountants.trade_off(event, [RATE], **how)
        except UnsupportedEvent:
            assert type(event).__name__ in LAWLESS, about
            continue
        pairs = {at: accountants.delta(event, epsilon=at, **how).upper for at in (0.0, EPSILON)}
        least = accountants.trade_off_from_deltas(list(pairs), list(pairs.values()), [RATE])
        assert curve.lower[0] <= curve.upper[0], about
        assert least.lower[0] <= curve.upper[0], about
        assert least.lower[0] <= curve.lower[0] + GAP, about
        risk = accountants.advantage(event, **how)
        assert risk.upper == pytest.approx(pairs[0.0], rel=GAP), about


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("event", [made(each) for each in WRITTEN["free"]])
def test_a_record_that_is_never_sampled_costs_nothing(event, relation):
    how = {"delta": 1e-9, "neighboring_relation": relation}
    assert accountants.epsilon(event, **how).upper == 0
    assert accountants.delta(event, epsilon=0.0, neighboring_relation=relation).upper == 0
    both = events.ComposedDpEvent([event, GAUSSIAN])
    assert accountants.epsilon(both, **how) == accountants.epsilon(GAUSSIAN, **how)
