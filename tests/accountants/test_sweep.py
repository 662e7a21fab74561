"""Random points of the whole box of parameters: no answer raises, is NaN or on the unsafe side.

The checks are those of the larger study ``benchmarks.sweep``: tests that somebody could run, with
closed-form errors, from below; Renyi's bound at integer orders from above; ball arithmetic on both
sides where it is affordable.
"""

import math

import mpmath
import numpy as np
import pytest
from _integrals import density, integral, power
from flint import arb, ctx

from benchmarks import sweep
from dpcal.accountants import characteristic
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.contour import Contour
from dpcal.accountants.inversion.rare_losses import trimmed
from dpcal.accountants.inversion.strategy import invert_trimmed
from dpcal.accountants.inversion.tilts import epsilon_estimate, saddle_tilt
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.accountants.losses.truncation import trim

SEED, POINTS = 2027, 15
BALLS = (1, 1, 0, 0)  # proofs of a chunk's answers; those that come first in others take seconds


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(4))
def test_answers_hold_everywhere(chunk):
    checked = 0
    for index in range(chunk * POINTS, (chunk + 1) * POINTS):
        point = sweep.draw(SEED, index)
        # Compositions of several mechanisms are left to the study.
        if len(point.steps) > 1:
            continue
        answer = sweep.ask(point)
        # Where this takes one plain contour, a proof often can.
        due = checked < BALLS[chunk] and answer.method == "contour"
        found, asked = sweep.problems(point, answer, balls=due)
        checked += asked
        assert not found, (point, answer)
    assert checked >= BALLS[chunk]


@pytest.mark.slow
@pytest.mark.study
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("chunk", range(3))
def test_answers_hold_where_losses_have_no_exponentials(chunk):
    for index in range(chunk * 10, (chunk + 1) * 10):
        point = sweep.draw_with_little_noise(SEED, index)
        answer = sweep.ask(point)
        assert sweep.problems(point, answer) == ([], False), (point, answer)


def test_a_participation_that_cannot_be_missed_costs_its_probability():
    # The loss of a step that samples the record is 1250, give or take 50, against epsilon = 50.
    steps = ((1e-6, 0.02, 10**6),)
    answer = sweep.ask(sweep.Point(steps, 50.0, None))
    assert answer.upper == pytest.approx(math.log(-math.expm1(1e6 * math.log1p(-1e-6))), abs=1e-12)
    assert answer.upper - answer.lower < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "delta", "width"),
    [
        ([(1e-7 * (1 + i / 40), 0.3 + 0.005 * i, 5 + i) for i in range(40)], 1e-7, math.inf),
        # In layers, whose contours together have more points than those of a few losses may have.
        ([(1e-3, 0.5 + 0.0012 * i, 4) for i in range(250)], 1e-6, 1e-6),
    ],
)
def test_many_distinct_losses_of_which_few_are_large_have_both_ends(steps, delta, width):
    point = sweep.Point(tuple(steps), None, math.log(delta))
    answer = sweep.ask(point)
    assert 0 < answer.upper - answer.lower < width * answer.upper
    assert sweep.problems(point, answer) == ([], False)


def log_mgf(q, sigma, c):
    """log M(c) when removing, by integrals in balls of 128 bits."""
    with ctx.workprec(128):
        q, exponent = arb(q), 1 + arb(c)

        def integrand(x, analytic):
            excess = q * ((2 * x - 1) / (2 * arb(sigma) ** 2)).expm1()
            return density(x, sigma) * (
                power(1 + excess, exponent, analytic) - 1 - exponent * excess
            )

        ends = sorted(float(m + 14 * k * sigma) for m in (0, 1, exponent) for k in (-1, 0, 1))
        return float((1 + integral(integrand, ends).real).log())


LAWS = [(0.22, 0.35), (0.27, 2.36), (1e-3, 1.0)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("q", "sigma", "c"),
    [
        *((q, s, c) for q, s in LAWS for c in (1e-6, 1e-3, 0.5, 3.0)),
        (1e-3, 0.03, 1e-6),
        (1e-3, 0.03, 3.0),
        (0.3, 0.015, 1e-3),
    ],
)
def test_moments_keep_their_digits_at_small_tilts(q, sigma, c):
    # At a large epsilon, c epsilon and log M(c) cancel: what 1 + c rounds off would be missed.
    truth = log_mgf(q, sigma, c)
    loss = SampledGaussian(q, sigma, "remove")
    # Of so little noise a trimmed law has too many points.
    for law in (loss, trim(loss, -150.0)) if sigma > 0.1 else (loss,):
        # Losses near 1 / (2 sigma^2) are rounded themselves.
        assert abs(law.cumulants([c])[0, 0] / truth - 1) < 2e-14 + 1e-16 / sigma**2


@pytest.mark.slow
@pytest.mark.parametrize(("q", "sigma"), [(1 - 1e-12, 0.1), (1 - 1e-9, 0.05), (0.5, 0.1)])
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("c", [-0.45, -0.05])
def test_moments_hold_where_nearly_nothing_is_left_of_the_law(q, sigma, direction, c):
    # M(c) for c in (-1, 0) may be far below 1, where it is no small change of 1.
    exponent = 1 + c if direction == "remove" else -c

    def integrand(x, analytic):
        ratio = 1 - arb(q) + arb(q) * ((2 * x - 1) / (2 * arb(sigma) ** 2)).exp()
        return density(x, sigma) * power(ratio, arb(exponent), analytic)

    ends = sorted(m + 14 * k * sigma for m in (0, 0.5, 1, exponent) for k in (-1, 0, 1))
    truth = float(integral(integrand, ends).real.log())
    found = SampledGaussian(q, sigma, direction).cumulants([c])[0, 0]
    assert abs(found - truth) < 2e-14 * abs(truth) + 1e-16


@pytest.mark.slow
def test_trimmed_laws_agree_with_whole_ones():
    # Two inversions that share no tilt, lattice or node, wherever both exist: the intervals meet.
    rng = np.random.default_rng(5)
    compared = 0
    while compared < 60:
        q, sigma = 10 ** rng.uniform(-7, -0.2), 10 ** rng.uniform(-0.5, 2)
        parts = ((SampledGaussian(q, sigma, "remove"), int(10 ** rng.uniform(0.4, 8))),)
        total, log_delta = Total(parts), -(10 ** rng.uniform(0, 2.3))
        try:
            epsilon = epsilon_estimate(total, log_delta)
            if epsilon <= 0:
                continue
            contour = Contour(total, saddle_tilt(total, epsilon), epsilon)
        except OutOfReach:
            continue
        if contour.smoothing:
            continue
        whole = contour.log_bounds(epsilon)
        for gap, sharpness in ((-37.0, 1.0), (-22.0, 5.0), (-13.0, 8.0)):
            try:
                measure = trimmed(parts, log_delta + gap, sharpness)
                bounds = invert_trimmed(measure, epsilon).log_bounds(epsilon)
            except OutOfReach:
                continue
            compared += 1
            assert bounds.lower <= whole.upper
            assert whole.lower <= bounds.upper


def test_a_bulk_that_decides_is_priced_to_the_last_digit():
    # Steps that hardly ever see the record: delta is that of the bulk, and the saddle of
    # the whole law is that of jumps with a probability of exp(-1000).
    direction = Direction("remove", ((SampledGaussian(8.3e-8, 53.6, "remove"), 62_781),))
    bounds = characteristic.epsilon_bounds(direction, math.log(3e-11))
    assert bounds.method == "trimmed"
    assert bounds.upper - bounds.lower < 1e-9 * bounds.upper
    # The bulk is a sum of q (exp(u) - 1), nearly Gaussian: its delta by central limit, to 5%.
    deviation = 8.3e-8 * math.sqrt(62_781 * math.expm1(53.6**-2))
    a = bounds.upper / deviation
    with mpmath.workdps(20):
        tail = mpmath.npdf(a) - a * mpmath.ncdf(-a)
    assert float(deviation * tail) == pytest.approx(3e-11, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("index", [1140, 2637, 2778])
def test_many_losses_guessed_by_a_subset_cost_the_same(index, monkeypatch):
    # A subset says where to look, and nothing of the law there.
    point = sweep.draw(41, index)
    assert len(point.steps) == 200
    answer = sweep.ask(point)
    monkeypatch.setattr("dpcal.accountants.inversion.transform._SUBSET_FROM", 10**6)
    alone = sweep.ask(point)
    assert answer.upper == pytest.approx(alone.upper, rel=1e-9, abs=1e-12)
    assert max(answer.lower, alone.lower) <= min(answer.upper, alone.upper)
