"""Skellam noise against its masses in mpmath, against Gaussian noise, and its Renyi divergences."""

import itertools

import mpmath as mp
import pytest

from dpcal.accountants import delta, epsilon, events
from dpcal.accountants.losses.failure import WholeOrders
from dpcal.accountants.mechanisms.row import dominating_pairs
from dpcal.calibrate.groups import for_group

RELATIONS = "add-or-remove-one", "replace-one"


def masses(mu, far=120):
    """Return the probabilities exp(-mu) I_n(mu) of abs(n) <= far, by their definition."""
    found = [mp.exp(-mu) * mp.besseli(n, mu) for n in range(far + 1)]
    return {n: found[abs(n)] for n in range(-far, far + 1)}


def gained(pairs, epsilon):
    """Return the sum of (p - e^epsilon q)_+ over pairs of masses."""
    return mp.fsum(max(0, p - mp.exp(epsilon) * q) for p, q in pairs)


@pytest.mark.parametrize("mu", [0.03, 2.0, 40.0])
def test_masses_are_those_of_two_poisson_numbers_of_half_the_variance(mu):
    poisson = [
        mp.exp(-mp.mpf(mu) / 2) * (mp.mpf(mu) / 2) ** k / mp.factorial(k) for k in range(120)
    ]
    found = masses(mp.mpf(mu))
    for n in (0, 1, 5):
        assert mp.almosteq(found[n], mp.fsum(map(mp.fmul, poisson[n:], poisson)), 1e-14)
    assert mp.almosteq(mp.fsum(n * n * p for n, p in found.items()), mu, 1e-12)


@pytest.mark.parametrize(("mu", "s"), [(0.03, 1), (2.0, 1), (2.0, 3), (40.0, 2)])
@pytest.mark.parametrize("relation", RELATIONS)
def test_one_number_is_priced_by_its_masses(mu, s, relation):
    event, shift = events.SkellamDpEvent(mu, s), s * (1 + (relation == RELATIONS[1]))
    noise = masses(mp.mpf(mu))
    once = [(noise.get(n - shift, 0), noise.get(n, 0)) for n in range(-120, 121)]
    for at in (0.0, 0.7, 3.0):
        answer = delta(event, epsilon=at, neighboring_relation=relation)
        assert answer.lower <= gained(once, at) * (1 + mp.mpf(10) ** -15)
        assert gained(once, at) <= answer.upper <= answer.lower * (1 + 1e-9)
    likely = [(p, q) for p, q in once if p > 1e-20]
    twice = [(a * c, b * d) for (a, b), (c, d) in itertools.product(likely, likely)]
    answer = delta(events.SelfComposedDpEvent(event, 2), epsilon=1.0, neighboring_relation=relation)
    assert answer.lower * (1 - 1e-9) <= gained(twice, 1.0) <= answer.upper


@pytest.mark.parametrize("q", [0.01, 0.6])
def test_samples_are_mixtures_of_its_masses(q):
    event, noise = events.PoissonSampledDpEvent(q, events.SkellamDpEvent(3.0, 2)), masses(mp.mpf(3))
    n, p = range(-118, 119), mp.mpf(q)
    moved = {s: [(1 - p) * noise[k] + p * noise[k - s] for k in n] for s in (2, -2)}
    plain = [noise[k] for k in n]
    for relation, one, other in zip(
        RELATIONS, (plain, moved[-2]), (moved[2], moved[2]), strict=True
    ):
        truth = max(gained(zip(*pair, strict=True), 0.3) for pair in ((one, other), (other, one)))
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
    l2 = sum(s * s for s in shifts) ** 0.5
    loss = dominating_pairs(events.SkellamDpEvent(mu, sum(shifts), l2), RELATIONS[0])[0]
    noise, last = masses(mp.mpf(mu), 160), -mp.inf
    for order in (1.25, 2.0, 3.0, 3.5, 8.0):
        moments = (
            mp.fsum(noise[k - s] ** order * noise[k] ** (1 - order) for k in range(-150, 151))
            for s in shifts
        )
        truth, bound = mp.log(mp.fprod(moments)), loss.log_mgf_bound(order - 1)
        assert last < truth <= bound
        last = truth
        assert mp.almosteq(loss.moments([order - 1])[0, 0], bound)


def test_the_bound_between_whole_orders_is_a_chord():
    class Cubes(WholeOrders):
        def divergence(self, order):
            return float((order - 1) ** 2)

    assert Cubes().log_mgf_bound(2.0) == pytest.approx(8)
    assert Cubes().log_mgf_bound(2.25) == pytest.approx(0.75 * 8 + 0.25 * 27)
    assert Cubes().log_mgf_bound(0.5) == pytest.approx(0.5)


def test_a_group_moves_the_sum_so_many_times_as_far():
    assert for_group(events.SkellamDpEvent(9.0, 2), 3) == events.SkellamDpEvent(9.0, 6)
    vector = for_group(events.SkellamDpEvent(9.0, 2, 1.5), 3)
    assert vector.sensitivity == 6
    assert 4.5 <= vector.l2_sensitivity < 4.5 + 1e-14
