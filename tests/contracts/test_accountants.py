"""What every way to answer epsilon and delta owes: one suite, asked of all of them alike.

dp-accounting's own suite, for what it calls an accountant, is in
``tests/accountants/test_dp_accounting_suite.py``.
"""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from _integrals import exact_gaussian_delta
from contracts._methods import METHODS, Run

from dpcal.errors import BackendRefused, UnsupportedEvent

# Rounding of a question that is asked back.
ROUNDING = 1e-9
EPSILONS = (0.5, 2.0)

each_method = pytest.mark.parametrize("method", METHODS, ids=str)


@pytest.mark.slow
@each_method
def test_epsilon_and_delta_are_one_bound_read_both_ways(method):
    for delta in (1e-2, 1e-5):
        lower, upper = method.epsilon(method.run, delta)
        assert 0 <= lower <= upper < math.inf
        low, high = method.delta(method.run, upper)
        assert low <= delta * (1 + ROUNDING)
        if upper > 0:
            assert math.log(high / delta) <= method.gap * max(1, -math.log(delta))
    for epsilon in EPSILONS:
        _, high = method.delta(method.run, epsilon)
        if 0 < high < 1:
            lower, upper = method.epsilon(method.run, high)
            assert lower <= epsilon * (1 + ROUNDING)
            assert upper <= epsilon * (1 + method.gap)


@pytest.mark.slow
@each_method
def test_less_noise_more_steps_larger_samples_and_smaller_deltas_cost_no_less(method):
    run = method.run
    q = run.sampling_probability
    changed = {
        "noise": [replace(run, noise_multiplier=x * run.noise_multiplier) for x in (1.5, 1.1, 1)],
        "steps": [replace(run, count=run.count * factor) for factor in (1, 2)],
        "samples": [replace(run, sampling_probability=q * x) for x in (1.0, 1.5) if method.samples],
    }
    for name, runs in changed.items():
        answers = [(method.epsilon(each, 1e-5)[1], method.delta(each, 0.5)[1]) for each in runs]
        for fewer, more in pairwise(answers):
            assert all(a <= b * (1 + ROUNDING) for a, b in zip(fewer, more, strict=True)), name
    assert method.epsilon(run, 1e-2)[1] <= method.epsilon(run, 1e-5)[1] * (1 + ROUNDING)
    assert method.delta(run, 2.0)[1] <= method.delta(run, 0.5)[1] * (1 + ROUNDING)
    assert method.delta(run, 0.0)[1] <= 1


@each_method
def test_encloses_the_closed_form_of_a_gaussian(method):
    if method.name.startswith("correlated"):
        pytest.skip("prices samples alone")
    run = Run(noise_multiplier=2.0, sampling_probability=1.0, count=4)
    for epsilon in EPSILONS:
        truth = exact_gaussian_delta(run.mu, epsilon)
        low, high = method.delta(run, epsilon)
        assert low <= truth <= high
        lower, upper = method.epsilon(run, float(truth))
        assert lower <= epsilon * (1 + ROUNDING)
        assert epsilon <= upper * (1 + ROUNDING)


@each_method
def test_delta_0_is_refused_where_losses_have_no_bound(method):
    with pytest.raises((UnsupportedEvent, BackendRefused, ValueError), match=r"delta.*0.*\."):
        method.epsilon(method.run, 0.0)
