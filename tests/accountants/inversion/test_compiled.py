"""One compiled call against the readable contour, balls of 128 and more bits, and a stopwatch."""

import math
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from flint import acb, arb, ctx

from benchmarks import sweep
from dpcal import accountants
from dpcal._ext import question
from dpcal.accountants import events
from dpcal.accountants.answers import Bounds
from dpcal.accountants.certificates.enclosure import enclose
from dpcal.accountants.certificates.search.contour import choose_contour
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.solve import epsilon_on_contours
from dpcal.accountants.inversion.strategy import invert
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

SEED, POINTS, BALLS = 2030, 50, 2
KERNELS = Path(__file__).parents[3] / "_ext"
COMPILER = shutil.which("cc")
# The largest errors in units of 2^-52 at random arguments, beside long doubles.
FUNCTIONS = r"""
#include <stdio.h>
#include "law.h"

static unsigned long long state = 88172645463325252ULL;
static double uniform(double low, double high) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return low + (high - low) * ((double)(state >> 11) * 0x1p-53);
}
static double power(double low, double high) { return pow(10.0, uniform(low, high)); }
static double worst[7];
static void compare(int which, double found, long double truth, long double scale) {
    const double units = (double)(fabsl(found - truth) / scale / 0x1p-52L);
    worst[which] = units > worst[which] || isnan(units) ? units : worst[which];
}
static long double second(long double x) {
    long double sum = 0.0L, term = 0.5L * x * x;
    if (fabsl(x) > 1.5L)
        return expm1l(x) - x;
    for (int n = 3; n < 40; n++, term *= x / (n - 1))
        sum += term;
    return sum;
}

int main(void) {
    for (int row = 0; row < 40000; row++) {
        double x[8], y[8], z[8], a[8], b[8];
        dpcal_v *u = (dpcal_v *)x, *v = (dpcal_v *)y, *w = (dpcal_v *)z;
        dpcal_v *f = (dpcal_v *)a, *g = (dpcal_v *)b;
        for (int j = 0; j < 8; j++) {
            x[j] = row % 3 == 1 ? power(-20, 5) : -power(-16, -0.1);
            x[j] = row % 3 == 0 ? uniform(-0.8, 2.0) : x[j];
            y[j] = 1.0 + x[j];
        }
        for (size_t i = 0; i < 8; i += DPCAL_LANES_OF) {
            DPCAL_WIDEST(dpcal_log1p)(u + i, v + i, f + i);
        }
        for (int j = 0; j < 8; j++) {
            compare(0, a[j], log1pl(x[j]), fabsl(log1pl(x[j])));
            y[j] = power(-280, 280);
            x[j] = y[j] - 1.0;
        }
        for (size_t i = 0; i < 8; i += DPCAL_LANES_OF)
            DPCAL_WIDEST(dpcal_log1p)(u + i, v + i, f + i);
        for (int j = 0; j < 8; j++) {
            compare(1, a[j], logl(y[j]), fabsl(logl(y[j])));
            x[j] = row % 2 ? uniform(-10, 10) : uniform(-1e6, 1e6);
        }
        for (size_t i = 0; i < 8; i += DPCAL_LANES_OF)
            DPCAL_WIDEST(dpcal_turn)(u + i, f + i, g + i);
        for (int j = 0; j < 8; j++) {
            compare(2, a[j], cosl(x[j]), 1.0L);
            compare(2, b[j], sinl(x[j]), 1.0L);
            x[j] = uniform(-1, 1), y[j] = uniform(-1, 1) * power(-20.0 * (row % 2), 0);
        }
        for (size_t i = 0; i < 8; i += DPCAL_LANES_OF)
            DPCAL_WIDEST(dpcal_angle)(u + i, v + i, f + i);
        for (int j = 0; j < 8; j++) {
            compare(3, a[j], atan2l(y[j], x[j]), fabsl(atan2l(y[j], x[j])));
            x[j] = uniform(-1.2, 1.2) * power(-8.0 * (row % 4 > 1), 0);
            x[j] = row % 2 ? uniform(-700, 700) : x[j];
        }
        for (size_t i = 0; i < 8; i += DPCAL_LANES_OF)
            DPCAL_EXPONENTIALS(u[i], f[i], g[i], w[i]);
        for (int j = 0; j < 8; j++) {
            compare(4, a[j], second(x[j]), fabsl(second(x[j])));
            compare(5, b[j], expm1l(x[j]), fabsl(expm1l(x[j])));
            compare(6, z[j], expl(x[j]), expl(x[j]));
        }
    }
    for (int i = 0; i < 7; i++)
        printf("%.3f ", worst[i]);
    return 0;
}
"""
# Losses and masses of points on the real and the shifted line, with their errors in units.
POINTS_OF = r"""
#include <stdio.h>
#include "law.h"

int main(void) {
    const double q[] = {1e-9, 1e-4, 0.013, 0.3, 1 - 1e-9}, sigma[] = {0.02, 0.5, 1.07, 40, 1e4};
    dpcal_work work = {0};
    for (int k = 0; k < 100; k++) {
        dpcal_law law;
        dpcal_sampled_gaussian(&law, q[k % 5], sigma[k / 5 % 5], k / 25 % 2);
        if (law.serve(&law, k / 50 ? 40 * law.sigma : 1.0, &work))
            continue;
        if (law.lines(&law, 0, law.n, &work))
            continue;
        for (ptrdiff_t j = k % 7; j < law.n; j += law.n / 9) {
            const dpcal_line *line = &law.line;
            printf("%a %a %d %a ", law.q, law.sigma, law.add, law.step);
            printf("%a %a ", law.first + j, law.angle);
            printf("%a %a %a %a ", law.loss[j], law.log_mass[j], law.mass[j], law.slope[j]);
            printf("%a %a %a ", line->re[j], line->im[j], line->error[j]);
            printf("%a %a %a\n", line->size[j], line->phase[j], line->rounding[j]);
        }
        dpcal_free_law(&law);
    }
    dpcal_free_work(&work);
    return 0;
}
"""
# Points of a sum in 128 bits, which has no other error, over the deviation of the noise.
FINE = 0.08


def _exact_moments(q, sigma, c, *, add):
    """log M(c) and the mean of the tilted loss, by sums in balls of 160 bits."""
    with ctx.workprec(160):
        step = arb(FINE * min(sigma, sigma**2))
        low, high = -16 * sigma - (c if add else 0.0), 16 * sigma + 1 + (0.0 if add else c)
        power = -arb(c) if add else 1 + arb(c)
        count = int((high - low) / float(step)) + 1
        variance = arb(sigma) ** 2
        mass, mean = arb(0), arb(0)
        for j in range(count + 1):
            x = arb(low) + j * step
            weight = arb(q) * ((2 * x - 1) / (2 * variance)).expm1()
            density = step * (-x * x / (2 * variance)).exp() / (2 * arb.pi() * variance).sqrt()
            loss = weight.log1p()
            mass += density * ((power * loss).expm1() - power * weight)
            mean += density * ((power * loss).exp() * loss - weight)
        return mass.log1p(), (-mean if add else mean) / (1 + mass)


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(
    ("q", "sigma", "c"),
    [
        (1e-9, 0.2, 1.7),
        (1e-9, 40.0, 900.0),
        (1e-4, 0.4, 1e-6),
        (0.02, 1.0, 12.0),
        (0.3, 3.0, 60.0),
        (1.5e-3, 3.2, 133.0),
        (1 - 1e-9, 0.9, 0.7),
    ],
)
def test_moments_are_within_their_errors(q, sigma, c, add):
    law = question.Law.sampled_gaussian(q, sigma, add)
    mass, mean, mass_error, mean_error = question.moments(law, c)
    exact_mass, exact_mean = _exact_moments(q, sigma, c, add=add)
    assert abs(mass - exact_mass) < mass_error < 1e-12 * (mass + 1e-290)
    assert abs(mean - exact_mean) < mean_error < 1e-12 * mean


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="long doubles are doubles")
def test_functions_of_points_are_within_their_errors(tmp_path):
    source, program = tmp_path / "functions.c", tmp_path / "functions"
    source.write_text(FUNCTIONS)
    # The build's own options: sums are not fused.
    options = ["-O1", "-w", "-ffp-contract=off", "-fno-math-errno", f"-I{KERNELS}"]
    subprocess.run([COMPILER, *options, source, "-o", program, "-lm"], check=True)
    found = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    units = [float(item) for item in found.split()]
    # log(1 + x), log, cosine and sine, angles, exp(x) - 1 - x, exp(x) - 1, exp(x).
    assert (np.array(units) <= [2, 2, 1, 2, 3, 2, 2]).all(), units


def _exact_point(q, sigma, step, x, angle):
    """Log w and log of the density times the step, at x + i angle sigma^2, in balls of 200 bits."""
    shifted = acb(x, arb(angle) * arb(sigma) ** 2)
    variance = arb(sigma) ** 2
    log_w = (q * ((2 * shifted - 1) / (2 * variance)).expm1()).log1p()
    scale = (arb(step) / (2 * arb.pi() * variance).sqrt()).log()
    return log_w, scale - shifted * shifted / (2 * variance)


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_points_are_within_their_errors(tmp_path):
    source, program = tmp_path / "points.c", tmp_path / "points"
    source.write_text(POINTS_OF)
    options = ["-O1", "-w", "-ffp-contract=off", "-fno-math-errno", f"-I{KERNELS}"]
    subprocess.run([COMPILER, *options, source, "-o", program, "-lm"], check=True)
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    shares = []
    for line in printed.splitlines():
        q, sigma, add, step, n, angle, *found = (float.fromhex(item) for item in line.split())
        loss, log_mass, mass, slope, re, im, error, size, phase, rounding = found
        sign, moved = -1 if add else 1, slope - 0.5 * abs(loss)
        with ctx.workprec(200):
            log_w, density = _exact_point(q, sigma, step, step * n, 0.0)
            exact = (density + (0 if add else log_w)).real
            own = 0 if add else moved
            allowed = [(abs(loss - sign * log_w.real), moved)]
            allowed.append((abs(log_mass - exact), 0.6 * abs(log_mass) + 8 + own))
            allowed.append((abs(mass / exact.exp() - 1) if mass else arb(0), 5.5 + own))
            # Adding, the line lies below the real one, and the loss is minus log w there.
            log_w, density = _exact_point(q, sigma, step, step * n, -angle if add else angle)
            allowed.append((abs(acb(re, im) - sign * log_w), error))
            exact = density + (0 if add else log_w)
            allowed.append((abs(acb(size, phase) - exact), rounding))
            shares.append([float(gap) / 2**-52 / max(most, 1e-300) for gap, most in allowed])
    assert len(shares) > 500
    assert np.max(shares) < 1, np.max(shares, axis=0)
    assert (np.max(shares, axis=0) > 0.1).all(), np.max(shares, axis=0)


def _epsilon(direction, log_delta):
    """The compiled call's bounds on epsilon, or None."""
    found = direction.compiled and question.epsilon(direction.compiled, log_delta)
    return found and Bounds(*found)


def _log_delta(direction, epsilon):
    """The compiled call's bounds on log delta, or None."""
    found = direction.compiled and question.log_delta(direction.compiled, epsilon)
    return found and Bounds(*found)


def _readable(direction, point):
    """The bounds of the contour in Python, or None where that takes another way."""
    total = Total(direction.parts)
    try:
        if point.epsilon is None:
            return epsilon_on_contours(total, point.log_delta)
        return invert(total, point.epsilon).log_bounds(point.epsilon)
    except OutOfReach:
        return None


def _answer(direction, point):
    if point.epsilon is None:
        return _epsilon(direction, point.log_delta)
    return _log_delta(direction, point.epsilon)


def _compared(seed, count, most):
    """How many bounds meet those of the readable contour; fails at the first that do not."""
    compared = 0
    for index in range(count):
        point = sweep.draw(seed, index)
        for direction in point.directions if len(point.steps) <= most else ():
            found = _answer(direction, point)
            if found is None or found.method != "contour":
                continue
            other = _readable(direction, point)
            if other is None:
                continue
            compared += 1
            assert found.lower <= found.upper, point
            assert max(found.lower, other.lower) <= min(found.upper, other.upper), point
            width = other.upper - other.lower
            # Bounds on epsilon that are this close are not made closer.
            floor = 2e-8 if point.epsilon is None else 1e-11
            assert found.upper - found.lower <= 8 * width + floor * abs(found.upper), point
    return compared


@pytest.mark.slow
def test_bounds_meet_those_of_the_readable_contour():
    assert _compared(SEED, POINTS, 2) > POINTS / 4


@pytest.mark.slow
@pytest.mark.study
def test_bounds_meet_those_of_the_readable_contour_everywhere():
    assert _compared(0, 10_000, 200) > 2500


def _in_balls(direction, epsilon, most=4e5):
    """Bounds on log delta to 18 digits in balls of 256 bits; None beyond so many terms."""
    try:
        chosen = choose_contour(direction.parts, epsilon, width=1e-18)
    except OutOfReach:
        return None
    points = sum(item.last - item.first for item in chosen.sums if item)
    if (chosen.nodes + 100) * points > most:
        return None
    lower, upper = enclose(chosen, direction.parts, epsilon, bits=256)
    with ctx.workprec(256):
        return arb(lower).log().lower(), arb(upper).log().upper()


def _proved(seed, count):
    """How many ends agree with proofs in balls; fails at the first that does not."""
    proved = 0
    for index in range(count):
        rng = np.random.default_rng([seed, index])
        q, sigma = float(10 ** rng.uniform(-4, -0.7)), float(10 ** rng.uniform(-0.2, 0.6))
        loss = SampledGaussian(q, sigma, ("remove", "add")[index % 2])
        parts = ((loss, int(10 ** rng.uniform(0.5, 5))),)
        if index % 4 > 1:
            parts += ((Gaussian(sigma * 20), 3),)
        log_delta = -float(rng.uniform(5, 40))
        direction = Direction("", parts)
        found = _epsilon(direction, log_delta)
        if found is None or found.lower == 0:
            continue
        above, below = (_in_balls(direction, end) for end in (found.upper, found.lower))
        if above is None or below is None:
            continue
        proved += 2
        assert above[1] <= log_delta <= below[0], (parts, log_delta)
        again = _log_delta(direction, found.upper)
        assert again.lower <= above[0] <= above[1] <= again.upper, (parts, log_delta)
    return proved


@pytest.mark.slow
def test_balls_prove_both_ends():
    assert _proved(1, BALLS) == 2


@pytest.mark.slow
@pytest.mark.study
def test_balls_prove_both_ends_of_many():
    assert _proved(2, 60) > 60


@pytest.mark.slow
@pytest.mark.parametrize(
    "steps",
    [[(0.02, 0.8, 30)], [(0.005, 0.8, 810)], [(0.01, 0.6, 90), (0.002, 1.0, 40)]],
)
def test_balls_prove_both_ends_of_a_long_contour(steps):
    # Contours of 300 to 3,000 nodes, with points that fade on the way.
    parts = tuple((SampledGaussian(q, sigma, "remove"), count) for q, sigma, count in steps)
    direction, log_delta = Direction("", parts), -13.8
    found = _epsilon(direction, log_delta)
    above, below = (_in_balls(direction, end, 1e7) for end in (found.upper, found.lower))
    assert above[1] <= log_delta <= below[0]
    assert found.upper - found.lower < 1e-10 * found.upper


def test_an_answer_does_not_depend_on_earlier_ones():
    direction = Direction("", ((SampledGaussian(0.01, 1.1, "remove"), 5000),))
    first = _epsilon(direction, -14.0)
    _epsilon(direction, -600.0)
    again = Direction("", ((SampledGaussian(0.01, 1.1, "remove"), 5000),))
    assert _epsilon(direction, -14.0) == first == _epsilon(again, -14.0)


def test_curves_meet_single_answers():
    sampled = SampledGaussian(0.013, 1.07, "add")
    rare = SampledGaussian(0.002, 0.8, "remove")
    log_deltas, points = -np.linspace(2.0, 90.0, 23), np.linspace(0.0, 9.0, 31)
    for parts in (((sampled, 9000),), ((rare, 300), (Gaussian(40.0), 3)), ((Gaussian(9.0), 40),)):
        direction = Direction("", parts)
        found = question.epsilons(direction.compiled, log_deltas)
        alone = [_epsilon(direction, float(target)) for target in log_deltas]
        assert _meet(found, alone, lambda bounds: 1e-8 * bounds.upper) > 15
        found = question.log_deltas(direction.compiled, points)
        alone = [_log_delta(direction, float(point)) for point in points]
        assert _meet(found, alone, lambda _: 1e-6) > 15


def _meet(found, alone, widest):
    """How many bounds of a curve were compared with single calls; fails if one does not meet."""
    both = 0
    for lower, upper, single in zip(*found, alone, strict=True):
        if single is not None and not math.isnan(lower):
            assert max(lower, single.lower) <= min(upper, single.upper)
            assert upper - lower <= widest(single)
            both += 1
    return both


def test_other_questions_are_left_to_other_ways():
    loss = SampledGaussian(0.01, 1.1, "remove")
    once, rare = Direction("", ((loss, 1),)), SampledGaussian(1e-6, 3000.0, "add")
    assert _epsilon(once, -14.0) is None
    # Near delta = 1, 1 - delta is what has digits.
    assert _log_delta(Direction("", ((loss, 10**6),)), 1.0) is None
    assert _log_delta(Direction("", ((rare, 2),)), 1.0) is None
    assert _epsilon(Direction("", ((loss, 2**53 + 1),)), -14.0) is None


def _fastest(call, times):
    """The least processor time of one call, in seconds."""
    seconds = []
    for _ in range(times):
        start = time.process_time_ns()
        call()
        seconds.append(time.process_time_ns() - start)
    return min(seconds) * 1e-9


@pytest.mark.study
def test_an_epsilon_takes_a_few_times_as_long_as_numpy_takes_for_3600_exponentials():
    numbers = np.random.default_rng(0).standard_normal((60, 60)) + 1j
    steps = iter(range(8_000, 9_000))

    def ask():
        event = events.dpsgd(sampling_probability=0.013, noise_multiplier=1.07, steps=next(steps))
        return accountants.epsilon(event, delta=1e-6)

    assert ask().method == "contour"
    assert math.isfinite(_fastest(ask, 100))
    # 1.8 on a processor with wide registers.
    unit = _fastest(lambda: np.exp(numbers), 100)
    assert _fastest(ask, 300) < 6 * unit

    def curve():
        event = events.dpsgd(sampling_probability=0.013, noise_multiplier=1.07, steps=next(steps))
        return accountants.epsilon_profile(event, np.geomspace(1e-10, 1e-3, 100))

    # 5 on a processor with wide registers: single answers take 70.
    assert _fastest(curve, 20) < 20 * unit
