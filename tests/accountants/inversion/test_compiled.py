"""One compiled call against the readable contour, and balls of 128 and more bits."""

import math
import shutil
import subprocess
from pathlib import Path

import mpmath
import numpy as np
import pytest
from _integrals import POINTS, in_balls
from flint import acb, arb, ctx

from dpcal import accountants
from dpcal._ext import question
from dpcal.accountants import events
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.gaussian_mixtures import replaced_record
from dpcal.accountants.losses.laplace import Laplace
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

HERE = Path(__file__).parent
COMPILER = shutil.which("cc")
compiled = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
# Points of a sum in 128 bits, which has no other error, over the deviation of the noise.
FINE = 0.08


def exact_moments(q, sigma, c, *, add):
    """log M(c) and the mean of the tilted loss, by sums in balls of 160 bits."""
    with ctx.workprec(160):
        step = arb(FINE * min(sigma, sigma**2))
        low, high = -16 * sigma - (c if add else 0.0), 16 * sigma + 1 + (0.0 if add else c)
        power, variance = -arb(c) if add else 1 + arb(c), arb(sigma) ** 2
        mass, mean = arb(0), arb(0)
        for j in range(int((high - low) / float(step)) + 2):
            x = arb(low) + j * step
            weight = arb(q) * ((2 * x - 1) / (2 * variance)).expm1()
            density = step * (-x * x / (2 * variance)).exp() / (2 * arb.pi() * variance).sqrt()
            loss = weight.log1p()
            mass += density * ((power * loss).expm1() - power * weight)
            mean += density * ((power * loss).exp() * loss - weight)
        return mass.log1p(), (-mean if add else mean) / (1 + mass)


def printed_by(name, folder, *arguments, told=None):
    """Return what a program prints that is compiled with the build's own options."""
    program = folder / name
    options = ["-O1", "-w", "-ffp-contract=off", "-fno-math-errno", f"-I{HERE.parents[2] / '_ext'}"]
    source = HERE / f"{name}.h"
    command = [COMPILER, *options, "-x", "c", source, "-o", program, "-lm"]
    subprocess.run(command, check=True)
    command = [program, *arguments]
    return subprocess.run(command, input=told, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
@compiled
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="long doubles are doubles")
def test_functions_of_points_are_within_their_errors(tmp_path):
    units = [float(item) for item in printed_by("functions", tmp_path).split()]
    # log(1 + x), log, cosine and sine, angles, exp(x) - 1 - x, exp(x) - 1, exp(x).
    assert (np.array(units) <= [2, 2, 1, 2, 3, 2, 2]).all(), units


@pytest.mark.slow
@compiled
def test_moments_are_within_their_errors(tmp_path):
    rows = [(*row, add) for row in POINTS["compiled_moments"] for add in (0, 1)]
    lines = printed_by("moments", tmp_path, *(str(x) for row in rows for x in row)).splitlines()
    for (q, sigma, c, add), line in zip(rows, lines, strict=True):
        mass, mean, mass_error, mean_error = map(float.fromhex, line.split())
        exact_mass, exact_mean = exact_moments(q, sigma, c, add=add)
        assert abs(mass - exact_mass) < mass_error < 3e-12 * (mass + 1e-290)
        assert abs(mean - exact_mean) < mean_error < 3e-12 * mean


@compiled
def test_a_program_in_c_asks_for_an_epsilon(tmp_path):
    status, lower, upper = printed_by("asking", tmp_path).split()
    steps = events.dpsgd(sampling_probability=0.013, noise_multiplier=1.07, steps=9000)
    one = accountants.epsilon(steps, delta=1e-6)
    assert status == "0"
    assert float(lower) == pytest.approx(one.lower, rel=1e-12)
    assert float(upper) == pytest.approx(one.upper, rel=1e-12)


def exact_point(q, sigma, step, x, angle):
    """Log w and log of the density times the step, at x + i angle sigma^2, in balls of 200 bits."""
    shifted, variance = acb(x, arb(angle) * arb(sigma) ** 2), arb(sigma) ** 2
    log_w = (q * ((2 * shifted - 1) / (2 * variance)).expm1()).log1p()
    scale = (arb(step) / (2 * arb.pi() * variance).sqrt()).log()
    return log_w, scale - shifted * shifted / (2 * variance)


@pytest.mark.slow
@compiled
def test_points_are_within_their_errors(tmp_path):
    shares = []
    for line in printed_by("points", tmp_path).splitlines():
        q, sigma, add, step, n, angle, *found = (float.fromhex(item) for item in line.split())
        loss, log_mass, mass, slope, re, im, error, size, phase, rounding = found
        sign, moved = -1 if add else 1, slope - 0.5 * abs(loss)
        with ctx.workprec(200):
            log_w, density = exact_point(q, sigma, step, step * n, 0.0)
            exact = (density + (0 if add else log_w)).real
            square = (step * n / sigma) ** 2 / 2
            own = (0 if add else moved) + 2.5 * square + 0.5 * abs((0 if add else loss) - square)
            allowed = [(abs(loss - sign * log_w.real), moved)]
            own += 0.6 * abs(log_mass) + 20
            allowed.append((abs(log_mass - exact), own))
            allowed.append((abs(mass / exact.exp() - 1) if mass else arb(0), own))
            # Adding, the line lies below the real one, and the loss is minus log w there.
            log_w, density = exact_point(q, sigma, step, step * n, -angle if add else angle)
            allowed.append((abs(acb(re, im) - sign * log_w), error))
            exact = density + (0 if add else log_w)
            allowed.append((abs(acb(size, phase) - exact), rounding))
            shares.append([float(gap) / 2**-52 / max(most, 1e-300) for gap, most in allowed])
    worst = np.max(shares, axis=0)
    assert len(shares) > 500
    assert ((worst > 0.1) & (worst < 1)).all(), worst


def laplace(a):
    """The transform of Laplace noise of scale 1 / a."""
    return lambda z: (
        mpmath.exp(-a / 2) * (mpmath.cosh(a * (z + 0.5)) + mpmath.sinh(a * (z + 0.5)) / (2 * z + 1))
    )


def mixtures(p, q):
    """The transform of p phi against q phi, with phi the standard normal density."""
    path = [x + 0.8j for x in (-13, -3, 0, 4, 9, 20)]
    return lambda z: mpmath.quad(
        lambda x: mpmath.npdf(x) * p(x) * mpmath.exp(z * mpmath.log(p(x) / q(x))), path
    )


def fixed_batch(q, mu):
    """The transform of a loss with two halves and a mass at 0."""
    at_zero = (1 - q) * mpmath.erf(mu / mpmath.sqrt(8))
    log_w = lambda x: mpmath.log1p(q * mpmath.expm1(mu * x - mu**2 / 2))  # noqa: E731

    def half(power, side):
        # Above the real line powers of w with Im z > 0 shrink.
        path = [mu / 2, *(mu / 2 + x + 0.6j * side for x in (1, 4, 12, 30))]
        return mpmath.quad(lambda x: mpmath.npdf(x) * mpmath.exp(power * log_w(x)), path)

    return lambda z: at_zero + half(1 + z, 1) + half(-z, -1)


@pytest.mark.slow
@compiled
@pytest.mark.parametrize("c", [0.7, 6.0])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_bounds_on_decay_lie_above_integrals(tmp_path, which, c):
    """Between neighboring points events are cut, whose chances are integrals of their own."""
    weight = lambda sign: lambda x: 0.95 + 0.05 * mpmath.exp(sign * x - 0.5)  # noqa: E731
    replaced = replaced_record(sampling_probability=0.05, noise_multiplier=1.0)
    cases = (Laplace(0.5), laplace(2.0)), (FixedBatchGaussian(0.3, 0.5), fixed_batch(0.3, 2.0))
    loss, transform = (*cases, (replaced, mixtures(weight(1), weight(-1))))[which]
    served, ratio = loss.served(8.0), 1.12
    mean, variance = loss.cumulants([0.0])[0, 1], loss.cumulants([c])[0, 2]
    times = np.geomspace(0.02, 60.0, 9) / variance**0.5
    rows = (served.real, served.line)
    numbers = [*(row.shape[1] for row in rows), *(x for row in rows for x in row.ravel()), mean]
    told = " ".join(float(x).hex() for x in (*numbers, c, ratio, *times))
    bounds = [float.fromhex(line) for line in printed_by("decay", tmp_path, told=told).split()]
    for t, bound in zip(times, bounds, strict=True):
        here, there = (abs(transform(mpmath.mpc(c, t * x)) / transform(c)) for x in (1, ratio))
        truth = float(mpmath.log(max(here, there)))
        assert truth <= bound + 1e-13, t
    assert bounds[0] < -1e-4
    assert min(bounds) < -0.01


def ask(direction, *, epsilon=None, log_delta=None):
    """The compiled call's bounds on log delta or on epsilon, or None."""
    found = direction.compiled and (
        question.epsilon(direction.compiled, log_delta)
        if epsilon is None
        else question.log_delta(direction.compiled, epsilon)
    )
    return found and Bounds(*found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "count", "least"), [(1, 2, 2), pytest.param(2, 60, 61, marks=pytest.mark.study)]
)
def test_balls_prove_both_ends(seed, count, least):
    proved = 0
    for index in range(count):
        rng = np.random.default_rng([seed, index])
        q, sigma = float(10 ** rng.uniform(-4, -0.7)), float(10 ** rng.uniform(-0.2, 0.6))
        loss = SampledGaussian(q, sigma, ("remove", "add")[index % 2])
        parts = ((loss, int(10 ** rng.uniform(0.5, 5))),)
        if index % 4 > 1:
            parts += ((Gaussian(sigma * 20), 3),)
        log_delta, direction = -float(rng.uniform(5, 40)), Direction("", parts)
        found = ask(direction, log_delta=log_delta)
        if found is None or found.lower == 0:
            continue
        above, below = (in_balls(direction, end) for end in (found.upper, found.lower))
        if above is None or below is None:
            continue
        proved += 2
        assert above[1] <= log_delta <= below[0], (parts, log_delta)
        again = ask(direction, epsilon=found.upper)
        assert again.lower <= above[0] <= above[1] <= again.upper, (parts, log_delta)
    assert proved >= least


@pytest.mark.slow
@pytest.mark.parametrize("steps", [[(0.02, 0.8, 30)], [(0.01, 0.6, 90), (0.002, 1.0, 40)]])
def test_balls_prove_both_ends_of_a_long_contour(steps):
    # Contours of hundreds of nodes, with points that fade on the way.
    parts = tuple((SampledGaussian(q, sigma, "remove"), count) for q, sigma, count in steps)
    direction, log_delta = Direction("", parts), -13.8
    found = ask(direction, log_delta=log_delta)
    above, below = (in_balls(direction, end, 1e7) for end in (found.upper, found.lower))
    assert above[1] <= log_delta <= below[0]
    assert found.upper - found.lower < 1e-10 * found.upper


def test_an_answer_does_not_depend_on_earlier_ones():
    parts = ((SampledGaussian(0.01, 1.1, "remove"), 5000),)
    direction = Direction("", parts)
    first = ask(direction, log_delta=-14.0)
    ask(direction, log_delta=-600.0)
    again = ask(Direction("", parts), log_delta=-14.0)
    assert ask(direction, log_delta=-14.0) == first == again


@pytest.mark.parametrize(
    "parts",
    [
        ((SampledGaussian(0.013, 1.07, "add"), 9000),),
        ((SampledGaussian(0.002, 0.8, "remove"), 300), (Gaussian(40.0), 3)),
        ((Gaussian(9.0), 40),),
    ],
)
def test_curves_meet_single_answers(parts):
    direction, at, both = Direction("", parts), np.linspace(0.0, 9.0, 31), 0
    curve = question.log_deltas(direction.compiled, at)
    for x, lower, upper in zip(at, *curve, strict=True):
        single = ask(direction, epsilon=float(x))
        if single is not None and not math.isnan(lower):
            assert max(lower, single.lower) <= min(upper, single.upper)
            assert upper - lower <= 1e-6
            both += 1
    assert both > 15


def test_other_questions_are_left_to_other_ways():
    loss, rare = SampledGaussian(0.01, 1.1, "remove"), SampledGaussian(1e-6, 3000.0, "add")
    assert ask(Direction("", ((loss, 1),)), log_delta=-14.0) is None
    assert ask(Direction("", ((rare, 2),)), epsilon=1.0) is None
    assert ask(Direction("", ((loss, 2**53 + 1),)), log_delta=-14.0) is None
