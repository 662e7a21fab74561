"""Random allocation: values of 50-digit arithmetic, brute force, closed forms, and draws."""

import math
from itertools import pairwise

import flint
import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from dpcal import accountants
from dpcal._precision import workprec
from dpcal.accountants import events
from dpcal.accountants.characteristic import epsilon_bounds, log_delta_bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion import put_rays
from dpcal.accountants.inversion.contour import Contour
from dpcal.accountants.inversion.parity import log_delta_by_parity
from dpcal.accountants.inversion.strategy import invert
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses import allocation_rays
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.allocation_powers import Circle, Recurrence
from dpcal.accountants.losses.allocation_rays import log_cumulants, log_moments
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.accountants.rounding import UNIT
from dpcal.errors import UnsupportedEvent


def epochs_of(sigma, batches, epochs):
    return events.SelfComposedDpEvent(events.RandomAllocationDpEvent(sigma, batches), epochs)


@pytest.mark.parametrize(
    ("batches", "value"),
    [
        (2, -0.0250604105180254037176 - 0.1052972232559920876005j),
        (3, 0.0535370984911119131566 - 0.2016658797649704453699j),
        (5, 0.2373575825717217752987 - 0.2751339880000166114802j),
        (100, 0.9333430689194762391706 - 0.0480633618105014816610j),
        (1000, 0.9929616029768361477129 - 0.0051215621392219327343j),
    ],
)
def test_transform_of_fifty_digits(batches, value):
    # E L^q at q = -1/2 + 3i, sigma = 1, by mpmath with other rays and other m.
    found, error = log_moments(1.0, batches, -0.5, np.array([3.0]))
    assert abs(np.exp(found[0]) - value) <= 1e-15 + error[0] * 1.5
    assert error[0] < 4e-12


@pytest.mark.parametrize(
    ("t", "batches", "q", "value"),
    [
        (0.5, 20, 2.2 + 9.0j, 0.561996753589637 + 0.119527202070317j),
        (2.0, 1000, 1.7 + 2.5j, 0.875824900344538 + 0.0758890286953851j),
        (0.4, 300, -20 + 15.0j, 1.04139220440559 - 0.186964280028994j),
    ],
)
def test_transform_right_and_far_left_of_the_poles(t, batches, q, value):
    # In 25 digits, along another ray and with other orders, each c_j by a sum of its own.
    found, errors = log_moments(t, batches, q.real, np.linspace(0, q.imag, 5))
    assert abs(np.exp(found[-1]) - value) <= 2e-14 + errors[-1] * abs(np.exp(found[0]))
    assert errors[-1] < 1e-11


def whole_moment(t, batches, m):
    """Return log E L^m by Miller's recurrence in 40 digits."""
    with mpmath.workdps(40):
        c = [
            mpmath.exp(j * (j - 1) * mpmath.mpf(t) ** 2 / 2) / mpmath.factorial(j)
            for j in range(m + 1)
        ]
        d = [mpmath.mpf(1)]
        for k in range(1, m + 1):
            d.append(sum((j * batches - k + j) * c[j] * d[k - j] for j in range(1, k + 1)) / k)
        return float(mpmath.log(d[m] * mpmath.factorial(m) / mpmath.mpf(batches) ** m))


@pytest.mark.parametrize(
    ("t", "batches", "m"),
    [(0.2, 1000, 40), (0.1, 500, 100), (0.05, 100, 250), (0.01, 20, 150), (0.1, 10**6, 200)],
)
def test_moments_of_high_orders_on_a_circle(t, batches, m):
    exact, power = whole_moment(t, batches, m), Circle(t, batches, m)
    terms = power.scales[:, None]
    (value,), (rounded,) = power.log_coefficient(terms)
    left_out = math.exp(float(power.log_error(terms, 0 * terms)[0]) - exact)
    assert left_out < 1e-22
    assert abs(value.real - exact) <= math.exp(rounded - exact) * UNIT + left_out < 1e-10
    # A term's error of one billionth changes the coefficient by no more than the bound.
    errors = np.full_like(terms, 1e-9)
    (moved,), _ = power.log_coefficient(terms + errors)
    bound = math.exp(float(power.log_error(terms, errors)[0]) - exact)
    assert abs(math.expm1(moved.real - value.real)) <= bound


@pytest.mark.parametrize(("t", "batches", "a"), [(0.1, 10**5, 60.4), (0.3, 10**6, 40.3)])
def test_a_transform_is_the_same_on_a_circle_and_by_recurrences(monkeypatch, t, batches, a):
    u = np.linspace(0, 3 * a, 12)
    values, errors = log_moments(t, batches, a, u)
    few = lambda t, M, a, u: (m := math.ceil(a) + 1 + round(math.sqrt(u)), Recurrence(t, M, m))  # noqa: E731
    monkeypatch.setattr(allocation_rays, "_power", few)
    others, other_errors = log_moments(t, batches, a, u)
    gaps = np.abs(np.exp(values - values[0]) - np.exp(others - values[0]))
    assert (gaps <= errors + other_errors).all()
    assert errors.max() < 1e-9


@pytest.mark.parametrize(
    ("sigma", "batches", "epochs", "epsilon"),
    [
        (30.0, 1600, 10, 0.006),
        (20.0, 100, 10, 0.06),
        (10.0, 3000, 20, 0.03),
        (8.0, 10**5, 500, 0.02),
    ],
)
def test_narrow_losses_on_both_sides_of_the_poles(sigma, batches, epochs, epsilon):
    """Removing by its own contours, at steep tilts, and by put-call parity from those of adding."""
    narrow = Direction("remove", ((Allocation(sigma, batches, "remove"), epochs),))
    parity = log_delta_by_parity(narrow, epsilon)
    own = invert(Total(narrow.parts), epsilon).log_bounds(epsilon)
    assert max(own.lower, parity.lower) <= min(own.upper, parity.upper)
    assert own.upper - own.lower < 1e-3


@pytest.mark.parametrize("t", [0.1, 1.0, 2.0])
@pytest.mark.parametrize("batches", [1, 2, 7, 1000, 10**6])
def test_first_moments_are_closed_forms(t, batches):
    for power, exact in ((0, 0.0), (1, 0.0), (2, math.log1p(math.expm1(t * t) / batches))):
        moments, error = log_cumulants(t, batches, float(power))
        assert abs(moments[0] - exact) <= error < 1e-9


# Epsilons of a removed and an added record, and delta at 0, in 400-bit arithmetic on two lines and
# rays each; the last three, of steep tilts, on one line.
REFERENCE = [
    (1.0, 2, 1, 1e-5, 3.6973852125403908, 3.0797325884857525, 0.29776222519356194),
    (1.0, 2, 5, 1e-5, 8.844221816619083, 8.01421566841147, 0.6086163022552604),
    (1.0, 3, 4, 1e-5, 6.621879731211442, 5.675965436440251, 0.48446989177807526),
    (1.0, 5, 20, 1e-5, 13.028920455479824, 11.724723725930588, 0.7594990808065226),
    (2.0, 10, 10, 1e-5, 2.1420731080510196, 2.1042637416527925, 0.20834730622098088),
    (1.0, 100, 1, 1e-5, 0.6209396716197821, 0.4219534733183197, 0.05141635457460817),
    (1.0, 100, 10, 1e-5, 1.701498435829424, 1.5477272966384723, 0.16238107231209029),
    (1.0, 100, 10, 1e-6, 1.9642696129974044, 1.7516154452005046, 0.16238107231209029),
    (1.0, 100, 10, 1e-10, 3.0880582397353775, 2.403880155105722, 0.16238107231209029),
    (1.0, 100, 100, 1e-5, 6.043530373981586, 5.846819725933495, 0.48335924672627467),
    (2.0, 100, 100, 1e-5, 2.1406927513740204, 2.1359790233504956, 0.20993677870435634),
    (4.0, 100, 1000, 1e-5, 3.4013202065284993, 3.401040052850608, 0.3119283575622929),
    (0.8, 117, 1, 1e-5, 1.2604127412281525, 0.5472597646937709, 0.0684336355443079),
    (0.8, 117, 10, 1e-5, 2.664724789207845, 2.0794836968837833, 0.2169029427505775),
    (0.8, 117, 100, 1e-5, 8.887362670181709, 8.18554743878447, 0.6170788726199051),
    (1.737, 100, 10, 1e-5, 0.7213216270338898, 0.7141598433144751, 0.07884580812155155),
    (0.7048, 1000, 10, 1e-5, 1.17345200045318, 0.8803778245113942, 0.10001055074054724),
    (1.4289, 1000, 100, 1e-5, 0.9327230911828241, 0.9307293906472224, 0.09999929803303195),
    (10.0, 100, 100, 1e-5, 0.34159171850306436, 0.3415875055452884, 0.0399764165912535),
    (40.0, 117, 1000, 1e-6, 0.2839163132665068, 0.2839162954715565, 0.029155986418150297),
    (1.0, 1000, 100, 1e-12, 2.853994114179855, 2.806088635166196, 0.1640049376717993),
    (6.0, 42, 1, 1e-12, 0.1614582517950875, 0.1612102070413126, None),
    (40.0, 2, 20, 2e-11, 0.471285205058738, 0.4712840109427685, None),
    (3.0, 400_000, 2000, 1e-12, 0.15076197491563348, 0.1507615179067225, None),
]
LONGER = [
    (0.5, 1000, 1, 1e-5, 3.1341522060564646, 0.4975188186157175, 0.0742338557047562),
    (0.5, 1000, 10, 1e-5, 5.060073514793869, 2.097160699174089, 0.2462931055956072),
    (0.7085, 10000, 100, 1e-5, 0.943390036624657, 0.9230260343386061, 0.0999959729971959),
    (1.0, 10000, 1000, 1e-6, 1.8365314188351418, 1.8344306916941338, 0.1641749251230868),
    (1.0, 1000000, 10000, 1e-6, 0.5301592273411375, 0.5301419909889087, 0.05225717323152306),
    (0.5, 100000, 100, 1e-8, 2.942029045908447, 1.1275902177884363, 0.091440271882634),
    (0.3, 1000, 5, 1e-5, 25.245851874025703, 6.209903681955394, 0.7303330133459837),
    (0.5, 100, 50, 1e-5, 27.507712564942352, 17.63247999807747, 0.9253698866038962),
]
EITHER = [*REFERENCE, *(pytest.param(*row, marks=pytest.mark.study) for row in LONGER)]


@pytest.mark.parametrize(
    ("sigma", "batches", "epochs", "delta", "removed", "added", "variation"), EITHER
)
def test_epsilon_of_high_precision(sigma, batches, epochs, delta, removed, added, variation):
    found = accountants.epsilon(epochs_of(sigma, batches, epochs), delta=delta)
    assert found.upper - found.lower < 1e-8 * found.upper
    digits = 2e-13  # fourteen digits
    pair = decompose(epochs_of(sigma, batches, epochs), "add-or-remove-one").directions
    for direction, exact in zip(pair, (removed, added), strict=True):
        bounds = epsilon_bounds(direction, math.log(delta))
        assert bounds.lower * (1 - digits) <= exact <= bounds.upper * (1 + digits)
        assert bounds.upper < exact * (1 + 1e-8)
        if variation is not None:
            at_zero = log_delta_bounds(direction, 0.0)
            assert at_zero.lower - digits <= math.log(variation) <= at_zero.upper + digits
    assert found.lower * (1 - digits) <= max(removed, added) <= found.upper * (1 + digits)


@pytest.mark.parametrize("seed", [2, 5, 13])
def test_a_change_that_costs_less_has_no_larger_lower_end(seed):
    rng = np.random.default_rng(seed)
    low, high = np.log([0.3, 2, 1, 1e-12]), np.log([50, 1e5, 1e3, 1e-3])
    sigma, batches, epochs, delta = (float(x) for x in np.exp(rng.uniform(low, high)))
    batches, epochs = round(batches), round(epochs)
    upper = accountants.epsilon(epochs_of(sigma, batches, epochs), delta=delta).upper
    for cheaper, at in (
        (epochs_of(sigma * 1.01, batches, epochs), delta),
        (epochs_of(sigma, batches + 1 + batches // 50, epochs), delta),
        (epochs_of(sigma, batches, max(1, epochs - 1)), delta),
        (epochs_of(sigma, batches, epochs), 1.05 * delta),
    ):
        found = accountants.epsilon(cheaper, delta=at)
        assert found.lower <= upper
        assert found.upper - found.lower < 1e-6 * found.upper


@pytest.mark.parametrize(
    ("sigma", "batches", "epochs", "delta"),
    [(0.13, 54, 200, 1e-7), (0.1, 100, 1, 1e-6), (0.06, 6, 40, 1e-7)],
)
def test_little_noise_lies_between_closed_forms(sigma, batches, epochs, delta):
    """L is at least Y / M, of the record's own batch; and M batches cost no more than one."""
    found = accountants.epsilon(epochs_of(sigma, batches, epochs), delta=delta)
    known = events.SelfComposedDpEvent(events.GaussianDpEvent(sigma), epochs)
    most = float(accountants.epsilon(known, delta=delta))
    assert (most - epochs * math.log(batches)) * (1 - 1e-12) <= found.upper
    assert found.upper - found.lower < 1e-8 * found.upper
    assert found.upper < most


@pytest.mark.parametrize("seed", range(6))
def test_a_block_of_nodes_has_the_values_of_single_ones(seed):
    rng = np.random.default_rng(seed)
    t, batches = math.exp(rng.uniform(-3, 1)), int(math.exp(rng.uniform(1, 9)))
    a = float(rng.choice([-1, 1]) * math.exp(rng.uniform(-1, 3)))
    u = np.linspace(0, 40 * rng.uniform(), 30)
    values, errors = log_moments(t, batches, a, u)
    size = math.exp(log_cumulants(t, batches, a)[0][0])
    for place in range(0, 30, 7):
        alone, error = log_moments(t, batches, a, u[place : place + 1])
        distance = abs(np.exp(values[place]) - np.exp(alone[0])) / size
        assert distance <= errors[place] + error[0] < 1e-6


@pytest.mark.parametrize(
    ("sigma", "batches", "c"), [(0.1, 2000, 0.4), (0.13, 54, 0.05), (0.2, 1000, 0.3), (0.3, 3, 0.2)]
)
def test_transforms_fall_as_their_bounds_say(sigma, batches, c):
    loss = Allocation(sigma, batches, "remove")
    t = np.array([0.05, 0.2, 1.0, 3.0])
    values, errors = loss.nodes(c, t)
    size = float(loss.values(c)[0][0])
    assert (np.exp(values.real - size) <= np.exp(loss.log_decay(c, t)) + errors).all()
    assert loss.log_decay(c, t)[-1] < -2


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(
    ("sigma", "batches", "c", "far"),
    [(0.382, 121_606, 2.612, 300.0), (0.3, 10_000, 0.4, 90.0), (0.6, 70_000, 12.0, 900.0)],
)
def test_lines_of_large_signals_alone_bound_the_transform(sigma, batches, c, far, direction):
    loss = Allocation(sigma, batches, direction)
    u = np.geomspace(1.0, far, 12)
    (log_f, *_), error = loss.values(c)
    values, errors = loss.nodes(c, u)
    bounds = loss.log_decay(c, u)
    # What is left of a value without its error lies below the bound.
    sure = np.exp(values.real - log_f - error) - errors
    assert (sure <= np.exp(bounds)).all()
    # Moving every signal, or none, gives far less.
    assert bounds[-1] < 1.2 * -(far**2) / (2 * batches * sigma**2)


def test_the_line_moves_as_a_normal_law_of_the_same_variance():
    # A narrow law: exp(-u^2 v / 2), v the variance of L, up to half of the exponent.
    sigma, batches = 0.7, 1_000_000
    loss, v = Allocation(sigma, batches, "add"), math.expm1(0.7**-2) / 1_000_000
    u = np.array([8.0, 10.0]) / math.sqrt(v)
    falls = loss.log_decay(1 / math.sqrt(v), u)
    assert (falls >= -1.01 * u * u * v / 2).all()
    assert (falls <= -0.5 * u * u * v / 2).all()


def test_contours_of_little_noise_and_many_batches_are_short():
    total = Total(((Allocation(0.174, 220_000, "remove"), 1),))
    assert Contour(total, 0.94, 33.66).nodes < 500


def test_sums_in_fixed_point_contain_those_of_all_numbers_in_the_balls():
    rng = np.random.default_rng(3)

    def ball(radius):
        # Digits below a unit of fixed point, which are cut off.
        return flint.arb(rng.normal() * 1e-3, radius)

    for radius in (0.0, 1e-17):
        with workprec(60):
            tables = [[flint.acb(ball(radius), ball(radius)) for _ in range(9)] for _ in range(3)]
            weights = [ball(radius) for _ in range(3)]
            found = put_rays._sliding(tables, weights, 7)
        for sign in (-1, 0, 1):
            with workprec(300):
                edges = [x.mid() + sign * x.rad() for x in weights]
                for row, table in zip(found, tables, strict=True):
                    corners = [
                        flint.acb(x.real.mid() + sign * x.real.rad(), x.imag.mid() + x.imag.rad())
                        for x in table
                    ]
                    for k, value in enumerate(row):
                        exact = sum(corners[k + 2 - j] * edges[j] for j in range(3))
                        assert value.contains(exact)
                        assert value.rad() < 1e-18 + 0.1 * radius


def test_a_delta_that_nearly_underflows_has_narrow_bounds():
    found = accountants.epsilon(epochs_of(4.0, 1000, 100), delta=1e-300)
    assert found.upper - found.lower < 1e-8 * found.upper
    # The sum over an epoch is a Gaussian mechanism.
    total = events.GaussianDpEvent(4.0 * math.sqrt(1000))
    least = accountants.epsilon(events.SelfComposedDpEvent(total, 100), delta=1e-300)
    assert least.lower < found.lower


def in_forty_digits(t, batches, power, u=0.0):
    """Return E L^power of two batches, power = a + i u, by a two-dimensional rule.

    With S and D the sum and the difference of both normals over sqrt(2), log L is t S / sqrt(2) -
    t^2 / 2 + log cosh(t D / sqrt(2)): the mean over S is a closed form.
    """
    assert batches == 2
    with mpmath.workdps(40):
        q, t = mpmath.mpc(power, u), mpmath.mpf(t)
        step = mpmath.mpf(1) / 32
        total = mpmath.mpc(0)
        for k in range(-600, 601):
            d = k * step
            total += mpmath.exp(-d * d / 2 + q * mpmath.log(mpmath.cosh(t * d / mpmath.sqrt(2))))
        total *= step / mpmath.sqrt(2 * mpmath.pi)
        return complex(total * mpmath.exp(q * q * t * t / 4 - q * t * t / 2))


@pytest.mark.parametrize(("t", "a", "u"), [(6.0, 1.1, 0.7), (9.0, 1.05, 0.3), (6.0, -0.4, 0.9)])
def test_two_batches_of_little_noise_in_forty_digits(t, a, u):
    values, errors = log_moments(t, 2, a, np.array([0.0, u]))
    size = in_forty_digits(t, 2, a)
    exact = in_forty_digits(t, 2, a, u)
    assert abs(math.expm1(values[0].real - math.log(size.real))) <= errors[0] + 1e-14
    assert abs(np.exp(values[1]) - exact) <= (errors[1] + 1e-13) * size.real
    assert errors.max() < 1e-10


def test_two_batches_against_quadrature():
    # One of two batches, three epochs: the trapezoid rule for the law of an epoch's loss, rounded
    # to a fine grid, is within its step of the truth.
    x = np.linspace(-9, 10, 1901)
    first, second = np.meshgrid(x, x, indexing="ij")
    q = (norm.pdf(first) * norm.pdf(second) * (x[1] - x[0]) ** 2).ravel()
    loss = np.log(0.5 * (np.exp(first - 0.5) + np.exp(second - 0.5))).ravel()
    step = 1e-3
    places = np.round(loss / step).astype(int)
    low = places.min()
    law = np.bincount(places - low, q)
    for _ in range(2):
        law = np.convolve(law, np.bincount(places - low, q))
    ratio = np.exp((np.arange(len(law)) + 3 * low) * step)
    exact = float((law * np.maximum(ratio - math.exp(2.0), 0)).sum())
    found = accountants.delta(epochs_of(1.0, 2, 3), epsilon=2.0)
    assert abs(found.upper / exact - 1) < 3 * step
    assert found.upper / found.lower - 1 < 1e-9


def test_draws_of_a_hundred_batches():
    # 40,000 draws without the record, twenty epochs: a normal interval of five deviations.
    generator = np.random.default_rng(0)
    loss = np.zeros(40_000)
    for _ in range(20):
        x = generator.standard_normal((40_000, 50))
        loss += np.log(np.exp(x / 1.5 - 0.5 / 1.5**2).mean(axis=1))
    gains = np.maximum(1 - np.exp(0.3 + loss), 0)
    error = 5 * gains.std() / 200
    _, adding = decompose(epochs_of(1.5, 50, 20), "add-or-remove-one").directions
    assert abs(gains.mean() - math.exp(log_delta_bounds(adding, 0.3).upper)) < error


def test_it_composes_with_other_mechanisms():
    poisson = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=100)
    gaussian = events.GaussianDpEvent(2.0)
    allocated = epochs_of(1.0, 20, 10)
    together = accountants.epsilon(
        events.ComposedDpEvent([allocated, poisson, gaussian]), delta=1e-6
    )
    assert together.upper - together.lower < 1e-8 * together.upper
    alone = accountants.epsilon(allocated, delta=1e-6)
    assert alone.upper < together.lower


@pytest.mark.parametrize(("sigma", "batches", "epochs"), [(66.5, 5, 2), (900.0, 40, 30)])
def test_much_noise_on_few_batches_is_nearly_gaussian(sigma, batches, epochs):
    """Every batch is drawn often: log L is normal but for terms of the order of 1 / sigma."""
    found = accountants.epsilon(epochs_of(sigma, batches, epochs), delta=1e-9)
    mu = math.sqrt(epochs * math.expm1(sigma**-2) / batches)
    assert found.upper - found.lower < 1e-8 * found.upper
    limit = accountants.epsilon(events.GaussianDpEvent(1 / mu), delta=1e-9)
    assert found.upper == pytest.approx(limit, rel=2e-3)


def test_rare_draws_of_little_noise_are_close():
    """A loss with two peaks: of all batches together, and of a record's own one."""
    found = accountants.epsilon(epochs_of(0.66, 31_000, 35), delta=1e-10)
    assert found.upper - found.lower < 1e-7 * found.upper


def test_different_epochs_in_balls_and_in_doubles():
    event = events.ComposedDpEvent([epochs_of(1.0, 100, 5), epochs_of(2.0, 50, 8)])
    for direction in decompose(event, "add-or-remove-one").directions:
        balls = log_delta_by_parity(direction, 1.5)
        doubles = invert(Total(direction.parts), 1.5).log_bounds(1.5)
        assert balls is not None
        assert balls.method == "contour in balls" != doubles.method
        assert max(balls.lower, doubles.lower) <= min(balls.upper, doubles.upper)
        assert max(balls.upper - balls.lower, doubles.upper - doubles.lower) < 1e-8


def test_one_draw_kept_for_three_epochs_is_an_epoch_with_less_noise():
    # 100,000 draws of three epochs without the record, five batches; five deviations of the mean.
    x = np.random.default_rng(0).standard_normal((100_000, 3, 5))
    ratio = np.exp(x / 2.0 - 0.5 / 2.0**2).prod(axis=1).mean(axis=1)
    gains = np.maximum(1 - math.exp(0.2) * ratio, 0)
    _, adding = decompose(epochs_of(2.0 / math.sqrt(3), 5, 1), "add-or-remove-one").directions
    error = 5 * gains.std() / math.sqrt(len(gains))
    assert abs(gains.mean() - math.exp(log_delta_bounds(adding, 0.2).upper)) < error < 0.01


def test_more_batches_cost_less():
    found = [accountants.epsilon(epochs_of(1.0, m, 30), delta=1e-6) for m in (1, 2, 3, 10, 40)]
    for fewer, more in pairwise(found):
        assert more.upper < fewer.lower
    assert found[0] == accountants.epsilon(
        events.SelfComposedDpEvent(events.GaussianDpEvent(1.0), 30), delta=1e-6
    )


def test_refusals_name_the_reason():
    with pytest.raises(UnsupportedEvent, match=r"Only accountant 'auto' prices .* by a bracket"):
        accountants.log_delta(
            epochs_of(1.0, 10, 1),
            epsilon=1,
            neighboring_relation="replace-one",
            accountant="characteristic",
        )
    for event in (epochs_of(1.0, 0, 1), epochs_of(-1.0, 10, 1), epochs_of(math.nan, 10, 1)):
        with pytest.raises(ValueError, match="must be"):
            accountants.epsilon(event, delta=1e-5)
    with pytest.raises((ValueError, TypeError), match="batches"):
        accountants.epsilon(epochs_of(1.0, 2.5, 1), delta=1e-5)


def test_an_epoch_with_hardly_any_noise_lies_between_one_batch_and_a_known_one():
    sigma, batches, epochs = 0.04, 1000, 5
    run = events.SelfComposedDpEvent(events.RandomAllocationDpEvent(sigma, batches), epochs)
    found = accountants.epsilon(run, delta=1e-5)
    known = accountants.epsilon(
        events.SelfComposedDpEvent(events.GaussianDpEvent(sigma), epochs), delta=1e-5
    )
    alone = accountants.epsilon(
        events.dpsgd(sampling_probability=1e-3, noise_multiplier=sigma, steps=epochs), delta=1e-5
    )
    assert 0 < found.lower <= alone.upper
    # In every epoch the mean of L exceeds that of a single batch over the number of batches.
    assert known.lower - epochs * math.log(batches) <= found.upper <= known.upper * (1 + 1e-12)
