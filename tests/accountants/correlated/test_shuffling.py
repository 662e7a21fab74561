"""Shuffled epochs: brackets around values of an independent script and of quadrature."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpcal import accountants, calibrate
from dpcal.accountants import events
from dpcal.accountants.characteristic import epsilon_bounds
from dpcal.accountants.correlated import shuffling
from dpcal.accountants.correlated.shuffling_below import attacks
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.puts import Put
from dpcal.accountants.inversion.strategy import invert
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.allocation import Allocation, MixedAllocation
from dpcal.errors import UnsupportedEvent

ZERO_OUT = {"neighboring_relation": "replace-special"}


@pytest.mark.parametrize(
    ("sigma", "batches", "epochs", "lower", "theorem"),
    [
        # The better attack, and the sharper form of the theorem, of numpy and ball arithmetic.
        (10.0, 1000, 20, 0.040975, 0.0567454),
        pytest.param(40.0, 117, 100, 0.068794, 0.0748469, marks=pytest.mark.study),
        (4.0, 100, 100, 1.077, 2.29278),
        pytest.param(2.0, 10_000, 10, 0.079166, 0.286276, marks=pytest.mark.study),
        (0.8, 117, 100, 66.239, 130.577),
    ],
)
def test_bracket_of_an_independent_script(sigma, batches, epochs, lower, theorem):
    run = events.ShuffledEpochsDpEvent(sigma, batches, epochs)
    found = accountants.epsilon(run, delta=1e-5, **ZERO_OUT)
    assert found.lower == pytest.approx(lower, rel=1e-3)
    # Every alpha and every guess hold: another search ends a little lower or higher.
    assert found.upper == pytest.approx(theorem, rel=0.01)
    assert found.method.startswith("bracket")


@pytest.mark.parametrize(("sigma", "worst"), [(1.0, 4.37343), (2.0, 1.91946), (5.0, 0.55775)])
def test_two_batches_lie_in_the_bracket(sigma, worst):
    # One epoch of two batches, the other record contributing -1, by quadrature on the plane.
    found = accountants.epsilon(events.ShuffledEpochsDpEvent(sigma, 2, 1), delta=1e-5, **ZERO_OUT)
    assert found.lower <= worst * (1 + 1e-5)
    assert worst * (1 - 1e-5) <= found.upper


def test_delta_at_the_epsilon_of_an_independent_script():
    run = events.ShuffledEpochsDpEvent(10.0, 1000, 20)
    found = accountants.delta(run, epsilon=0.0567454, **ZERO_OUT)
    assert 0 < found.lower < 1e-5
    assert 0.8e-5 < found.upper < 1.05e-5


def test_a_delta_below_all_doubles_is_that_of_known_batches():
    found = accountants.delta(events.ShuffledEpochsDpEvent(5.0, 100, 9), epsilon=3000, **ZERO_OUT)
    assert 0 <= found.upper < 1e-300


@pytest.mark.parametrize(
    ("batches", "epochs"), [(100, 100), pytest.param(2000, 10, marks=pytest.mark.study)]
)
def test_the_noise_of_a_shuffle_meets_its_target_by_the_upper_end(batches, epochs):
    def run(sigma):
        return events.ShuffledEpochsDpEvent(sigma, batches, epochs)

    target = {"delta": 1e-5, **ZERO_OUT}
    sigma = calibrate.noise_multiplier(run, epsilon=2.0, **target)
    assert shuffling.meets(run(sigma), epsilon=2.0, **target)
    assert not shuffling.meets(run(sigma * 0.998), epsilon=2.0 / 1.001, **target)
    # Of known batches it would be a Gaussian answer of mu = sqrt(E) / sigma.
    known = calibrate.noise_multiplier(events.GaussianDpEvent, epsilon=2.0, delta=1e-5)
    assert sigma < 0.5 * known * math.sqrt(epochs)


def test_attacks_prove_less_than_quadrature_and_little_less_than_finer_grids():
    """One epoch of two batches; and sums over many epochs, by convolutions of fine lattices."""
    for sigma, batches, epochs, low, high in (
        (1.0, 2, 1, 4.37308, 4.37343),
        (5.0, 2, 1, 0.55324, 0.55775),
        (40.0, 117, 100, 0.068759, 0.06891),
        (10.0, 1000, 20, 0.040973, 0.04100),
    ):
        found = max(each.epsilon(1e-5) for each in attacks(sigma, batches, epochs))
        assert low < found < high


def test_random_numbers_of_batches_are_mixed():
    """A law of one number is that number, and one of two lies between them."""
    single, mixed = (
        MixedAllocation(2.0, 10, "add", numbers)
        for numbers in (((10, 1.0),), ((10, 0.25), (30, 0.75)))
    )
    few, many = (Allocation(2.0, m, "add") for m in (10, 30))
    at = [
        epsilon_bounds(Direction("add", ((loss, 20),)), math.log(1e-6))
        for loss in (many, mixed, single, few)
    ]
    assert at[0].upper < at[1].lower < at[1].upper < at[2].lower
    assert at[2].lower <= at[3].upper
    assert at[3].lower <= at[2].upper
    # Means of one epoch: E Lambda^2, for both numbers in closed form.
    exact = sum(share * (1 + math.expm1(0.25) / m) for m, share in ((10, 0.25), (30, 0.75)))
    removing = MixedAllocation(2.0, 10, "remove", mixed.numbers)
    assert removing.cumulants([1.0])[0, 0] == pytest.approx(math.log(exact), abs=1e-12)


@pytest.mark.parametrize(
    ("sigma", "numbers", "epochs", "epsilon"),
    [(2.0, ((3, 0.25), (10, 0.5), (40, 0.25)), 5, 1.5), (1.0, ((1, 0.1), (7, 0.9)), 3, 3.0)],
)
def test_random_numbers_in_balls_are_those_of_contours(sigma, numbers, epochs, epsilon):
    """Both directions, the second from the first; probabilities may miss 1 by a rounding."""
    added, removed = (
        MixedAllocation(sigma, numbers[0][0], name, numbers) for name in ("add", "remove")
    )
    put = Put(((added, epochs),), most=epsilon, nats=60.0, seconds=20.0)
    for loss, bounds in ((added, put.added(epsilon)), (removed, put.removed(epsilon))):
        known = invert(Total(((loss, epochs),)), epsilon).log_bounds(epsilon)
        assert bounds[1] - bounds[0] < 1e-12 * bounds[1]
        assert math.exp(known.lower) < bounds[0] < bounds[1] < math.exp(known.upper)


def test_an_upper_end_at_a_large_delta_is_not_above_that_at_a_smaller_one():
    run = events.ShuffledEpochsDpEvent(4.0, 117, 10)
    large, small = (accountants.epsilon(run, delta=each, **ZERO_OUT) for each in (0.1, 0.03))
    assert large.upper < small.upper < 0.1


def test_one_batch_is_the_gaussian_mechanism():
    run = events.ShuffledEpochsDpEvent(2.0, 1, 9)
    exact = accountants.epsilon(events.GaussianDpEvent(2 / 3), delta=1e-6)
    assert accountants.epsilon(run, delta=1e-6, **ZERO_OUT) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(
    ("sigma", "batches", "epochs", "lower", "upper"),
    [
        (0.8, 117, 1, 8.44475, 13.2067),
        (2.0, 100, 20, 2.45169, 28.3735),
        (10.0, 1000, 20, 0.0867659, 3.84861),
    ],
)
def test_a_replaced_record_costs_more(sigma, batches, epochs, lower, upper):
    run = events.ShuffledEpochsDpEvent(sigma, batches, epochs)
    found = accountants.epsilon(run, delta=1e-5, neighboring_relation="replace-one")
    assert found.lower == pytest.approx(lower, rel=1e-5)
    assert found.upper == pytest.approx(upper, rel=1e-5)


def test_adding_a_record_is_refused():
    with pytest.raises(UnsupportedEvent, match="moves others"):
        accountants.epsilon(events.ShuffledEpochsDpEvent(10.0, 10, 1), delta=1e-5)


def test_a_smaller_last_batch_costs_less_than_equal_ones_and_more_than_one_more():
    """Two of three records in the first batch, one in the second: by quadrature on the plane."""
    x = np.linspace(-9.0, 11.0, 1001)
    cell = (x[1] - x[0]) ** 2

    def law(mean):
        one, rest = norm.pdf(x, mean), norm.pdf(x)
        return cell * (2 * np.outer(one, rest) + np.outer(rest, one)) / 3

    with_record, blank = law(2.0), law(1.0)
    for epsilon in (1.0, 3.0):
        exact = max(
            np.maximum(p - math.exp(epsilon) * q, 0).sum()
            for p, q in ((with_record, blank), (blank, with_record))
        )
        run = events.ShuffledEpochsDpEvent(1.0, 1, 1, remainder=True)
        found = accountants.delta(run, epsilon=epsilon, **ZERO_OUT)
        assert found.lower < exact * 1.001
        assert exact * 0.999 < found.upper


def test_epochs_with_known_batches_are_solved_for():
    """A replaced record: Gaussian answers of mu = 2 sqrt(E) / 10."""

    def run(epochs):
        return events.ShuffledEpochsDpEvent(10.0, 4, epochs)

    target = {"epsilon": 1.0, "delta": 1e-5, "neighboring_relation": "replace-one"}
    mu = 1 / calibrate.noise_multiplier(events.GaussianDpEvent, epsilon=1.0, delta=1e-5)
    assert calibrate.steps(run, **target) == math.floor((5 * mu) ** 2)


@pytest.mark.study
def test_epochs_are_solved_for_by_the_upper_end():
    def run(epochs):
        return events.ShuffledEpochsDpEvent(10.0, 117, epochs)

    found = calibrate.steps(run, epsilon=1.0, delta=1e-5, **ZERO_OUT)
    ends = [accountants.epsilon(run(E), delta=1e-5, **ZERO_OUT).upper for E in (found, found + 4)]
    assert ends[0] <= 1.0 < ends[1]


BESIDE = events.GaussianDpEvent(6.0)


@pytest.mark.parametrize("relation", ["replace-one", "replace-special"])
def test_one_batch_beside_another_answer_is_a_gaussian_beside_it(relation):
    run = events.ShuffledEpochsDpEvent(3.0, 1, 2)
    known = events.ComposedDpEvent(
        [events.SelfComposedDpEvent(events.GaussianDpEvent(3.0), 2), BESIDE]
    )
    both = events.ComposedDpEvent([run, events.NoOpDpEvent(), BESIDE])
    found = accountants.epsilon(both, delta=1e-5, neighboring_relation=relation)
    exact = accountants.epsilon(known, delta=1e-5, neighboring_relation=relation)
    assert found.upper == pytest.approx(exact.upper, rel=1e-12)
    alone = accountants.epsilon(run, delta=1e-5, neighboring_relation=relation)
    assert alone.lower <= found.lower <= exact.upper
    found = accountants.delta(both, epsilon=1.0, neighboring_relation=relation)
    exact = accountants.delta(known, epsilon=1.0, neighboring_relation=relation)
    assert found.upper == pytest.approx(exact.upper, rel=1e-9)
    assert found.lower <= exact.upper


@pytest.mark.study
def test_a_shuffle_beside_an_answer_costs_more_than_each_and_less_than_known_batches():
    """The pair of two batches is exact by quadrature; beside it, epsilons add at most."""
    run = events.ShuffledEpochsDpEvent(10.0, 2, 1)
    how = {"delta": 1e-5, "neighboring_relation": "replace-special"}
    together, alone, other = (
        accountants.epsilon(each, **how)
        for each in (events.ComposedDpEvent([run, BESIDE]), run, BESIDE)
    )
    known = accountants.epsilon(
        events.ComposedDpEvent([events.GaussianDpEvent(10.0), BESIDE]), **how
    )
    assert max(alone.lower, other.lower) <= together.lower <= together.upper <= known.upper
    # No data set needs less than one in which both are random allocation and the answer.
    allocated = events.ComposedDpEvent([events.RandomAllocationDpEvent(10.0, 2), BESIDE])
    assert accountants.epsilon(allocated, **how).lower <= together.upper
    # A shuffle beside nothing is itself.
    nothing = events.ComposedDpEvent([run, events.NoOpDpEvent()])
    assert accountants.epsilon(nothing, **how).upper == alone.upper


def test_two_shuffles_are_refused():
    runs = [events.ShuffledEpochsDpEvent(sigma, 10, 1) for sigma in (3.0, 4.0)]
    for event in (events.ComposedDpEvent(runs), events.SelfComposedDpEvent(runs[0], 2)):
        with pytest.raises(UnsupportedEvent, match="as a whole run"):
            accountants.epsilon(event, delta=1e-5, neighboring_relation="replace-one")


@pytest.mark.study
def test_a_claim_of_a_shuffle_composes_to_less_than_known_batches():
    run = events.ShuffledEpochsDpEvent(10.0, 1000, 20)
    both = events.ComposedDpEvent([run, events.GaussianDpEvent(5.0)])
    found = accountants.epsilon(both, delta=1e-5, neighboring_relation="replace-special")
    assert 0.7255 < found.lower < found.upper < 0.7911
