"""Few uses of Laplace noise, whose law is a spline, against the alternating sum in many digits."""

import math

import mpmath
import pytest

from dpcal import accountants
from dpcal.accountants import events
from dpcal.accountants.losses.laplace import Laplace, log_delta_of_few_uses


def in_many_digits(a, times, epsilon):
    """Return delta, with the density of a sum of uniform numbers as a sum of both signs."""
    total = mpmath.mpf(0)
    for uniform in range(times + 1):
        for upper in range(times - uniform + 1):
            room = uniform + upper - mpmath.mpf(times) / 2 - epsilon / (2 * a)
            signed = [
                (-1) ** i * mpmath.binomial(uniform, i) * integral(a, uniform, room - i)
                for i in range(uniform + 1)
                if room > i
            ]
            ways = mpmath.binomial(times, uniform) * mpmath.binomial(times - uniform, upper)
            total += ways * a**uniform * mpmath.fsum(signed)
    return mpmath.exp(epsilon / 2 - times * a / 2) / mpmath.mpf(2) ** times * total


def integral(a, power, y):
    """Return the integral of 2 sinh(a (y - s)) s^(power - 1) / (power - 1)! over [0, y]."""
    if power == 0:
        return 2 * mpmath.sinh(a * y)
    terms = (2 * a ** (2 * k + 1) * y ** (power + 2 * k + 1) for k in range(90))
    return mpmath.fsum(term / mpmath.factorial(power + 2 * k + 1) for k, term in enumerate(terms))


@pytest.mark.parametrize(
    ("scale", "times", "share"),
    [
        (0.0625, 3, 0.0),
        (0.0625, 3, 0.77),
        (0.3, 3, 0.37),
        (1.0, 2, 0.0),
        (2.0, 7, 0.37),
        (7.0, 5, 1 - 1e-6),
        (7.0, 9, 0.77),
        (100.0, 32, 0.97),
    ],
)
def test_few_uses_against_many_digits(scale, times, share):
    loss = Laplace(scale)
    epsilon = share * times * loss.half_width
    value, error = log_delta_of_few_uses(loss, times, epsilon)
    with mpmath.workdps(60):
        truth = in_many_digits(mpmath.mpf(loss.half_width), times, mpmath.mpf(epsilon))
        assert abs(mpmath.expm1(value - mpmath.log(truth))) <= error < 1e-8


def test_few_uses_are_narrow_and_agree_with_a_contour():
    # Discrete Laplace noise of a fine grid has nearly the same law.
    event = events.SelfComposedDpEvent(events.LaplaceDpEvent(2.0), 6)
    answer = accountants.epsilon(event, delta=1e-3)
    assert answer.method == "convolution"
    assert answer.upper - answer.lower <= 1e-11 * answer
    fine = events.SelfComposedDpEvent(events.DiscreteLaplaceDpEvent(0.5 / 200, 200), 6)
    assert float(accountants.epsilon(fine, delta=1e-3)) == pytest.approx(float(answer), rel=1e-4)
    # One more use is a contour, and costs more.
    times = (32, 33)
    both = [
        accountants.log_delta(
            events.SelfComposedDpEvent(events.LaplaceDpEvent(8.0), n), epsilon=1.5
        )
        for n in times
    ]
    assert both[0].upper < both[1].lower < both[0].upper + math.log(1.2)
