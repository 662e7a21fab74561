"""Questions of any size and with odd numbers: an answer, or one sentence, within memory."""

import math
import random
import subprocess
import sys
import tomllib
from decimal import Decimal
from fractions import Fraction

import attrs
import dp_accounting
import numpy as np
import pytest
from _tree import DATA
from contracts._events import EXAMPLES, RELATIONS, WRITTEN, made

import dpcal
from dpcal import accountants
from dpcal._internal.validate import NoiseOutOfRange
from dpcal.accountants import events
from dpcal.accountants.limits import hold
from dpcal.accountants.mechanisms.decompose import (
    MOST_DISTINCT,
    MOST_LEVELS,
    MOST_OF_OTHER_NOISE,
    MOST_SELECTIONS,
)
from dpcal.errors import DpcalError, TooLarge

GAUSSIAN, LAPLACE = events.GaussianDpEvent(5.0), events.LaplaceDpEvent(5.0)


def nested(wrap, levels, event=GAUSSIAN):
    for _ in range(levels):
        event = wrap(event)
    return event


# -- memory

PROGRAMS = tomllib.loads((DATA / "little_memory.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PROGRAMS["questions"])
def test_a_question_answers_or_is_refused_within_two_gibibytes(name):
    words = [sys.executable, "-c", PROGRAMS["start"] + PROGRAMS["questions"][name]]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_sentence_names_the_number_and_what_it_takes():
    hold(2**27, "steps=7")
    with pytest.raises(TooLarge, match=r"^steps=7 would take 2 GiB of memory, .*smaller number\.$"):
        hold(2**28, "steps=7")


# -- work


@pytest.mark.parametrize(
    ("wrap", "levels"),
    [
        (lambda event: events.RepeatAndSelectDpEvent(event, 2.0, 1.0), MOST_SELECTIONS + 1),
        (lambda event: events.RepeatAndSelectDpEvent(event, 2.0, 1.0), 5000),
        (lambda event: events.AllocatedDpEvent(event, 1), 300),
        (lambda event: events.PoissonSampledDpEvent(0.9, events.ComposedDpEvent([event])), 1000),
    ],
)
def test_events_too_deep_or_too_many_are_refused_in_a_sentence(wrap, levels):
    for ask in (
        lambda event: dpcal.epsilon(event, delta=1e-5),
        lambda event: accountants.delta(event, epsilon=1.0),
        lambda event: accountants.Account().compose(event),
        lambda event: dpcal.epsilon(event, delta=0),
    ):
        with pytest.raises(TooLarge, match=r"^event must (have|compose) at most .*\.$"):
            ask(nested(wrap, levels))


def test_compositions_that_double_are_refused_in_a_sentence():
    event = nested(lambda inner: events.ComposedDpEvent([inner, inner]), 40)
    number = {events.GaussianDpEvent: MOST_DISTINCT, events.LaplaceDpEvent: MOST_OF_OTHER_NOISE}
    distinct = [[kind(1.0 + i) for i in range(most + 1)] for kind, most in number.items()]
    many = map(events.ComposedDpEvent, distinct)
    for whole in (event, events.PoissonSampledDpEvent(0.9, event), *many):
        with pytest.raises(TooLarge, match=r"^event must compose at most .*\.$"):
            dpcal.epsilon(whole, delta=1e-5)


def test_deep_compositions_that_add_up_are_answered():
    event = nested(lambda inner: events.SelfComposedDpEvent(inner, 1), 5000)
    assert dpcal.epsilon(event, delta=1e-5) == dpcal.epsilon(GAUSSIAN, delta=1e-5)
    epochs = nested(lambda inner: events.AllocatedDpEvent(inner, 1), MOST_LEVELS - 1, LAPLACE)
    assert dpcal.epsilon(epochs, delta=1e-5) == dpcal.epsilon(LAPLACE, delta=1e-5)


def test_selections_of_selections_take_few_bounds_of_one_run(monkeypatch):
    """The Renyi bound of a run is asked for about as often at eight levels as at two."""
    from dpcal.accountants.mechanisms.best_run import RepeatedSelection

    def asked(levels):
        count = 0
        plain = RepeatedSelection._single

        def single(self, c):
            nonlocal count
            count += 1
            return plain(self, c)

        with monkeypatch.context() as patch:
            patch.setattr(RepeatedSelection, "_single", single)
            event = nested(lambda run: events.RepeatAndSelectDpEvent(run, 2.0, 1.0), levels)
            dpcal.epsilon(event, delta=1e-5, accountant="renyi")
        return count

    assert asked(8) < 12 * asked(2)


def test_numbers_out_of_range_are_refused_alone_on_samples_and_beside_others():
    for text, sentence in WRITTEN["out_of_range"]:
        event = made(text)
        for whole in (event, events.ComposedDpEvent([GAUSSIAN, event])):
            with pytest.raises(ValueError, match=sentence):
                dpcal.epsilon(whole, delta=1e-6)
        if isinstance(event, events.DiscreteLaplaceDpEvent | events.GaussianDpEvent):
            with pytest.raises(ValueError, match=sentence):
                dpcal.epsilon(events.PoissonSampledDpEvent(0.5, event), delta=1e-6)
    with pytest.raises(ValueError, match=r"sampling_probability must be .*\[1e-50, 1\]"):
        dpcal.epsilon(events.PoissonSampledDpEvent(1e-200, GAUSSIAN), delta=1e-6)


@pytest.mark.parametrize("row", WRITTEN["extremes"], ids=lambda row: row[0])
def test_numbers_near_the_ends_of_doubles_are_answered_or_refused_by_name(row):
    event, sentence = made(row[0]), row[1] if len(row) > 1 else None
    how = {"neighboring_relation": "replace-special"}
    for ask in (
        lambda: accountants.epsilon(event, delta=1e-6, **how),
        lambda: accountants.epsilon(event, delta=5e-324, **how),
        lambda: accountants.delta(event, epsilon=1.0, **how),
    ):
        if sentence is None:
            answer = ask()
            assert 0 <= answer.lower <= answer.upper
            continue
        with pytest.raises((ValueError, DpcalError), match=sentence) as refused:
            ask()
        assert str(refused.value).endswith(".")


# -- numbers that are not floats


@pytest.mark.parametrize("pair", WRITTEN["same_numbers"], ids=lambda pair: pair[0])
def test_arrays_fractions_and_numpy_scalars_are_numbers(pair):
    odd, plain = map(made, pair)
    assert dpcal.epsilon(odd, delta=1e-5) == dpcal.epsilon(plain, delta=1e-5)
    composed = events.ComposedDpEvent([odd, odd])
    account = accountants.Account().compose(odd).compose(odd)
    assert account.epsilon(1e-5) == dpcal.epsilon(composed, delta=1e-5)


def test_a_discrete_gaussian_at_a_large_delta_has_an_interval():
    event = events.SelfComposedDpEvent(events.DiscreteGaussianDpEvent(0.231, 4), 236)
    answer = dpcal.epsilon(event, delta=0.99)
    assert 0 <= answer.lower <= answer.upper < math.inf
    assert accountants.log_delta(event, epsilon=answer.upper).lower <= math.log(0.99)


ODD = [
    *(0, -1, 1, True, None, "1.0", b"1", [], [1.0], {}, 1j, object(), 1e12, 1e18, 2**63, 10**30),
    *(10**400, math.nan, math.inf, -math.inf, 1e308, 5e-324, -0.0, 1e-308, 1 + 1e-12),
    *(Fraction(1, 3), Decimal("0.5"), np.float32(0.5), np.float16(0.1), np.int64(3), np.uint8(200)),
    *(np.bool_(True), np.array(0.5), np.array([0.5]), np.longdouble(0.5), np.datetime64("2020")),
]
WRAPS = [
    lambda event, odd: event,
    lambda event, odd: events.SelfComposedDpEvent(event, odd),
    lambda event, odd: events.ComposedDpEvent([event, GAUSSIAN]),
    lambda event, odd: events.ComposedDpEvent(odd),
    lambda event, odd: events.PoissonSampledDpEvent(odd, event),
    lambda event, odd: events.PoissonSampledDpEvent(0.1, event),
    lambda event, odd: events.SampledWithoutReplacementDpEvent(odd, 3, event),
    lambda event, odd: events.SampledWithReplacementDpEvent(9, odd, event),
    lambda event, odd: events.RepeatAndSelectDpEvent(event, odd, 1.0),
    lambda event, odd: events.AllocatedDpEvent(event, 2),
]
ASKED = [
    lambda event, odd, how: accountants.epsilon(event, delta=1e-5, **how),
    lambda event, odd, how: accountants.epsilon(event, delta=0, **how),
    lambda event, odd, how: accountants.delta(event, epsilon=odd, **how),
    lambda event, odd, how: accountants.log_delta(event, epsilon=0.1, **how),
    lambda event, odd, how: accountants.Account(**how).compose(event).epsilon(odd),
    lambda event, odd, how: accountants.PrivacyFilter(epsilon=5.0, delta=0, **how).cost(event),
]
# Their prices take seconds.
QUICK = [
    each
    for each in EXAMPLES
    if not isinstance(each, events.CorrelatedGaussianDpEvent | events.ShuffledEpochsDpEvent)
]


def odd_event(draw):
    """Return an event of which one number is odd, perhaps within another of which one is odd."""
    event = draw.choice(QUICK)
    names = [field.name for field in attrs.fields(type(event))]
    if names and draw.random() < 0.7:
        event = attrs.evolve(event, **{draw.choice(names): draw.choice(ODD)})
    return draw.choice(WRAPS)(event, draw.choice(ODD))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_odd_events_are_answered_or_refused_in_a_sentence(seed):
    draw, refusals = random.Random(seed), []
    for _ in range(80):
        try:
            event = odd_event(draw)
        except Exception:  # dp-accounting's own checks of its events
            continue
        how = {"neighboring_relation": draw.choice(RELATIONS)}
        try:
            found = draw.choice(ASKED)(event, draw.choice([*ODD, 1e-9, 0.3]), how)
        except (ValueError, TypeError, DpcalError) as error:
            refusals.append((event, error))
        except dp_accounting.UnsupportedEventError:
            continue
        else:
            assert not math.isnan(found), event
    for event, error in refusals:
        plain = type(error) in (ValueError, TypeError, NoiseOutOfRange)
        assert plain or isinstance(error, DpcalError), (event, error)
        assert str(error).rstrip().endswith("."), (event, error)
