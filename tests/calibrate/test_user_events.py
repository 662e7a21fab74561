"""Users with several rows: reference values, limits, and an attack on what is refused."""

import math
from fractions import Fraction

import pytest
from scipy.stats import hypergeom, norm

from dpcal.accountants import certify, epsilon, events
from dpcal.accountants.samplers import FixedSize, Poisson
from dpcal.calibrate.persons import for_group
from dpcal.errors import UnsupportedEvent


def user(rows, sampler, sigma=2.0, n=10_000):
    return for_group(sampler.event(events.GaussianDpEvent(sigma), n), rows, "add-or-remove-one")


def price(event, relation="add-or-remove-one", steps=100):
    run = events.SelfComposedDpEvent(event, steps)
    return float(epsilon(run, delta=1e-6, neighboring_relation=relation))


@pytest.mark.parametrize(
    ("rows", "sampler", "expected"),
    [
        (4, Poisson(0.01), 1.0158537221),
        (4, FixedSize(100), 3.9835442481),
        (1, Poisson(0.01), 0.2279748044),
    ],
)
def test_reference_values(rows, sampler, expected):
    assert price(user(rows, sampler)) == pytest.approx(expected, rel=3e-10)


@pytest.mark.parametrize(
    ("n", "k", "b"), [(20, 3, 2), (10_000, 4, 100), (50, 20, 30), (10**9, 60, 10**6)]
)
def test_weights_are_hypergeometric_and_rounded_towards_more_rows(n, k, b):
    shares = user(k, FixedSize(b), n=n).sampling_probs
    assert math.fsum(shares) == 1
    exact = [
        math.comb(k, j) * math.perm(b, j) * math.perm(n - b, k - j) for j in range(len(shares))
    ]
    assert shares[:5] == pytest.approx(
        list(hypergeom.pmf(range(len(shares)), n, k, b))[:5], rel=1e-6
    )
    ways = math.perm(n, k)
    for j in range(1, len(shares)):
        assert sum(map(Fraction, shares[j:])) >= Fraction(sum(exact[j:]), ways)


def test_many_rows_make_batches_like_coins():
    fixed = price(user(4, FixedSize(10**5), n=10**7))
    assert fixed == pytest.approx(price(user(4, Poisson(0.01), 1.0)), rel=1e-4)


def test_blanks_in_batches_of_a_fixed_size_are_refused_since_the_mixture_is_beaten():
    """All other rows are -1: a drawn blank moves the sum by one, and a drawn row by two."""
    q, sigma, target = 0.01, 2.0, 0.02
    grid = [x / 100 for x in range(-2000, 2001)]

    def delta(one, other):
        return sum(max(0.0, one(x) - math.exp(target) * other(x)) / 100 for x in grid)

    def law(shift):
        return lambda x: (1 - q) * norm.pdf(x, 0, sigma) + q * norm.pdf(x, shift, sigma)

    attack = delta(law(2.0), law(1.0))
    mixture = delta(law(1.0), law(0.0))
    assert attack > 1.2 * mixture


@pytest.mark.parametrize("relation", ["replace-special", "replace-one"])
def test_an_event_of_added_rows_is_the_mixture_and_has_no_price_under_another_relation(relation):
    event = user(2, FixedSize(100))
    run = events.SelfComposedDpEvent(events.ComposedDpEvent([event, events.GaussianDpEvent(9)]), 3)
    for accountant in ("auto", "renyi", "pld"):
        with pytest.raises(UnsupportedEvent, match=rf"ExchangedRowsDpEvent.*{relation}"):
            epsilon(run, delta=1e-6, neighboring_relation=relation, accountant=accountant)
    with pytest.raises(UnsupportedEvent, match="ExchangedRowsDpEvent"):
        certify(run, delta=1e-6, neighboring_relation=relation)
    mixture = events.MixtureOfGaussiansDpEvent(2.0, event.sensitivities, event.sampling_probs)
    assert epsilon(event, delta=1e-6) == epsilon(mixture, delta=1e-6)
    certificate = certify(event, delta=1e-6, width=0.01)
    assert certificate.lower <= epsilon(event, delta=1e-6) <= certificate.upper
