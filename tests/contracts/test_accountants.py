"""What every way to answer epsilon and delta owes: one suite, asked of all of them alike.

dp-accounting's own suite, for what it calls an accountant, is in
``tests/accountants/test_dp_accounting_suite.py``.
"""

import functools
import math
import re
from dataclasses import replace
from itertools import pairwise

import mpmath
import pytest
from contracts._methods import METHODS, RELATION, Run

from dpcal.errors import BackendRefused, UnsupportedEvent

# Rounding of a question that is asked back.
ROUNDING = 1e-9
DELTAS = (1e-2, 1e-5)
EPSILONS = (0.5, 2.0)

each_method = pytest.mark.parametrize("method", METHODS, ids=str)


def asked_once(method):
    """Return a method that remembers its answers: tests ask it the same questions of one run."""
    epsilon, delta = functools.cache(method.epsilon), functools.cache(method.delta)
    return replace(method, epsilon=epsilon, delta=delta)


KEPT = [asked_once(method) for method in METHODS]
each_method_that_remembers = pytest.mark.parametrize("method", KEPT, ids=str)


def gaussian_delta(mu, epsilon):
    """Balle and Wang (2018), Theorem 8, at 40 digits."""
    with mpmath.workdps(40):
        first = mpmath.ncdf(mu / 2 - epsilon / mu)
        return first - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.slow
@each_method_that_remembers
def test_answers_are_intervals_that_name_their_relation(method):
    for answer in (method.epsilon(method.run, 1e-5), method.delta(method.run, 1.0)):
        assert 0 <= answer.lower <= answer.upper < math.inf
        assert answer.relation in (RELATION, None)
    assert method.delta(method.run, 0.0).upper <= 1


@pytest.mark.slow
@each_method_that_remembers
@pytest.mark.parametrize("delta", DELTAS)
def test_delta_at_the_epsilon_of_a_delta_is_that_delta(method, delta):
    epsilon = method.epsilon(method.run, delta)
    back = method.delta(method.run, epsilon.upper)
    assert back.lower <= delta * (1 + ROUNDING)
    if epsilon.upper > 0:
        assert math.log(back.upper / delta) <= method.gap * max(1, -math.log(delta))


@pytest.mark.slow
@each_method_that_remembers
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_epsilon_at_the_delta_of_an_epsilon_is_that_epsilon(method, epsilon):
    delta = method.delta(method.run, epsilon)
    if not 0 < delta.upper < 1:
        pytest.skip("no delta in (0, 1) belongs to this epsilon")
    back = method.epsilon(method.run, delta.upper)
    assert back.lower <= epsilon * (1 + ROUNDING)
    assert back.upper <= epsilon * (1 + method.gap)


@pytest.mark.slow
@each_method_that_remembers
def test_more_noise_costs_no_more(method):
    answers = [
        (method.epsilon(run, 1e-5).upper, method.delta(run, 1.0).upper)
        for run in (
            replace(method.run, noise_multiplier=factor * method.run.noise_multiplier)
            for factor in (1.0, 1.1, 1.5)
        )
    ]
    for less, more in pairwise(answers):
        assert all(a <= b * (1 + ROUNDING) for a, b in zip(more, less, strict=True))


@pytest.mark.slow
@each_method_that_remembers
def test_more_steps_cost_no_less(method):
    answers = [
        (method.epsilon(run, 1e-5).upper, method.delta(run, 1.0).upper)
        for run in (replace(method.run, count=method.run.count * factor) for factor in (1, 2))
    ]
    assert all(a <= b * (1 + ROUNDING) for a, b in zip(*answers, strict=True))


@pytest.mark.slow
@each_method_that_remembers
def test_larger_samples_cost_no_less(method):
    if not method.samples:
        pytest.skip("prices no sampling")
    q = method.run.sampling_probability
    answers = [
        (method.epsilon(run, 1e-5).upper, method.delta(run, 1.0).upper)
        for run in (replace(method.run, sampling_probability=q * factor) for factor in (1.0, 1.5))
    ]
    assert all(a <= b * (1 + ROUNDING) for a, b in zip(*answers, strict=True))


@pytest.mark.slow
@each_method_that_remembers
def test_a_larger_delta_costs_no_more(method):
    small, large = (method.epsilon(method.run, delta) for delta in (1e-5, 1e-2))
    assert large.upper <= small.upper * (1 + ROUNDING)
    near, far = (method.delta(method.run, epsilon) for epsilon in (0.5, 1.0))
    assert far.upper <= near.upper * (1 + ROUNDING)


WITHOUT_SAMPLING = [item for item in METHODS if not item.name.startswith("correlated")]


@pytest.mark.parametrize("method", WITHOUT_SAMPLING, ids=str)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_encloses_the_closed_form_of_a_gaussian(method, epsilon):
    run = Run(noise_multiplier=2.0, sampling_probability=1.0, count=4)
    truth = gaussian_delta(run.mu, epsilon)
    delta = method.delta(run, epsilon)
    assert delta.lower <= truth <= delta.upper
    asked = float(truth)
    found = method.epsilon(run, asked)
    assert found.lower <= epsilon * (1 + ROUNDING)
    assert epsilon <= found.upper * (1 + ROUNDING)


@each_method
@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("epsilon", 1.0),
        ("epsilon", -1e-5),
        ("epsilon", math.nan),
        ("delta", -1.0),
        ("delta", math.nan),
        ("delta", math.inf),
    ],
)
def test_bad_arguments_get_a_sentence(method, question, value):
    named = {"epsilon": "delta", "delta": "epsilon"}[question]
    with pytest.raises(ValueError, match=rf"{named} must be .*, got {value!r}\."):
        getattr(method, question)(method.run, value)


@each_method
def test_delta_0_is_refused_where_losses_have_no_bound(method):
    with pytest.raises((UnsupportedEvent, BackendRefused, ValueError), match=r"delta.*0.*\."):
        method.epsilon(method.run, 0.0)


REFUSALS = [(item, *refused) for item in METHODS for refused in item.refuses]


@pytest.mark.parametrize(("method", "event", "named"), REFUSALS, ids=str)
def test_what_no_theorem_covers_is_refused_in_sentences(method, event, named):
    for ask, value in ((method.epsilon, 1e-5), (method.delta, 1.0)):
        with pytest.raises((UnsupportedEvent, BackendRefused)) as refusal:
            ask(event, value)
        sentence = str(refusal.value)
        assert re.fullmatch(r"[A-Z].*\.", sentence, re.DOTALL)
        assert named in sentence
