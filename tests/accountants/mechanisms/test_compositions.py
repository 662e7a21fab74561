"""Compositions of mechanisms: what failure, sampling, order and count do to their cost."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from _integrals import worse
from contracts._events import WRITTEN, made
from dp_accounting.rdp import RdpAccountant

from dpcal import accountants
from dpcal.accountants import events
from dpcal.accountants.mechanisms.best_run import log_inverse_gamma
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.accountants.mechanisms.gaussian import noise_of
from dpcal.accountants.renyi import divergence

REPEAT = events.SelfComposedDpEvent
LAPLACE = events.LaplaceDpEvent(4.0)


def test_many_small_parts_beside_a_large_one_are_counted():
    """Each alone is below the rounding of the large one."""
    small = [1 + i * 1e-9 for i in range(600)]
    chances, noises = [0.5, *(5e-17 * x for x in small)], [1.0, *(1.2e8 * x for x in small)]
    claims = events.ComposedDpEvent([events.EpsilonDeltaDpEvent(0.0, x) for x in chances])
    kept = math.prod(1 - Fraction(x) for x in chances)
    assert accountants.delta(claims, epsilon=0.5).upper >= 1 - kept
    sums = events.ComposedDpEvent([events.GaussianDpEvent(x) for x in noises])
    precision = sum(1 / Fraction(x) ** 2 for x in noises)
    assert Fraction(noise_of(sums)) ** 2 * precision <= 1
    assert divergence(decompose(sums, "replace-one").directions[0], 2.0) >= 4 * precision


@pytest.mark.slow
@pytest.mark.parametrize("accountant", ["characteristic", "renyi"])
def test_failures_are_counted_exactly_beside_other_losses(accountant):
    claim = REPEAT(events.EpsilonDeltaDpEvent(0.0, 1e-4), 30)
    failing = 1 - (1 - 1e-4) ** 30
    both = events.ComposedDpEvent([claim, REPEAT(LAPLACE, 8)])
    for epsilon in (0.2, 1.0) if accountant == "renyi" else (1.0,):
        how = {"epsilon": epsilon, "accountant": accountant}
        alone, whole = (accountants.delta(each, **how) for each in (REPEAT(LAPLACE, 8), both))
        assert whole.upper == pytest.approx(failing + (1 - failing) * alone.upper, rel=1e-11)
    answer = accountants.epsilon(claim, delta=0.99 * failing, accountant=accountant)
    assert answer.lower == answer.upper == math.inf
    assert accountants.epsilon(claim, delta=1.01 * failing, accountant=accountant) == 0.0


@pytest.mark.parametrize("order", [1.5, 2.0, 17.0])
def test_divergences_of_concentrated_privacy_add(order):
    parts = [events.ZCDpEvent(0.2, 0.01), REPEAT(LAPLACE, 5), REPEAT(events.ZCDpEvent(0.1), 3)]
    (direction,) = decompose(events.ComposedDpEvent(parts), "replace-one").directions
    # Mironov (2017), Table II, for a doubled sensitivity.
    a = 2 / 4.0
    laplace = math.log(
        order / (2 * order - 1) * math.exp((order - 1) * a)
        + (order - 1) / (2 * order - 1) * math.exp(-order * a)
    ) / (order - 1)
    truth = 0.01 + 0.5 * order + 5 * laplace
    assert divergence(direction, order) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, math.inf])
@pytest.mark.parametrize("mean", [1.0, 4.0, 50.0])
def test_repeated_selection_against_a_peer(shape, mean):
    event = events.RepeatAndSelectDpEvent(events.GaussianDpEvent(5.0), mean, shape)
    ours = accountants.epsilon(REPEAT(event, 2), delta=1e-6, accountant="renyi")
    # The peer minimises over a list of orders.
    peer = RdpAccountant().compose(event, 2).get_epsilon(1e-6)
    assert ours <= peer * (1 + 1e-9)
    # The best of one run is that run, which the peer's theorem does not say.
    assert peer < ours * 1.01 or (mean == 1 and shape < math.inf)


def best_of(chances, generating):
    """The law of the best answer of several, the last one the best; and that of no answer."""
    below = [generating(each) for each in np.minimum(np.cumsum([0.0, *chances]), 1.0)]
    return np.array([below[0], *np.diff(below)])


@pytest.mark.parametrize(
    ("shape", "mean"), [(math.inf, 0.05), (math.inf, 0.6), (-0.5, 3.0), (-0.9, 1.5), (-0.2, 30.0)]
)
@pytest.mark.parametrize("accountant", ["renyi", "characteristic"])
def test_few_runs_and_heavy_tails_cost_no_less_than_the_worst_scores(shape, mean, accountant):
    gamma = math.exp(-log_inverse_gamma(mean, shape)) if shape < math.inf else math.nan

    def generating(x):
        if math.isinf(shape):
            return math.exp(mean * (x - 1))
        return ((1 - (1 - gamma) * x) ** -shape - 1) / (gamma**-shape - 1)

    # An answer that is 2-private whichever way its three results are ranked.
    single, other = np.array([0.6, 0.3, 0.1]), np.array([0.35, 0.3, 0.35])
    bound = float(np.abs(np.log(single / other)).max())
    event = events.RepeatAndSelectDpEvent(events.EpsilonDeltaDpEvent(bound, 0.0), mean, shape)
    for epsilon in (0.0, 0.5, 1.5, 2.5):
        found = accountants.delta(event, epsilon=epsilon, accountant=accountant)
        for order in itertools.permutations(range(3)):
            laws = (best_of(law[list(order)], generating) for law in (single, other))
            assert worse(*laws, epsilon) <= found.upper + 1e-12
    assert accountants.delta(event, epsilon=3.01 * bound, accountant=accountant).upper < 1e-9


@pytest.mark.parametrize("length", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("c", [0.5, 3.0, 40.0])
def test_the_divergence_of_a_bounded_range_is_that_of_the_worst_pair_of_losses(length, c):
    (direction,) = decompose(events.ExponentialMechanismDpEvent(length), "replace-one").directions
    tops = np.linspace(0.0, length, 20_001)
    chances = (math.exp(length) - np.exp(tops)) / math.expm1(length)
    worst = (chances * np.exp(c * tops) + (1 - chances) * np.exp(c * (tops - length))).max()
    found = c * divergence(direction, 1 + c)
    assert math.log(worst) * (1 - 1e-12) <= found <= math.log(worst) * (1 + 1e-6)
    # Cesar and Rogers (2021): bounded range implies zCDP with rho = length^2 / 8.
    assert found <= c * (1 + c) * length**2 / 8 * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [20.0, 28.0, 33.2, 36.0, 69.0])
def test_losses_that_are_all_but_certain(epsilon):
    # Of so many claims, only the largest loss lies above its sum less 0.1.
    times = 5000
    event = events.SelfComposedDpEvent(events.EpsilonDeltaDpEvent(epsilon, 0.0), times)
    below = times * epsilon - 0.1
    truth = -math.expm1(below - times * epsilon) * math.exp(-times * math.log1p(math.exp(-epsilon)))
    answer = accountants.delta(event, epsilon=below)
    assert answer.lower * (1 - 1e-9) <= truth <= answer.upper * (1 + 1e-9)
    assert answer.upper <= truth * (1 + 1e-6)
    # The product in doubles may lie a unit in its last place below the largest sum.
    assert accountants.delta(event, epsilon=times * epsilon) <= 2.0**-52 * times * epsilon


@pytest.mark.slow
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(("event", "largest"), WRITTEN["one_value"])
def test_losses_without_a_spread_have_an_epsilon(event, largest):
    event = made(event)
    answer = accountants.epsilon(event, delta=1e-9)
    assert answer.lower <= answer.upper <= largest * (1 + 1e-12)
    assert answer.upper >= largest * (1 - 1e-6)
    assert accountants.delta(event, epsilon=0.0).upper == 1.0


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_shifts_that_all_move_the_output():
    # No output without the record looks like one with it: exp(-loss) underflows.
    event = events.MixtureOfGaussiansDpEvent(0.04, [1.0, 1.5], [0.99, 0.01])
    composed = events.SelfComposedDpEvent(event, 3)
    # Three small shifts cost 938 give or take 43; one large one makes it 1328.
    assert accountants.delta(composed, epsilon=1.0).lower > 1 - 1e-9
    some = -math.expm1(3 * math.log1p(-0.01))
    assert accountants.delta(composed, epsilon=1150.0) == pytest.approx(some, rel=1e-3)


# -- where several theorems apply, the smallest bound is taken, and the answer names it


def _pure(epsilon, times=1):
    return events.SelfComposedDpEvent(events.EpsilonDeltaDpEvent(epsilon, 0.0), times)


def _best_of_geometric(p, mean):
    """P(best = 1) of a geometric number of runs, each 1 with probability p."""
    return 1 - (1 - p) / mean / (1 - (1 - p) * (1 - 1 / mean))


def _best_of_poisson(p, mean):
    """P(best = 1) of a Poisson number of runs."""
    return -math.expm1(-mean * p)


@pytest.mark.parametrize(
    ("shape", "published", "best"),
    [
        # (2 + shape) epsilon, which no finite Renyi order reaches.
        (1.0, 1.5, _best_of_geometric),
        # epsilon + mean tanh(epsilon / 2), by the same theorem at infinite order.
        (math.inf, 0.5 + 10 * math.tanh(0.25), _best_of_poisson),
    ],
)
def test_repeating_a_pure_mechanism_stays_pure(shape, published, best):
    runs = events.RepeatAndSelectDpEvent(_pure(0.5), 10.0, shape)
    answer = accountants.epsilon(runs, delta=1e-6, accountant="renyi")
    assert answer.method == "support"
    assert answer == pytest.approx(published, rel=1e-12)
    heads = 1 / (1 + math.exp(-0.5))
    high, low = best(heads, 10.0), best(1 - heads, 10.0)
    none = math.exp(-10.0) if shape == math.inf else 0.0
    assert max(math.log(high / low), math.log((1 - none - low) / (1 - none - high))) <= answer


@pytest.mark.parametrize("runs", [10.0, 50.0])
def test_the_best_of_many_runs_fails_if_any_run_does(runs):
    """Scores of runs that reveal everything may be the best: a geometric number of runs."""
    chance = 1e-6
    once = accountants.from_pmf([1 - chance, chance], [1.0, 0.0])
    best = events.RepeatAndSelectDpEvent(once, runs, 1.0)
    exact = runs * chance / (1 + chance * (runs - 1))
    assert exact <= accountants.delta(best, epsilon=3.0).upper < exact * 1.01
