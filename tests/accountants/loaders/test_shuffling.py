"""Shuffled epochs, and replaced records of allocated ones: brackets around values of other ways.

tests/data/allocation_and_shuffle.json has both ends of shuffled epochs by numpy and ball
arithmetic. What is not in it is computed here, by quadrature on the plane and from closed forms.
"""

import itertools
import math

import numpy as np
import pytest
from _integrals import TABLES, each_row, worse
from scipy.stats import norm

from dpcal import accountants, calibrate
from dpcal.accountants import events
from dpcal.accountants.characteristic import log_delta_bounds
from dpcal.accountants.inversion.puts import Put
from dpcal.accountants.loaders.attacks import attacks
from dpcal.accountants.loaders.shuffling import reduction
from dpcal.accountants.losses.allocation import MixedAllocation
from dpcal.accountants.mechanisms.decompose import decompose

TABLE = TABLES["shuffle"]
ZERO_OUT = {"neighboring_relation": "replace-special"}
REPLACED = {"neighboring_relation": "replace-one"}
shuffled = events.ShuffledEpochsDpEvent
QUICK = {(0.8, 117, 100), (4.0, 100, 100), (10.0, 1000, 20)}


def allocated(sigma, batches, epochs):
    return events.SelfComposedDpEvent(events.RandomAllocationDpEvent(sigma, batches), epochs)


def known(sigma, epochs):
    return events.SelfComposedDpEvent(events.GaussianDpEvent(sigma), epochs)


def sizes(row):
    return row["sigma"], row["batches"], row["epochs"]


@pytest.mark.slow
@each_row(TABLE, lambda row: sizes(row) in QUICK)
def test_both_ends_are_those_of_the_table(row):
    found = accountants.epsilon(shuffled(*sizes(row)), delta=row["delta"], **ZERO_OUT)
    lower = max(*row["lower_max"], *row["lower_sum"])
    # The lower end rises as the grids of its attacks refine.
    assert lower * (1 - 1e-3) <= found.lower <= lower * (1 + 3e-3)
    assert found.lower < found.upper
    assert found.method.startswith("bracket")
    if "upper" in row:
        # Another search of alpha ends lower, by little, and never above; it gains in some rows in
        # which the table has known batches.
        least = 0.95 if "guess" in row else 0.9
        assert least * row["upper"] <= found.upper <= row["upper"] * (1 + 1e-3)
        assert accountants.epsilon(allocated(*sizes(row)), delta=row["delta"]) < found.lower


@pytest.mark.parametrize("row", [row for row in TABLE if "guess" in row])
def test_the_probability_of_a_clone_is_the_largest_that_its_guess_allows(row):
    found = reduction(*sizes(row), row["delta"], row["guess"])
    # The table tried steps of a hundredth of its logarithm.
    assert row["alpha"] * (1 - 1e-4) <= found.chance <= row["alpha"] * 1.0101


def plane(sigma, present, blank, weights=(1, 1), points=801):
    """Return masses of two batches' answers, the record's batch drawn by weight."""
    x = np.linspace(-8 * sigma - 1, 8 * sigma + 2, points)
    area = (x[1] - x[0]) ** 2 / sum(weights)

    def law(point):
        a, b = (norm.pdf(x, at, sigma) for at in point)
        return (weights[0] * np.outer(a, b) + weights[1] * np.outer(b, a)) * area

    return law(present), law(blank)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma", "truths", "lower", "theorem", "no_gain"),
    [
        (1.0, (4.37343, 3.69739, 2.94323, 3.69739), 4.37308, 4.38026, 4.37718),
        (2.0, (1.91946, 1.46195, 1.35647, 1.46195), 1.91476, 1.98400, 1.99309),
        (5.0, (0.55775, 0.50084, 0.49698, 0.50084), 0.55324, 0.70056, 0.72552),
    ],
)
def test_two_batches_against_quadrature(sigma, truths, lower, theorem, no_gain):
    """The other record contributes -1, 0, 1/2 or 1: -1 is the worst of them."""
    found = accountants.epsilon(shuffled(sigma, 2, 1), delta=1e-5, **ZERO_OUT)
    for other, truth in zip((-1, 0, 0.5, 1), truths, strict=True):
        pair = plane(sigma, (1, other), (0, other))
        assert worse(*pair, truth * (1 - 3e-5)) > 1e-5 > worse(*pair, truth * (1 + 3e-5))
        assert truth <= found.upper * (1 + 3e-5)
    assert lower * (1 - 1e-3) <= found.lower <= truths[0] * (1 + 1e-5)
    assert found.upper <= min(theorem, no_gain) * (1 + 1e-3)
    assert accountants.epsilon(known(sigma, 1), delta=1e-5) == pytest.approx(no_gain, rel=1e-5)


@pytest.mark.parametrize(("sigma", "batches"), [(7.0, 582), (0.5, 2)])
@pytest.mark.parametrize("delta", [1e-5, 1e-14])
def test_the_largest_answer_proves_no_more_than_its_law(sigma, batches, delta):
    """Likelihoods of the largest answer without the record are in order: tests are half-lines."""
    c = np.linspace(-12 * sigma, 12 * sigma, 400_001)
    others = (batches - 1) * norm.logcdf(c / sigma)
    present, blank = (np.exp(norm.logcdf((c - at) / sigma) + others) for at in (2, 1))
    lower = attacks(sigma, batches, 1)[1].epsilon(delta)
    assert delta * (1 - 1e-4) <= (blank - math.exp(lower) * present).max()


@pytest.mark.slow
def test_delta_at_an_epsilon_of_the_table():
    found = accountants.delta(shuffled(10.0, 1000, 20), epsilon=0.0567454, **ZERO_OUT)
    assert 0 < found.lower < 1e-5
    assert 0.8e-5 < found.upper < 1.05e-5
    # One below all doubles is that of known batches.
    assert accountants.delta(shuffled(5.0, 100, 9), epsilon=3000, **ZERO_OUT).upper < 1e-300


@pytest.mark.slow
def test_an_upper_end_at_a_large_delta_is_not_above_that_at_a_smaller_one():
    run = shuffled(4.0, 117, 10)
    large, small = (accountants.epsilon(run, delta=each, **ZERO_OUT) for each in (0.1, 0.03))
    assert large.upper < small.upper < 0.1


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_a_smaller_last_batch_costs_less_than_equal_ones_and_more_than_one_more(epsilon):
    """Two of three records in the first batch, one in the second: by quadrature on the plane."""
    exact = worse(*plane(1.0, (2, 0), (1, 0), weights=(2, 1)), epsilon)
    run = events.ShuffledEpochsDpEvent(1.0, 1, 1, remainder=True)
    found = accountants.delta(run, epsilon=epsilon, **ZERO_OUT)
    assert found.lower < exact * 1.001
    assert exact * 0.999 < found.upper


@pytest.mark.parametrize("relation", ["replace-one", "replace-special"])
def test_one_batch_is_a_gaussian_alone_and_beside_another_answer(relation):
    how, beside = {"neighboring_relation": relation}, events.GaussianDpEvent(6.0)
    exact = events.ComposedDpEvent([known(3.0, 2), beside])
    for run in (shuffled(3.0, 1, 2), allocated(3.0, 1, 2)):
        both = events.ComposedDpEvent([run, events.NoOpDpEvent(), beside])
        for event, truth in ((run, known(3.0, 2)), (both, exact)):
            for ask, at in (
                (accountants.epsilon, {"delta": 1e-5}),
                (accountants.delta, {"epsilon": 1}),
            ):
                found, ends = (ask(x, **at, **how) for x in (event, truth))
                assert found.upper == pytest.approx(ends.upper, rel=1e-9)
                assert found.lower <= ends.upper


@pytest.mark.study
def test_a_shuffle_beside_an_answer_costs_more_than_each_and_less_than_known_batches():
    run, beside = shuffled(10.0, 2, 1), events.GaussianDpEvent(6.0)
    most = events.ComposedDpEvent([known(10.0, 1), beside])
    together, alone, other, most = (
        accountants.epsilon(each, delta=1e-5, **ZERO_OUT)
        for each in (events.ComposedDpEvent([run, beside]), run, beside, most)
    )
    assert max(alone.lower, other.lower) <= together.lower <= together.upper <= most.upper


@pytest.mark.slow
def test_noise_and_epochs_are_solved_for_by_the_upper_end():
    target = {"epsilon": 2.0, "delta": 1e-5}
    sigma = calibrate.noise_multiplier(lambda at: shuffled(at, 30, 10), **target, **ZERO_OUT)
    assert accountants.epsilon(shuffled(sigma, 30, 10), delta=1e-5, **ZERO_OUT).upper <= 2.0
    assert accountants.epsilon(shuffled(0.99 * sigma, 30, 10), delta=1e-5, **ZERO_OUT).upper > 2.0
    # A replaced record: Gaussian answers of mu = 2 sqrt(E) / 10.
    mu = 1 / calibrate.noise_multiplier(events.GaussianDpEvent, **target)
    epochs = calibrate.steps(lambda epochs: shuffled(10.0, 4, epochs), **target, **REPLACED)
    assert epochs == math.floor((5 * mu) ** 2)


# -- random numbers of batches, of which a shuffle is made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma", "numbers", "epsilon"),
    [(2.0, ((3, 0.25), (10, 0.5), (40, 0.25)), 1.0), (1.0, ((1, 0.1), (7, 0.9)), 3.0)],
)
def test_random_numbers_of_batches_cost_the_mean_of_all_pairs(sigma, numbers, epsilon):
    """Numbers are told: delta of two epochs is the mean over those of both."""
    added = MixedAllocation(sigma, numbers[0][0], "add", numbers)
    put = Put(((added, 2),), most=epsilon, nats=60.0, seconds=20.0)
    for side, bounds in enumerate((put.removed(epsilon), put.added(epsilon))):
        exact = 0.0
        for (m, p), (k, q) in itertools.product(numbers, repeat=2):
            both = events.ComposedDpEvent([allocated(sigma, m, 1), allocated(sigma, k, 1)])
            # Two batches of one each are the same in both directions.
            pair = decompose(both, "add-or-remove-one").directions
            direction = pair[side * (len(pair) - 1)]
            exact += p * q * math.exp(log_delta_bounds(direction, epsilon).upper)
        assert bounds[1] - bounds[0] < 1e-12 * bounds[1]
        assert bounds[0] == pytest.approx(exact, rel=1e-10)


# -- replaced records


@pytest.mark.parametrize(
    ("substitute", "truth"),
    [(-1, 0.28621), (-0.8, 0.23149), (-0.5, 0.15734), (0, 0.05921), (0.5, 0.00363)],
)
def test_a_replaced_record_of_two_batches(substitute, truth):
    """The pair of +1 against -1 is the worst, and the bracket holds it."""
    exact = worse(*plane(1.0, (1, 0), (substitute, 0)), 1.0)
    assert exact == pytest.approx(truth, abs=1e-5)
    found = accountants.delta(allocated(1.0, 2, 1), epsilon=1.0, **REPLACED)
    assert exact <= found.upper
    assert found.lower <= 0.28622
    if substitute == 0:
        blank = accountants.delta(allocated(1.0, 2, 1), epsilon=1.0)
        assert float(blank) == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize(
    ("at", "truth", "error"), [(2.0, 8.49e-4, 0.034), (2.5, 6.90e-5, 0.06), (3.0, 3.61e-6, 0.12)]
)
def test_a_replaced_record_of_a_hundred_batches_by_tilted_draws(at, truth, error):
    found = accountants.delta(allocated(1.0, 100, 10), epsilon=at, **REPLACED)
    assert found.lower <= truth * (1 + error)
    assert truth * (1 - error) <= found.upper


@pytest.mark.slow
def test_epsilon_and_log_delta_of_a_replaced_record():
    run = allocated(1.0, 100, 10)
    found = accountants.epsilon(run, delta=1e-5, **REPLACED)
    blank = accountants.epsilon(run, delta=1e-5, **ZERO_OUT)
    assert blank < found.lower < 2 * blank < found.upper
    far = accountants.log_delta(allocated(3.0, 20, 2), epsilon=60.0, **REPLACED)
    assert -math.inf < far.lower < far.upper < -745


def test_an_epoch_of_any_sum_has_a_bracket():
    run = events.AllocatedDpEvent(events.DiscreteLaplaceDpEvent(0.5, 1), 5)
    found = accountants.epsilon(run, delta=1e-5, **REPLACED)
    blank = accountants.epsilon(run, delta=1e-5, **ZERO_OUT)
    # A replaced record in a known batch costs 1: it moves the sum by 2.
    assert blank.lower <= found.lower < found.upper <= 1.0 + 1e-12


@pytest.mark.parametrize(
    ("sigma", "batches", "epochs", "lower"),
    [(0.8, 117, 1, 8.44475), (2.0, 100, 20, 2.45169), (10.0, 1000, 20, 0.0867659)],
)
def test_a_replaced_record_of_a_shuffle(sigma, batches, epochs, lower):
    """Others and the substitute contribute -1: an allocation with half the noise."""
    found = accountants.epsilon(shuffled(sigma, batches, epochs), delta=1e-5, **REPLACED)
    halved = accountants.epsilon(allocated(sigma / 2, batches, epochs), delta=1e-5)
    for end in (found.lower, float(halved)):
        assert end == pytest.approx(lower, rel=1e-5)
    most = accountants.epsilon(known(sigma, epochs), delta=1e-5, **REPLACED)
    assert found.upper == pytest.approx(most, rel=1e-9)
