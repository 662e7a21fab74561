"""Skellam noise against its masses in mpmath, against Gaussian noise, and its Renyi divergences."""

import itertools

import mpmath as mp
import pytest

from dpcal.accountants import delta, epsilon, events
from dpcal.accountants.mechanisms.row import dominating_pairs
from dpcal.calibrate.persons import for_group

ADD, REPLACE = "add-or-remove-one", "replace-one"


def masses(mu):
    """Return the probabilities of abs(n) <= 120: of two Poisson numbers of mean mu / 2 each."""
    poisson = [mp.exp(-mu / 2) * (mu / 2) ** k / mp.factorial(k) for k in range(280)]
    found = [mp.fsum(map(mp.fmul, poisson[n:], poisson)) for n in range(121)]
    assert mp.almosteq(found[3], mp.exp(-mu) * mp.besseli(3, mu), 1e-14)
    return {n: found[abs(n)] for n in range(-120, 121)}


def gained(pairs, epsilon):
    """Return the sum of (p - e^epsilon q)_+ over pairs of masses."""
    return mp.fsum(max(0, p - mp.exp(epsilon) * q) for p, q in pairs)


@pytest.mark.parametrize(("mu", "s"), [(0.03, 1), (2.0, 1), (2.0, 3), (40.0, 2)])
@pytest.mark.parametrize(("relation", "times"), [(ADD, 1), (REPLACE, 2)])
def test_one_number_is_priced_by_its_masses(mu, s, relation, times):
    event, noise = for_group(events.SkellamDpEvent(mu, 1), s), masses(mp.mpf(mu))
    once = [(noise.get(n - times * s, 0), noise.get(n, 0)) for n in range(-120, 121)]
    likely = [(p, q) for p, q in once if p > 1e-20]
    twice = [(a * c, b * d) for (a, b), (c, d) in itertools.product(likely, likely)]
    asked = [(event, once, at) for at in (0.0, 0.7, 3.0)]
    for asked_of, pairs, at in (*asked, (events.SelfComposedDpEvent(event, 2), twice, 1.0)):
        answer = delta(asked_of, epsilon=at, neighboring_relation=relation)
        truth = gained(pairs, at)
        assert answer.lower * (1 - 1e-9) <= truth <= answer.upper <= answer.lower * (1 + 1e-6)


@pytest.mark.parametrize("q", [0.01, 0.6])
def test_samples_are_mixtures_of_its_masses(q):
    event, noise = events.PoissonSampledDpEvent(q, events.SkellamDpEvent(3.0, 2)), masses(mp.mpf(3))
    n = range(-118, 119)
    up, down = ([(1 - mp.mpf(q)) * noise[k] + q * noise[k - s] for k in n] for s in (2, -2))
    for relation, other in ((ADD, [noise[k] for k in n]), (REPLACE, down)):
        pairs = zip(up, other, strict=True), zip(other, up, strict=True)
        truth = max(gained(each, 0.3) for each in pairs)
        answer = delta(event, epsilon=0.3, neighboring_relation=relation)
        assert answer.lower * (1 - 1e-12) <= truth <= answer.upper <= answer.lower * (1 + 1e-9)


@pytest.mark.parametrize("sigma", [10.0, 160.0])
def test_much_noise_is_gaussian(sigma):
    """Its loss at u sigma is asinh(x / mu), smaller than x / mu by the share u^2 / (6 mu)."""
    skellam, gaussian = events.SkellamDpEvent(sigma**2, 2), events.GaussianDpEvent(sigma / 2)
    less = 1 - epsilon(skellam, delta=1e-6) / epsilon(gaussian, delta=1e-6)
    assert 2.5**2 / (6 * sigma**2) < less < 4**2 / (6 * sigma**2)


@pytest.mark.parametrize(("mu", "shifts"), [(1.0, (1,)), (4.0, (3, 1)), (30.0, (2, 2, 1, 1))])
def test_renyi_divergences_of_vectors_are_at_most_the_bound(mu, shifts):
    norms = sum(shifts), sum(s * s for s in shifts) ** 0.5
    (loss, _), noise = dominating_pairs(events.SkellamDpEvent(mu, *norms), ADD), masses(mp.mpf(mu))
    for order in (1.25, 2.0, 3.0, 3.5, 8.0):
        terms = (
            [noise[k - s] ** order * noise[k] ** (1 - order) for k in range(-110, 111)]
            for s in shifts
        )
        truth = mp.log(mp.fprod(map(mp.fsum, terms)))
        assert (
            truth <= loss.log_mgf_bound(order - 1) <= loss.moments([order - 1])[0, 0] * (1 + 1e-9)
        )
