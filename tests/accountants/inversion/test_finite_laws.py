"""Sums of losses with finitely many values: exact lists, and lattices rounded down and up."""

import math

import numpy as np
import pytest
from scipy.signal import fftconvolve

from dpcal.accountants import delta, epsilon, events
from dpcal.accountants.inversion.finite_laws import FiniteLaw, joined


def test_values_of_a_chain_are_not_taken_as_one():
    """Each is within rounding of the next, and the last is not within rounding of the first."""
    step, one = 2.0**-51, FiniteLaw(np.zeros(1), np.zeros(1))
    chain = FiniteLaw(1.0 + step * np.arange(64), np.full(64, -math.log(64)))
    law = joined(chain, one, np.add.outer(chain.values, one.values))
    assert len(law.values) == 64
    few = FiniteLaw(chain.values[:3], chain.log_reference[:3])
    assert len(joined(few, one, np.add.outer(few.values, one.values)).values) == 1


def delta_on_a_lattice(q, sigma, uses, side, epsilon):
    """Return delta of sampled discrete Gaussian noise when a record is removed.

    Losses are rounded to a lattice by floor or ceil; those beyond 4, which are rare,
    count as none or as infinite.
    """
    step, most = 1e-5, 4.0
    x = np.arange(-40, 42)
    masses = np.exp(-(x**2) / (2 * sigma**2))
    loss = np.log1p(q * np.expm1((2 * x - 1) / (2 * sigma**2)))
    masses *= np.exp(loss) / masses.sum()
    places = side(loss / step).astype(int)
    some = loss <= most
    one = np.bincount(places[some] - places[0], masses[some])
    power = np.ones(1)
    for bit in bin(uses)[2:]:
        power = fftconvolve(power, power)
        power = fftconvolve(power, one) if bit == "1" else power
    values = step * (uses * int(places[0]) + np.arange(len(power)))
    above = values > epsilon
    lost = uses * masses[~some].sum() if side is np.ceil else 0.0
    return lost - (power[above] * np.expm1(epsilon - values[above])).sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("q", "sigma", "uses", "at"), [(1e-3, 1.0, 10, 1e-6), (0.05, 1.0, 4, 1e-8)]
)
def test_few_uses_of_sampled_discrete_noise(q, sigma, uses, at):
    event = events.SelfComposedDpEvent(
        events.PoissonSampledDpEvent(q, events.DiscreteGaussianDpEvent(sigma)), uses
    )
    found = epsilon(event, delta=at)
    assert found.upper - found.lower < 2e-3 * found.upper
    # Sums by the fast transform are wrong by 1e-13 in delta.
    assert delta_on_a_lattice(q, sigma, uses, np.floor, found.upper) <= at + 1e-13
    assert delta_on_a_lattice(q, sigma, uses, np.ceil, found.lower) >= at - 1e-13
    back = delta(event, epsilon=found.upper)
    assert back.lower <= at <= back.upper * (1 + 1e-6)
    assert back.upper < back.lower * 1.05
