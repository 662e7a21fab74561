"""The laws of privacy losses, against closed forms in high precision and exact enumeration."""

import math

import mpmath
import numpy as np
import pytest
from _integrals import POINTS, transform
from hypothesis import given, settings, strategies as st

from dpcal import accountants
from dpcal._ext import question
from dpcal.accountants import events
from dpcal.accountants.losses.discrete import LatticeLoss, ScatteredLoss, log_delta_of_sum
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.laplace import BoundedRange, Laplace

REPEAT = events.SelfComposedDpEvent


def test_next_to_the_largest_loss_all_losses_are_the_largest_one():
    # But for a share of the gap. That uses cost what they should is asked of the corpus.
    event, gap = REPEAT(events.LaplaceDpEvent(7.0), 5), 1e-6
    found = accountants.log_delta(event, epsilon=5 / 7.0 - gap)
    assert found.lower - 5 * gap <= math.log(gap) - 5 * math.log(2) <= found.upper + 5 * gap


@pytest.mark.slow
@pytest.mark.parametrize("times", [7, 10**3, 10**6, 10**9])
def test_many_laplace_mechanisms_tend_to_a_gaussian(times):
    # Losses of standard deviation 1 / b each; the sum's is 1.
    event = REPEAT(events.LaplaceDpEvent(math.sqrt(times)), times)
    epsilon = accountants.epsilon(event, delta=1e-5)
    assert 0 <= epsilon.upper - epsilon.lower < 1e-5
    if times >= 10**6:
        gaussian = accountants.epsilon(events.GaussianDpEvent(1.0), delta=1e-5)
        assert epsilon == pytest.approx(gaussian, rel=2e-3)


@pytest.mark.parametrize(
    "loss", [Laplace(0.8), Laplace(50.0), BoundedRange(0.3), BoundedRange(4.0)]
)
@pytest.mark.parametrize("c", [-0.7, -0.5, 0.0, 3.0, 300.0])
def test_moments_of_a_segment(loss, c):
    with mpmath.workdps(40):
        a = mpmath.mpf(loss.upper)
        if isinstance(loss, Laplace):
            end, density = mpmath.exp(-a / 2) / 2, mpmath.exp(-a / 2) / 4
        else:
            end, density = 0, 1 / (4 * mpmath.sinh(a / 2))

        def transform(z):
            z = mpmath.mpmathify(z) + mpmath.mpf(1) / 2
            inner = mpmath.sinh(a * z) / z if z else a
            return 2 * end * mpmath.cosh(a * z) + 2 * density * inner

        truth = [mpmath.log(transform(c))]
        logs = lambda z: mpmath.log(transform(z))  # noqa: E731
        h = mpmath.mpf(10) ** -9
        truth.append((logs(c + h) - logs(c - h)) / (2 * h))
        truth.append((logs(c + h) - 2 * logs(c) + logs(c - h)) / h**2)
    found = loss.cumulants([c])[0]
    np.testing.assert_allclose(found[:3], [float(x) for x in truth], rtol=1e-9, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma", "shift"), [(0.03, 1), (0.058, 3), (0.4, 1), (0.85, 2), (0.95, 3), (2.0, 1), (5.0, 7)]
)
@pytest.mark.parametrize("c", [-0.4, 0.4999, 11.0])
def test_moments_of_a_discrete_gaussian(sigma, shift, c):
    loss = DiscreteGaussian(sigma, shift)
    with mpmath.workdps(40):
        s2, reach = 2 * mpmath.mpf(sigma) ** 2, math.ceil(15 * sigma + 5)
        xs = range(-reach, math.ceil((1 + c) * shift) + reach + 1)
        norm = mpmath.fsum(mpmath.exp(-mpmath.mpf(x * x) / s2) for x in xs)
        law = {
            shift * (2 * x - shift) / s2: mpmath.exp((c * x**2 - (1 + c) * (x - shift) ** 2) / s2)
            for x in map(mpmath.mpf, xs)
        }
        whole = mpmath.fsum(law.values())
        mean = mpmath.fsum(v * p for v, p in law.items()) / whole
        central = [mpmath.fsum((v - mean) ** n * p for v, p in law.items()) / whole for n in (2, 4)]
        truth = [float(x) for x in (mpmath.log(whole / norm), mean, *central)]
        np.testing.assert_allclose(loss.cumulants([c])[0], truth, rtol=1e-11, atol=1e-14)
        for t in np.array([1e-4, 0.5, 1.3]) * (2 * math.pi * sigma**2 / shift):
            turned = mpmath.fsum(p * mpmath.expj(float(t) * (v - mean)) for v, p in law.items())
            found = transform(loss, complex(c, t), truth[0]) * np.exp(-1j * float(t * mean))
            allowed = 1e-11 + 1e-13 * abs(truth[0])  # of the digits of log M
            assert found == pytest.approx(complex(turned / whole), abs=allowed)


def narrow_log_delta(sigma, shift, times, epsilon):
    """Log delta of a composition in 60 digits, from the law of how far its sum is from its mode.

    Large distances, and those of single uses, are rarer than anything that is asked for here.
    """
    single, most = 4, 14
    with mpmath.workdps(60):
        s2 = 2 * mpmath.mpf(sigma) ** 2
        masses = {x: mpmath.exp(-(mpmath.mpf(x) ** 2) / s2) for x in range(-single, single + 1)}
        norm = sum(masses.values())
        power = {x: mass / norm for x, mass in masses.items()}
        law = {0: mpmath.mpf(1)}

        def convolved(one, other):
            result = dict.fromkeys(range(-most, most + 1), mpmath.mpf(0))
            for x, p in one.items():
                for y, q in other.items():
                    if abs(x + y) <= most:
                        result[x + y] += p * q
            return result

        for bit in bin(times)[:1:-1]:
            law = convolved(law, power) if bit == "1" else law
            power = convolved(power, power)
        total = mpmath.mpf(0)
        for x, p in law.items():
            value = shift * (times * shift + 2 * mpmath.mpf(x)) / s2
            total += p * (1 - mpmath.exp(epsilon - value)) if value > epsilon else 0
        return float(mpmath.log(total))


@pytest.mark.parametrize(("sigma", "shift", "times", "epsilon"), POINTS["narrow_noise"])
def test_narrow_discrete_gaussians_in_many_digits(sigma, shift, times, epsilon):
    event = REPEAT(events.DiscreteGaussianDpEvent(sigma, shift), times)
    found = accountants.log_delta(event, epsilon=epsilon)
    truth = narrow_log_delta(sigma, shift, times, epsilon)
    assert found.lower <= truth * (1 - 1e-15)
    assert truth * (1 + 1e-15) <= found.upper
    if sigma > 0.07 and times < 10:
        assert found.upper - found.lower < 1e-6


@pytest.mark.parametrize("epsilon", [1e12, 1e300])
@pytest.mark.parametrize("sigma", [1e-3, 1e4])
def test_an_epsilon_beyond_all_whole_numbers(sigma, epsilon):
    # The first noise that counts is epsilon sigma^2, far out.
    found = accountants.log_delta(events.DiscreteGaussianDpEvent(sigma), epsilon=epsilon)
    truth = -0.5 * (epsilon * sigma) * (epsilon * sigma)
    assert found.lower <= truth * (1 - 1e-5)
    assert truth * (1 + 1e-5) <= found.upper <= 0.0


@settings(max_examples=25, deadline=None)
@given(
    values=st.lists(st.integers(-4, 4), min_size=2, max_size=5, unique=True),
    masses=st.lists(st.floats(0.05, 1.0), min_size=5, max_size=5),
    times=st.integers(1, 4),
    epsilon=st.floats(0.0, 2.0),
)
def test_any_atoms_by_enumeration(values, masses, times, epsilon):
    values = sorted(values)
    reference = np.array(masses[: len(values)])
    losses = 0.37 * np.array(values)
    # Scaled so that both laws have mass 1, which takes losses of both signs.
    if not losses[0] < 0 < losses[-1]:
        return
    up = losses > 0
    gain, lack = reference @ (np.expm1(losses) * up), -reference @ (np.expm1(losses) * ~up)
    reference = np.where(up, reference * lack / gain, reference)
    reference /= reference.sum()
    logs = tuple(np.log(reference))
    loss = LatticeLoss(0.37, tuple(values), logs, "atoms")
    listed = ScatteredLoss(tuple(losses), logs, "the same")
    law = reference * np.exp(losses)
    sums, chances = np.zeros(1), np.ones(1)
    for _ in range(times):
        sums = np.add.outer(sums, losses).ravel()
        chances = np.multiply.outer(chances, law).ravel()
    truth = float((chances * np.maximum(0.0, -np.expm1(epsilon - sums))).sum())
    if epsilon + 1e-6 < times * loss.upper and truth > 1e-12:
        for item in (loss, listed):
            low, high, _ = question.log_delta([(item.compiled, times)], epsilon, patient=True)
            assert low - 1e-9 <= math.log(truth) <= high + 1e-9
        # Where there are few sums, their law is exact.
        for each in (loss, listed):
            found, error = log_delta_of_sum(((each, times),), epsilon)
            assert abs(found - math.log(truth)) < 1e-9 + error < 1e-6
