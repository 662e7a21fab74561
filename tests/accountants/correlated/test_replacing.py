"""A replaced record of a run by allocation: brackets around quadrature and draws of its pair."""

import math

import pytest

from dpcal import accountants, calibrate
from dpcal.accountants import events

REPLACED = {"neighboring_relation": "replace-one"}


def epochs_of(sigma, batches, epochs):
    epoch = events.RandomAllocationDpEvent(sigma, batches)
    return events.SelfComposedDpEvent(epoch, epochs)


@pytest.mark.parametrize(
    ("batches", "epochs", "epsilon", "truth", "error"),
    [
        # Two batches by quadrature on the plane; a hundred by tilted draws.
        (2, 1, 1.0, 0.28621, 1e-5),
        (100, 10, 2.0, 8.49e-4, 0.03),
        (100, 10, 3.0, 3.61e-6, 0.12),
    ],
)
def test_delta_of_the_pair_lies_in_the_bracket(batches, epochs, epsilon, truth, error):
    found = accountants.delta(epochs_of(1.0, batches, epochs), epsilon=epsilon, **REPLACED)
    assert found.lower <= truth * (1 + error)
    assert truth * (1 - error) <= found.upper
    assert found.method.startswith("bracket")


def test_epsilon_is_that_of_its_delta():
    run = epochs_of(1.0, 100, 10)
    found = accountants.epsilon(run, delta=1e-5, **REPLACED)
    assert found.lower < 2.84 < found.upper
    assert accountants.delta(run, epsilon=found.upper, **REPLACED).upper == pytest.approx(
        1e-5, rel=1e-4
    )
    blank = accountants.epsilon(run, delta=1e-5, neighboring_relation="replace-special")
    assert blank < found.lower < 2 * blank < found.upper


def test_log_delta_keeps_its_digits_far_out():
    run = epochs_of(3.0, 20, 2)
    asked = {"epsilon": 0.5, **REPLACED}
    log, plain = accountants.log_delta(run, **asked), accountants.delta(run, **asked)
    assert math.exp(log.upper) == pytest.approx(plain.upper, rel=1e-12)
    assert math.exp(log.lower) == pytest.approx(plain.lower, rel=1e-12)
    far = accountants.log_delta(run, epsilon=60.0, **REPLACED)
    assert -math.inf < far.lower < far.upper < -745


def test_an_epoch_of_any_sum_has_a_bracket():
    run = events.AllocatedDpEvent(events.DiscreteLaplaceDpEvent(0.5, 1), 5)
    found = accountants.epsilon(run, delta=1e-5, **REPLACED)
    blank = accountants.epsilon(run, delta=1e-5, neighboring_relation="replace-special")
    # A replaced record in a known batch costs 1: it moves the sum by 2.
    assert blank.lower <= found.lower < found.upper <= 1.0 + 1e-12


def test_one_batch_has_both_ends_of_a_gaussian_answer():
    run = events.ComposedDpEvent([epochs_of(3.0, 1, 4), events.GaussianDpEvent(2.0)])
    found = accountants.epsilon(run, delta=1e-6, **REPLACED)
    # mu^2 adds up: four answers at noise 3/2, and one at noise 1.
    exact = accountants.epsilon(events.GaussianDpEvent(1 / math.sqrt(16 / 9 + 1)), delta=1e-6)
    assert found.lower == pytest.approx(exact, rel=1e-9)
    assert found.upper == pytest.approx(exact, rel=1e-9)


@pytest.mark.slow
def test_noise_is_solved_for_by_the_upper_end():
    target = {"delta": 1e-5, **REPLACED}
    sigma = calibrate.noise_multiplier(lambda at: epochs_of(at, 20, 2), epsilon=2.0, **target)
    assert accountants.epsilon(epochs_of(sigma, 20, 2), **target).upper <= 2.0
    assert accountants.epsilon(epochs_of(0.999 * sigma, 20, 2), **target).upper > 2.0
