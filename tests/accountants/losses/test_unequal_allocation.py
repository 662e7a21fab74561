"""Random allocation to batches that differ: quadrature, equal batches, and brackets."""

import pytest
from _integrals import allocation

from dpcal import accountants, calibrate
from dpcal.accountants import events
from dpcal.errors import UnsupportedEvent

EQUAL = events.SelfComposedDpEvent(events.RandomAllocationDpEvent(1.0, 100), 10)


def epochs_of(groups, epochs=1):
    return events.SelfComposedDpEvent(events.UnequalAllocationDpEvent(groups), epochs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "other", "epsilon"),
    [
        ((1.0, 0.3), (2.0, 0.7), 1.5),
        ((1.0, 0.9), (1.0, 0.1), 0.1),
        ((0.5, 0.2), (3.0, 0.8), 1.5),
    ],
)
def test_two_batches_against_quadrature(one, other, epsilon):
    truth = max(allocation((one, other), epsilon, points=200_001).values())
    (sigma, p), (rho, q) = one, other
    event = events.UnequalAllocationDpEvent(((sigma, 1, p), (rho, 1, q)))
    found = accountants.delta(event, epsilon=epsilon)
    assert found.lower == pytest.approx(truth, rel=1e-10)
    assert found.lower <= found.upper < found.lower * (1 + 1e-9)


@pytest.mark.slow
def test_batches_that_are_alike_are_those_of_equal_allocation():
    """Noise that differs in the last digits is inverted in ball arithmetic, from two tables."""
    nearly = epochs_of(((1.0, 30, 0.3), (1 + 1e-14, 70, 0.7)), 10)
    named = epochs_of(((1.0, 30, 0.3), (1.0, 70, 0.7), (3.0, 5, 0.0)), 10)
    beside = events.dpsgd(sampling_probability=0.05, noise_multiplier=2.0, steps=30)
    found, same, exact = (
        accountants.epsilon(events.ComposedDpEvent([each, beside]), delta=1e-5)
        for each in (nearly, named, EQUAL)
    )
    assert same == exact
    assert "balls" in found.method
    assert found.lower == pytest.approx(exact, rel=1e-9)
    assert found.upper == pytest.approx(exact, rel=1e-9)


@pytest.mark.slow
def test_beside_other_mechanisms_and_of_a_replaced_record_it_has_a_bracket():
    epochs = epochs_of(((3.0, 50, 0.25), (4.0, 50, 0.75)), 10)
    laplace = events.LaplaceDpEvent(1000.0)
    alone = accountants.epsilon(epochs, delta=1e-5)
    beside = accountants.epsilon(events.ComposedDpEvent([epochs, laplace]), delta=1e-5)
    assert beside.lower < alone < beside.upper
    replaced = accountants.epsilon(epochs, delta=1e-5, neighboring_relation="replace-one")
    assert 1.4 * alone < replaced.lower < replaced.upper < 3 * alone


@pytest.mark.slow
def test_noise_of_epochs_with_a_short_last_batch():
    """1,050 records in batches of 100: the last batch is drawn half as often."""

    def event(sigma):
        return epochs_of(((sigma, 10, 1000 / 1050), (sigma, 1, 50 / 1050)), 20)

    sigma = calibrate.noise_multiplier(event, epsilon=2.0, delta=1e-5)
    assert 2 - 1e-5 < accountants.epsilon(event(sigma), delta=1e-5).upper <= 2
    # It lies between eleven equal batches and ten.
    less, more = (
        accountants.epsilon(
            events.SelfComposedDpEvent(events.RandomAllocationDpEvent(sigma, m), 20), delta=1e-5
        )
        for m in (11, 10)
    )
    assert less < 2 < more


@pytest.mark.parametrize(
    ("groups", "error", "reason"),
    [
        (((1.0, 2, 0.5),), ValueError, "groups must have probabilities that add up to 1"),
        (((0.01, 2, 0.5), (1.0, 2, 0.5)), UnsupportedEvent, "least 0.05, got 0.01"),
    ],
)
def test_bad_groups_are_named(groups, error, reason):
    with pytest.raises(error, match=reason):
        accountants.epsilon(events.UnequalAllocationDpEvent(groups), delta=1e-5)
