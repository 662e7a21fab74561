"""Random allocation: values of 400 bits and 50 digits, brute force, closed forms, and draws.

tests/data/allocation_and_shuffle.json has epsilons of a removed and an added record, and delta at
0, in 400-bit arithmetic on two lines and rays each.
"""

import math

import flint
import mpmath
import numpy as np
import pytest
from _integrals import TABLES, allocation, each_row, holds
from scipy.stats import norm

from dpcal import accountants, calibrate
from dpcal.accountants import events
from dpcal.accountants.characteristic import epsilon_bounds
from dpcal.accountants.inversion import put_rays
from dpcal.accountants.inversion.amplification import on_finite_laws
from dpcal.accountants.inversion.parity import epsilon_by_parity
from dpcal.accountants.losses.allocation import Allocation, Group, UnequalAllocation
from dpcal.accountants.mechanisms.decompose import decompose

LONG = {(0.5, 1000), (0.5, 100), (0.5, 100_000), (0.3, 1000), (1.0, 10**6), (1.0, 10_000)}


def epochs_of(sigma, batches, epochs):
    return events.SelfComposedDpEvent(events.RandomAllocationDpEvent(sigma, batches), epochs)


# -- transforms and moments


@pytest.mark.parametrize("noise", [0.7, 1.5, 8.0])
def test_means_of_one_batch_fall_below_their_bound(noise):
    """E exp(-z Y), Y = exp(t X - t^2 / 2), by the trapezoid rule."""
    x, z = np.linspace(-40.0, 40.0, 20_001), np.geomspace(0.01, 300.0, 50)
    density = norm.pdf(x) * (x[1] - x[0])
    means = np.exp(-np.outer(z, np.exp(x / noise - 0.5 / noise**2))) @ density
    falls, _ = put_rays._Sums(Group(noise, 1, 1.0), 0.0)._falls(z)
    assert (means <= np.exp(-falls) * (1 + 1e-9)).all()


def test_transforms_of_many_digits():
    for row in TABLES["transforms"] + TABLES["nodes"]:
        b, u = -row.get("a", -0.5), row.get("u", 3.0)
        if b > 0:
            loss = Allocation(1 / row.get("t", 1.0), row["batches"], "add")
            ray = put_rays.Ray(loss, b, u / 4, range(5), loss.log_mgf_bound(b), digits=60.0)
            found = ray.values()[-1]
            for part, exact in ((found.real, row["real"]), (found.imag, row["imag"])):
                # Digits that are not in the table.
                assert part.overlaps(flint.arb(f"{exact} +/- 1e-14")), row
                assert part.rad() < 1e-20, row


@pytest.mark.parametrize("sigma", [0.7, 3.0, 40.0])
@pytest.mark.parametrize("c", [0.5, 5.0, 20.0])
def test_moments_lie_above_those_of_balls_by_little(sigma, c):
    for law in (
        Allocation(sigma, 2, "add"),
        Allocation(sigma, 5000, "add"),
        UnequalAllocation.of((Group(sigma, 3, 0.25), Group(2 * sigma, 90, 0.75)), "add"),
    ):
        bound = law.log_mgf_bound(c)
        log_moment, mean, *_ = law.cumulants(c)[0]
        ray = put_rays.Ray(law, c, 1.0, range(1), bound, digits=60.0 + bound)
        exact = float(ray.values()[0].real.log())
        assert exact <= log_moment < exact + 2e-9 + 0.02 * exact * (log_moment == bound)
        more, less = law.cumulants([c * (1 + 1e-4), c * (1 - 1e-4)])[:, 0]
        if log_moment < 0.99 * bound:
            assert mean == pytest.approx((more - less) / (2e-4 * c), rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("batches", [1, 2, 7, 1000, 10**6])
def test_whole_moments_are_closed_forms(batches):
    for t in (0.1, 1.0, 2.0):
        a, m = math.exp(t * t), batches
        # E L^3 from three batches that are the same, of which two are, or of which none are.
        third = (m * a**3 + 3 * m * (m - 1) * a + m * (m - 1) * (m - 2)) / m**3
        exact = 0.0, math.log1p(math.expm1(t * t) / m), math.log(third)
        for c, value in enumerate(exact):
            halves = (Group(1 / t, m // 2, 0.5),) * 2 if m % 2 == 0 else (Group(1 / t, m, 1.0),)
            for law in (Allocation(1 / t, m, "remove"), UnequalAllocation.of(halves, "remove")):
                assert value - 1e-15 <= law.log_mgf_bound(float(c)) < value + 1e-8


@pytest.mark.parametrize(("t", "batches", "m"), [(0.2, 1000, 40), (0.1, 10**6, 200), (1.0, 9, 60)])
def test_whole_moments_of_high_orders_by_millers_recurrence(t, batches, m):
    with mpmath.workdps(40):
        c = [
            mpmath.exp(j * (j - 1) * mpmath.mpf(t) ** 2 / 2) / mpmath.factorial(j)
            for j in range(m + 1)
        ]
        d = [mpmath.mpf(1)]
        for k in range(1, m + 1):
            d.append(sum((j * batches - k + j) * c[j] * d[k - j] for j in range(1, k + 1)) / k)
        exact = float(mpmath.log(d[m] * mpmath.factorial(m) / mpmath.mpf(batches) ** m))
    found = Allocation(1 / t, batches, "remove").log_mgf_bound(m - 1.0)
    assert exact < found < exact + 1e-6


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_sum_beyond_the_range_of_doubles_is_left_without_a_warning():
    how = {"delta": 7.36e-12, "neighboring_relation": "replace-one"}
    one = accountants.epsilon(events.UnequalAllocationDpEvent(((0.5032, 9, 1.0),)), **how)
    same = accountants.epsilon(events.RandomAllocationDpEvent(0.5032, 9), **how)
    assert max(one.lower, same.lower) <= min(one.upper, same.upper)


# -- prices


@pytest.mark.slow
@each_row(
    TABLES["allocation"],
    lambda row: row in TABLES["allocation"][::2] and (row["sigma"], row["batches"]) not in LONG,
)
def test_values_of_high_precision(row):
    event = epochs_of(row["sigma"], row["batches"], row["epochs"])
    digits, ends = 2e-13, []  # fourteen digits
    pair = decompose(event, "add-or-remove-one").directions
    for direction, exact in zip(pair, (row["removed"], row["added"]), strict=False):
        found = epsilon_bounds(direction, math.log(row["delta"]))
        assert holds(found, exact, digits)
        assert found.upper < exact * (1 + 1e-8)
        ends.append(found)
    found = accountants.epsilon(event, delta=row["delta"])
    assert found.upper == max(each.upper for each in ends)
    if "total_variation" in row:
        at_zero = accountants.delta(event, epsilon=0.0)
        exact = row["total_variation"]
        assert holds(at_zero, exact, digits)
        # The bound of total variation by the variance of the likelihood ratio (Scarf 1958).
        t = 1 / row["sigma"]
        c = math.expm1(row["epochs"] * math.log1p(math.expm1(t * t) / row["batches"]))
        assert at_zero.upper <= (math.sqrt(c) / 2 if c <= 1 else c / (1 + c))


@pytest.mark.slow
def test_contours_in_balls_lie_between_finite_laws():
    groups = ((1.0, 30, 0.6), (3.0, 5, 0.4))
    for event in (
        events.ComposedDpEvent([epochs_of(1.0, 100, 5), epochs_of(2.0, 50, 8)]),
        events.ComposedDpEvent([unequal(groups, 3), events.GaussianDpEvent(2.0)]),
    ):
        for direction in decompose(event, "add-or-remove-one").directions:
            balls = epsilon_by_parity(direction, math.log(1e-6), most=1.0)
            laws = epsilon_bounds(on_finite_laws(direction), math.log(1e-6))
            assert laws.lower < balls.lower <= balls.upper < laws.upper < laws.lower * 1.02
            assert balls.upper - balls.lower < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma", "batches", "epochs", "delta"),
    [(0.13, 54, 200, 1e-7), (0.1, 100, 1, 1e-6), (0.06, 6, 40, 1e-7), (0.04, 1000, 5, 1e-5)],
)
def test_little_noise_lies_between_closed_forms(sigma, batches, epochs, delta):
    """L is at least Y / M, of the record's own batch; and M batches cost no more than one."""
    found = accountants.epsilon(epochs_of(sigma, batches, epochs), delta=delta)
    known = events.SelfComposedDpEvent(events.GaussianDpEvent(sigma), epochs)
    most = float(accountants.epsilon(known, delta=delta))
    assert (most - epochs * math.log(batches)) * (1 - 1e-12) <= found.upper <= most * (1 + 1e-12)
    # With hardly any noise, and for large epsilons, bounds are those of finite laws.
    assert 0 < found.upper - found.lower < 0.02 * found.upper or sigma < 0.05


@pytest.mark.parametrize(("sigma", "batches", "epochs"), [(66.5, 5, 2), (900.0, 40, 30)])
def test_much_noise_on_few_batches_is_nearly_gaussian(sigma, batches, epochs):
    """Every batch is drawn often: log L is normal but for terms of the order of 1 / sigma."""
    found = accountants.epsilon(epochs_of(sigma, batches, epochs), delta=1e-9)
    mu = math.sqrt(epochs * math.expm1(sigma**-2) / batches)
    assert found.upper - found.lower < 1e-8 * found.upper
    limit = accountants.epsilon(events.GaussianDpEvent(1 / mu), delta=1e-9)
    assert found.upper == pytest.approx(limit, rel=2e-3)


@pytest.mark.slow
def test_far_out_and_between_two_peaks_bounds_are_narrow():
    found = accountants.epsilon(epochs_of(8.0, 1000, 400), delta=1e-300)
    assert found.upper - found.lower < 1e-8 * found.upper
    # The sum over an epoch is a Gaussian mechanism.
    total = events.SelfComposedDpEvent(events.GaussianDpEvent(8.0 * math.sqrt(1000)), 400)
    assert accountants.epsilon(total, delta=1e-300).lower < found.lower
    # A loss with two peaks: of all batches together, and of a record's own one.
    found = accountants.epsilon(epochs_of(0.66, 31_000, 35), delta=1e-10)
    assert found.upper - found.lower < 1e-7 * found.upper


def cells(sigma, low, high, count):
    """Return the ends of cells of a normal answer, and their masses with means 0 and 1."""
    x = np.linspace(low, high, count) * sigma
    return x, np.diff(norm.cdf(x / sigma)), np.diff(norm.cdf((x - 1) / sigma))


@pytest.mark.slow
def test_an_epoch_beside_poisson_steps_and_an_answer_about_all():
    """Losses of a removed record are monotone in all answers: rounded down and up in each cell."""
    step, steps = 1e-4, 100
    poisson = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=steps)
    allocated, gaussian = events.RandomAllocationDpEvent(1.0, 2), events.GaussianDpEvent(2.0)
    found = accountants.epsilon(events.ComposedDpEvent([allocated, poisson, gaussian]), delta=1e-5)
    assert found.upper - found.lower < 1e-8 * found.upper
    for side, end in ((np.floor, 0), (np.ceil, 1)):
        # One of two batches: the record is in the first one, as the second is as likely.
        x, blank, present = cells(1.0, -8, 9, 3001)
        corner = x[end : len(x) - 1 + end]
        pair = np.logaddexp.outer(corner - 0.5, corner - 0.5) - math.log(2)
        laws = [(pair.ravel(), np.outer(present, blank).ravel(), 1)]
        x, blank, present = cells(1.0, -8, 9, 200_001)
        corner = x[end : len(x) - 1 + end]
        laws.append((np.log1p(0.01 * np.expm1(corner - 0.5)), 0.99 * blank + 0.01 * present, steps))
        x, _, present = cells(2.0, -8, 9, 200_001)
        laws.append((x[end : len(x) - 1 + end] / 4 - 1 / 8, present, 1))
        low, length, transform = 0, 1 << 19, 1.0
        for loss, mass, times in laws:
            places = side(loss / step).astype(int)
            low += times * int(places.min())
            law = np.fft.rfft(np.bincount(places - places.min(), mass), length)
            transform = transform * law**times
        total = np.fft.irfft(transform, length)
        # Losses beyond the length wrap around to the smallest ones, and are rare.
        losses = step * (low + np.arange(length))
        at = (found.upper, found.lower)[end]
        some = losses > at
        bound = -float((total[some] * np.expm1(at - losses[some])).sum())
        assert bound <= 1e-5 * (1 + 1e-6) if end == 0 else bound >= 1e-5 * (1 - 1e-6)
        assert bound == pytest.approx(1e-5, rel=0.1)


# -- batches that differ


def unequal(groups, epochs=1):
    return events.SelfComposedDpEvent(events.UnequalAllocationDpEvent(groups), epochs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "other", "epsilon"),
    [((1.0, 0.3), (2.0, 0.7), 1.5), ((1.0, 0.9), (1.0, 0.1), 0.1), ((0.5, 0.2), (3.0, 0.8), 1.5)],
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
    nearly = unequal(((1.0, 30, 0.3), (1 + 1e-14, 70, 0.7)), 10)
    named = unequal(((1.0, 30, 0.3), (1.0, 70, 0.7), (3.0, 5, 0.0)), 10)
    beside = events.dpsgd(sampling_probability=0.05, noise_multiplier=2.0, steps=30)
    found, same, exact = (
        accountants.epsilon(events.ComposedDpEvent([each, beside]), delta=1e-5)
        for each in (nearly, named, epochs_of(1.0, 100, 10))
    )
    assert same == exact
    assert "balls" in found.method
    assert found.lower == pytest.approx(exact, rel=1e-9)
    assert found.upper == pytest.approx(exact, rel=1e-9)


@pytest.mark.slow
def test_beside_other_mechanisms_and_of_a_replaced_record_it_has_a_bracket():
    epochs = unequal(((3.0, 50, 0.25), (4.0, 50, 0.75)), 10)
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
        return unequal(((sigma, 10, 1000 / 1050), (sigma, 1, 50 / 1050)), 20)

    sigma = calibrate.noise_multiplier(event, epsilon=2.0, delta=1e-5)
    assert 2 - 1e-5 < accountants.epsilon(event(sigma), delta=1e-5).upper <= 2
    # It lies between eleven equal batches and ten.
    less, more = (accountants.epsilon(epochs_of(sigma, m, 20), delta=1e-5) for m in (11, 10))
    assert less < 2 < more
