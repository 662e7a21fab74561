"""The event of a federated round beside the mixtures over all draws of its clients."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from _tree import ROOT
from scipy import stats

from dpcal.accountants import delta, epsilon, events
from dpcal.adapters.rounds import RELATIONS, round_event

PLACES = np.linspace(-16.0, 16.0, 20_001)


def density(updates, k, noise):
    """Return the density of a noisy sum of k of these clients, all draws equally probable."""
    sums, counts = np.unique([sum(some) for some in combinations(updates, k)], return_counts=True)
    return stats.norm.pdf(PLACES[:, None], sums, noise) @ (counts / counts.sum())


def worse(updates, k, noise, at):
    """Return the delta at an epsilon of removing the first client, in the worse direction."""
    p, q = density(updates, k, noise), density(updates[1:], k, noise)
    return max(
        np.trapezoid(np.maximum(one - math.exp(at) * other, 0.0), PLACES)
        for one, other in ((p, q), (q, p))
    )


@pytest.mark.parametrize("clients", [4, 5, 6])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_no_draw_of_a_fixed_number_costs_more_than_its_event(k, clients):
    """Sums over every draw, on a grid; the worst pair attains the price of secret draws."""
    rng, noise = np.random.default_rng(k * clients), 1.5
    told = {"noise_multiplier": noise, "sample_size": k, "population_size": clients}
    told["sampling_method"] = "no-amplification"
    secret, open_ = round_event(**told, secret_draws=True), round_event(**told)
    for at in (0.1, 1.0):
        paid = delta(secret, epsilon=at).upper
        assert paid <= delta(open_, epsilon=at).upper
        for _ in range(6):
            updates = rng.choice([-1.0, 1.0, 0.0, 0.4], size=clients)
            assert worse(updates, k, noise, at) <= paid + 1e-6
        worst = np.array([1.0] + [-1.0] * (clients - 1))
        assert worse(worst, k, noise, at) == pytest.approx(paid, abs=1e-6)


def test_a_removed_client_is_replaced_in_a_round_of_a_fixed_number():
    """The sum moves by 2 C: half the noise multiplier, and never the price of C."""
    told = {"noise_multiplier": 3.0, "sample_size": 20, "population_size": 21}
    for rounds, least in ((1, 3.044), (10, 11.28), (100, 50.07)):
        one = round_event(**told, sampling_method="no-amplification")
        paid = epsilon(events.SelfComposedDpEvent(one, rounds), delta=1e-6)
        # 20 equal clients, and 21 of which one is their opposite: it is drawn 20 times in 21.
        pair = events.PoissonSampledDpEvent(20 / 21, events.GaussianDpEvent(1.5))
        true = epsilon(events.SelfComposedDpEvent(pair, rounds), delta=1e-6)
        assert least < true.lower < paid.lower
        # A Gaussian answer whose distance is 2 C sqrt(rounds) and whose noise is 3 C.
        mu = 2 * math.sqrt(rounds) / 3
        x = float(paid)
        closed = stats.norm.cdf(mu / 2 - x / mu) - math.exp(x) * stats.norm.cdf(-mu / 2 - x / mu)
        assert closed == pytest.approx(1e-6, rel=1e-6)


def test_the_numbers_of_the_page():
    """100 rounds with multiplier 3 at delta 1e-6, as docs/how_to/jax.md prints them."""
    told = {"noise_multiplier": 3.0, "sample_size": 20, "sampling_method": "no-amplification"}
    page = (ROOT / "docs" / "how_to" / "jax.md").read_text()
    secret = {"population_size": 500, "secret_draws": True}
    for event, digits, number in (
        (round_event(**told, population_size=500), 2, "53.16"),
        (round_event(**told, **secret), 3, "1.536"),
        (round_event(**told, **secret | {"population_size": 21}), 2, "50.08"),
        (events.GaussianDpEvent(3.0), 2, "20.78"),
    ):
        paid = epsilon(events.SelfComposedDpEvent(event, 100), delta=1e-6)
        assert f"{float(paid):.{digits}f}" == number
        assert number in page


@pytest.mark.parametrize("method", RELATIONS)
def test_more_clients_of_a_round_cost_no_less(method):
    def paid(k, n, secret):
        event = round_event(
            noise_multiplier=2.0, sample_size=k, population_size=n, sampling_method=method,
            secret_draws=secret,
        )  # fmt: skip
        return epsilon(event, delta=1e-6, neighboring_relation=RELATIONS[method])

    for secret in (False, True) if method == "no-amplification" else (False,):
        several = [float(paid(k, 50, secret)) for k in (1, 7, 25, 50)]
        assert several == sorted(several)
        # A removed client of N + 1 is less probable in a round than one of N.
        assert paid(7, 51, secret).lower <= paid(7, 50, secret).upper


def test_a_rate_is_not_rounded_down():
    """Some doubles nearest to k / N are below it."""
    for k in range(1, 50):
        for n in (49, 1_000_003):
            event = round_event(
                noise_multiplier=1.0, sample_size=k, population_size=n, sampling_method="poisson"
            )
            assert Fraction(event.sampling_probability) >= Fraction(k, n)
            assert event.sampling_probability <= 1
    assert Fraction(1 / 3) < Fraction(1, 3)
