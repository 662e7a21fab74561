"""The last iterate alone: against exact laws, a quadratic programme, and published tables."""

import math

import numpy as np
import pytest
from _integrals import POINTS
from scipy.optimize import minimize

from dpcal.accountants import epsilon, events, gdp_mu
from dpcal.accountants.mechanisms.last_iterate import amplitude
from dpcal.calibrate.persons import for_group
from dpcal.errors import UnsupportedEvent

RELATIONS = ["add-or-remove-one", "replace-special", "replace-one"]


@pytest.mark.parametrize(("c", "steps"), [(0.9, 10), (0.99, 60), (0.5, 5), (0.0, 7), (1.0, 40)])
def test_it_is_the_exact_parameter_of_a_quadratic(c, steps):
    # w <- c w + noise of deviation 1, and on one of both data sets + 1: the last iterate is normal.
    shift = variance = 0.0
    for _ in range(steps):
        shift, variance = c * shift + 1, c * c * variance + 1
    assert amplitude(steps, c) == pytest.approx(shift / math.sqrt(variance), rel=1e-11)
    assert amplitude(steps, c) >= shift / math.sqrt(variance)


def programme(steps, c, diameter):
    """Least sum of squares of the theorem's shifts a_k, by a general solver, over every start."""
    found = math.inf
    for last in range(1, steps + 1):
        start = 0.0 if last == steps else diameter
        if not math.isfinite(start):
            continue
        powers = np.tril(c ** np.subtract.outer(np.arange(last), np.arange(last)).clip(0))

        def distances(a, powers=powers, start=start, last=last):
            return powers @ (1 - a) + start * c ** np.arange(1, last + 1)

        made = minimize(
            lambda a: a @ a,
            np.linspace(0.5, 1.5 + start / last, last),
            jac=lambda a: 2 * a,
            bounds=[(0, None)] * last,
            constraints=[
                {"type": "eq", "fun": lambda a, d=distances: d(a)[-1]},
                {"type": "ineq", "fun": lambda a, d=distances: d(a)[:-1]},
            ],
            method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 300},
        )
        left = distances(made.x)
        if abs(left[-1]) < 1e-9 and left.min() > -1e-9:
            found = min(found, made.fun)
    return math.sqrt(found)


@pytest.mark.parametrize(
    ("steps", "c", "diameter"),
    [(6, 0.8, math.inf), (7, 1.0, 0.4), (7, 0.9, 1.2), (8, 0.97, 0.3), (5, 0.7, 3.0)],
)
def test_it_is_the_least_that_the_theorem_proves(steps, c, diameter):
    assert amplitude(steps, c, diameter) == pytest.approx(programme(steps, c, diameter), rel=1e-6)


def test_noise_that_is_saved_by_the_strength_of_the_regulariser():
    for l2, row in POINTS["saved_noise"]:
        kappa = (0.25 + l2) / l2
        c = (kappa - 1) / (kappa + 1)
        found = [math.sqrt(t) / amplitude(t, c) for t in (10, 30, 60, 100, 300, 1000)]
        assert found == pytest.approx(row, abs=6e-4, rel=3e-4)
        assert amplitude(10**7, c) <= math.sqrt(kappa) * (1 + 1e-11)


@pytest.mark.parametrize("c", [0.3, 0.9, 0.9999, 1.0])
@pytest.mark.parametrize("diameter", [0.1, 3.0, 200.0, math.inf])
def test_more_steps_never_cost_less_nor_more_than_all_iterates(c, diameter):
    found = [amplitude(t, c, diameter) for t in (1, 2, 3, 10, 11, 100, 1000, 10**6)]
    assert found == sorted(found)
    assert found[0] == pytest.approx(1, rel=1e-11)
    assert amplitude(100, c, diameter) <= 10 * (1 + 1e-11)
    if diameter == 200.0 and c == 1:
        assert found[-1] == pytest.approx(math.sqrt(4 * 200), rel=1e-9)


@pytest.mark.parametrize("relation", RELATIONS)
def test_its_price_is_that_of_one_gaussian(relation):
    event = events.LastIterateDpEvent(20.0, 60, 25 / 27)
    one = events.GaussianDpEvent(20.0 / amplitude(60, 25 / 27))
    given = {"delta": 1e-6, "neighboring_relation": relation}
    assert epsilon(event, **given) == pytest.approx(epsilon(one, **given), rel=1e-9)
    # A replaced record moves steps twice as far, so that a ball is half as large beside it.
    ball = events.LastIterateDpEvent(20.0, 60, 1.0, 4.0)
    moved = 2 if relation == "replace-one" else 1
    same = events.GaussianDpEvent(20.0 / amplitude(60, 1.0, 4.0 / moved))
    assert epsilon(ball, **given) == pytest.approx(epsilon(same, **given), rel=1e-9)


def test_two_records_of_a_person_move_a_step_twice_as_far():
    event = events.LastIterateDpEvent(20.0, 60, 0.97, 12.0)
    pair = for_group(event, 2)
    # Exactly what a replaced record costs.
    both = epsilon(event, delta=1e-6, neighboring_relation="replace-one")
    assert epsilon(pair, delta=1e-6) == pytest.approx(both, rel=1e-9)


def test_a_gaussian_that_only_dominates_proves_no_lower_end():
    # One batch of many is told: its price is an upper end, which no part of it may prove attained.
    epoch = events.RandomAllocationDpEvent(0.049, 100_000)
    alone = epsilon(epoch, delta=1e-6)
    sampled = epsilon(events.PoissonSampledDpEvent(0.5, epoch), delta=1e-6)
    assert sampled.lower <= alone.lower < sampled <= alone
    risk = gdp_mu(epoch)
    assert risk.lower == 0.0 < risk == pytest.approx(1 / 0.049)
    with pytest.raises(UnsupportedEvent, match="from below"):
        epsilon(epoch, delta=1e-6, accountant="pld", two_sided=True)
    other = epsilon(events.RandomAllocationDpEvent(0.049, 10), delta=1e-3, accountant="prv")
    assert other.lower == 0.0 < other
