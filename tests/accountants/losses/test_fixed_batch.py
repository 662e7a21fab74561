"""Fixed-size batches without replacement, against integrals, brute force, another accountant."""

import math

import numpy as np
import pytest
from _integrals import density, integral, power, transform
from flint import acb, arb, ctx
from scipy.special import ndtr

from dpcal import accountants
from dpcal.accountants import events
from dpcal.accountants.directions import Direction
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian


def batches(noise_multiplier, steps=1, size=10_000, batch=100):
    gaussian = events.GaussianDpEvent(noise_multiplier)
    step = events.SampledWithoutReplacementDpEvent(size, batch, gaussian)
    return events.SelfComposedDpEvent(step, steps)


def replaced(event, delta=1e-6):
    return accountants.epsilon(event, delta=delta, neighboring_relation="replace-one")


def profile(alpha, q, mu):
    """The profile in closed form: amplification above 1, its mirror image below."""
    if alpha < 1:
        return 1 - alpha + alpha * profile(1 / alpha, q, mu)
    a = 1 + (alpha - 1) / q
    return q * (ndtr(mu / 2 - math.log(a) / mu) - a * ndtr(-mu / 2 - math.log(a) / mu))


@pytest.mark.slow
@pytest.mark.parametrize(("q", "mu"), [(0.01, 1.0), (0.3, 0.2), (0.05, 3.0)])
def test_transform_agrees_with_integrals(q, mu):
    loss = FixedBatchGaussian(q, 1 / mu)
    ends = [mu / 2, mu / 2 + 10, mu / 2 + 30 + 3 * mu]
    for z in (0.7, 2.0, -0.3, 0.5 + 3j, 1.2 + 20j):

        def integrand(x, analytic, z=z):
            w = 1 - arb(q) + q * (mu * x - arb(mu) ** 2 / 2).exp()
            return density(x) * (power(w, acb(z) + 1, analytic) + power(w, -acb(z), analytic))

        with ctx.workprec(128):
            atom = (1 - arb(q)) * (mu / arb(8).sqrt()).erf()
        expected = complex(atom + integral(integrand, ends))
        assert abs(transform(loss, z) - expected) < 1e-13 * transform(loss, complex(z).real)


def test_composing_each_direction_by_itself_understates():
    """0.01 of the records a step, noise as large as the change of the sum, 1000 steps."""
    right = replaced(batches(2.0, 1000))
    wrong = max(
        accountants.characteristic.epsilon_bounds(
            Direction(name, ((SampledGaussian(0.01, 1.0, name), 1000),)), math.log(1e-6)
        ).upper
        for name in ("remove", "add")
    )
    assert f"{wrong:.4f} {right:.4f}" == "2.1245 2.5128"
    assert right.upper - right.lower < 1e-10


def test_direction_chosen_by_the_first_answer_exceeds_either_alone():
    """Two steps; the second query makes the direction worse that the first answer left better.

    Whichever of the records in the batch's place is like the others decides the direction, and
    queries are chosen adaptively. The pair covers this neighbor, neither direction alone does.
    """
    q, mu, alpha = 0.1, 2.0, 1.05
    x = np.linspace(-9, 11, 1601)
    base = np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    mixed = base * (1 - q + q * np.exp(mu * x - mu**2 / 2))
    width = x[1] - x[0]

    def same_twice(p, q):
        both, other = np.multiply.outer(p, p), np.multiply.outer(q, q)
        return np.maximum(both - alpha * other, 0).sum() * width**2

    def adaptive(p, other):
        return sum(a * profile(alpha * b / a, q, mu) for a, b in zip(p, other, strict=True)) * width

    apart = max(same_twice(mixed, base), same_twice(base, mixed))
    together = max(adaptive(mixed, base), adaptive(base, mixed))
    assert together > apart * 1.01
    event = batches(2 / mu, 2, 1000, 100)
    bound = accountants.delta(event, epsilon=math.log(alpha), neighboring_relation="replace-one")
    assert bound > together


def test_replaced_record_moves_the_sum_by_two():
    """A batch of every record is the plain Gaussian, whose sum a replaced record moves by 2."""
    whole = replaced(batches(2.0, 10, 50, 50))
    assert whole == replaced(events.SelfComposedDpEvent(events.GaussianDpEvent(2.0), 10))
    assert whole == pytest.approx(
        accountants.epsilon(events.GaussianDpEvent(1.0 / math.sqrt(10)), delta=1e-6), rel=1e-9
    )
    nearly = replaced(batches(2.0, 10, 10**6, 10**6 - 1))
    assert nearly == pytest.approx(whole, rel=1e-4)


def test_fifty_noise_levels_at_once():
    """Each of the fifty lies between the least and the most noisy of them."""
    levels = np.linspace(3.0, 9.0, 50)
    mixed = replaced(events.ComposedDpEvent([batches(level, 2000) for level in levels]))
    assert replaced(batches(9.0, 100_000)) < mixed < replaced(batches(3.0, 100_000))
    assert mixed.upper - mixed.lower < 1e-10
    together = events.ComposedDpEvent([batches(3.0, 700), batches(3.0, 300)])
    assert replaced(together) == replaced(batches(3.0, 1000))
