"""Samplers under every relation, against enumeration, mpmath and dp-accounting."""

import itertools
import math
from functools import partial

import mpmath
import numpy as np
import pytest
from _integrals import POINTS, density, integral, power, transform
from contracts._events import WRITTEN, made
from dp_accounting.pld import privacy_loss_distribution as builders
from dp_accounting.privacy_accountant import NeighboringRelation
from flint import acb, arb
from scipy.special import ndtr
from scipy.stats import binom

from dpcal import accountants
from dpcal.accountants import events
from dpcal.accountants.directions import RELATIONS
from dpcal.accountants.losses.gaussian import log_gaussian_delta
from dpcal.accountants.losses.gaussian_mixtures import mixture_of_gaussians, replaced_record
from dpcal.accountants.mechanisms.decompose import decompose


def gaussian_stick(alpha, sigma, one, other):
    """H_alpha of Gaussian noise about two laws of sums on a line, integrated between its roots."""
    (above, p), (below, q) = ((np.divide(sums, sigma), np.array(law)) for sums, law in (one, other))
    # An error of h^2 in a root, where the two densities meet, costs the order of h^4.
    x = np.linspace(-16, 16, 4_001)
    gap = p @ np.exp(-0.5 * (x - above[:, None]) ** 2)
    gap -= alpha * q @ np.exp(-0.5 * (x - below[:, None]) ** 2)
    turns = np.flatnonzero(np.sign(gap[1:]) != np.sign(gap[:-1]))
    roots = x[turns] - gap[turns] * (x[1] - x[0]) / (gap[turns + 1] - gap[turns])
    ends = np.array([-np.inf, *roots, np.inf])[:, None]
    masses = np.diff(ndtr(ends - above) @ p - alpha * ndtr(ends - below) @ q)
    return np.maximum(masses, 0.0).sum()


def discrete_stick(alpha, log_mass, one, other):
    """Return H_alpha of noise on the whole numbers about two laws of sums."""
    x = np.arange(-110, 111)
    p, q = (
        np.exp(log_mass(x - np.array(sums)[:, None])).T @ weights for sums, weights in (one, other)
    )
    return np.maximum(p - alpha * q, 0).sum() / np.exp(log_mass(x)).sum()


def equally_likely(batches):
    """Return the sums of all batches, and their probabilities."""
    sums = [sum(chosen) for chosen in batches]
    return sums, [1 / len(sums)] * len(sums)


def poisson_batches(records, q, largest=math.inf):
    """Sums over all Poisson samples, of which at most ``largest`` random records are kept."""
    sums, weights = [], []
    for size in range(len(records) + 1):
        kept = min(size, largest)
        chance = binom.pmf(size, len(records), q)
        # A random subset of a random subset of given size is a random subset.
        found, each = equally_likely(itertools.combinations(records, int(kept)))
        sums += found
        weights += [chance * weight for weight in each]
    return sums, weights


def neighbors(relation, size):
    """Yield data sets on a line, the larger with ``size`` records, that differ in the first one."""
    values = (-1.0, 0.0, 1.0)
    for rest in itertools.combinations_with_replacement(values, size - 1):
        for x in values:
            others = {
                "add-or-remove-one": [rest],
                "replace-special": [(0.0, *rest)],
                "replace-one": [(y, *rest) for y in values if y > x],
            }
            for other in others[relation]:
                yield (x, *rest), other
                yield other, (x, *rest)


THEIRS = dict(zip(RELATIONS, NeighboringRelation, strict=True))


def poisson(q, noise_multiplier, steps=1):
    step = events.PoissonSampledDpEvent(q, events.GaussianDpEvent(noise_multiplier))
    return events.SelfComposedDpEvent(step, steps)


def single(event, alpha, relation):
    return float(accountants.delta(event, epsilon=math.log(alpha), neighboring_relation=relation))


# -- enumeration

DISCRETE = [
    (events.DiscreteGaussianDpEvent(1.2), lambda x: -0.5 * (x / 1.2) ** 2),
    (events.DiscreteLaplaceDpEvent(0.6, 1), lambda x: -0.6 * np.abs(x)),
]


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("alpha", [1.0, 1.15, 1.6])
def test_no_data_set_exceeds_the_bound(relation, alpha):
    """Every batch of four records on a line, for each sampler and noise."""
    sigma, q, size = 1.4, 0.35, 4
    gaussian = events.GaussianDpEvent(sigma)
    stick = partial(gaussian_stick, alpha, sigma)

    def drawn(data, largest=math.inf):
        return poisson_batches(data, q, largest)

    def fixed(data):
        return equally_likely(itertools.combinations(data, 2))

    def repeated(data):
        return equally_likely(itertools.product(data, repeat=2))

    # Poisson and fixed-size bounds are attained, but for a blank record in a fixed-size batch.
    cases = []
    for noise, measure in (
        (gaussian, stick),
        *((noise, partial(discrete_stick, alpha, log_mass)) for noise, log_mass in DISCRETE),
    ):
        batch = events.SampledWithoutReplacementDpEvent(size, 2, noise)
        cases.append((events.PoissonSampledDpEvent(q, noise), drawn, measure, True))
        cases.append((batch, fixed, measure, relation != "replace-special"))
    truncated = events.TruncatedSubsampledGaussianDpEvent(size, q, 2, sigma)
    cases.append((truncated, partial(drawn, largest=2), stick, False))
    if alpha == 1.15:
        event = events.SampledWithReplacementDpEvent(size, 2, gaussian)
        cases.append((event, repeated, stick, False))
    for event, sums, measure, attained in cases:
        bound = single(event, alpha, relation)
        worst = max(measure(sums(one), sums(other)) for one, other in neighbors(relation, size))
        assert worst <= bound + 1e-9, event
        assert not attained or worst == pytest.approx(bound, abs=1e-7), event


def log_delta_when_replaced(q, sigma, epsilon):
    """Log delta of one step when a record is replaced, at 60 digits."""
    with mpmath.workdps(60):
        q, sigma, epsilon = (mpmath.mpf(value) for value in (q, sigma, epsilon))

        def excess(x):
            up, down = (mpmath.exp((s * 2 * x - 1) / (2 * sigma**2)) for s in (1, -1))
            return mpmath.log((1 - q + q * up) / (1 - q + q * down)) - epsilon

        # The loss rises in x and is far above epsilon at the right end.
        low, high = mpmath.mpf(0), sigma**2 * (epsilon - mpmath.log(q)) + 1
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) < 0 else (low, middle)

        def above(mean):
            return mpmath.erfc((low - mean) / sigma / mpmath.sqrt(2)) / 2

        mixed = (1 - q) * above(0) + q * above(1)
        return mpmath.log(mixed - mpmath.exp(epsilon) * ((1 - q) * above(0) + q * above(-1)))


@pytest.mark.parametrize(("q", "sigma", "epsilon"), POINTS["replaced_once"])
def test_one_step_with_a_replaced_record_keeps_its_digits(q, sigma, epsilon):
    truth = float(log_delta_when_replaced(q, sigma, epsilon))
    event = events.dpsgd(sampling_probability=q, noise_multiplier=sigma, steps=1)
    answer = accountants.log_delta(event, epsilon=epsilon, neighboring_relation="replace-one")
    assert answer.lower <= truth <= answer.upper
    assert answer.upper - answer.lower < 1e-7


def test_replaced_records_in_the_plane_do_not_exceed_those_on_a_line():
    q, sigma, alpha = 0.3, 1.0, 1.2
    x = np.linspace(-7, 7, 301)
    base = np.exp(-0.5 * (x[:, None] ** 2 + x**2)) / (2 * math.pi) * (x[1] - x[0]) ** 2

    def density(angle, norm):
        a, b = norm * math.cos(angle), norm * math.sin(angle)
        return base * (1 - q + q * np.exp(a * x[:, None] + b * x - norm**2 / 2))

    bound = single(poisson(q, sigma), alpha, "replace-one")
    first = density(0.0, 1.0)
    for angle in (0.5, 1.5, 2.5, math.pi):
        for norm in (0.6, 1.0):
            found = np.maximum(first - alpha * density(angle, norm), 0).sum()
            assert found <= bound + 2e-5
    assert found == pytest.approx(bound, abs=2e-5)


@pytest.mark.parametrize(
    ("size", "batch", "sigma", "epsilon"),
    [
        (50, 5, 1.7, 0.3),
        (10_000, 100, 1.0, 60.0),
        pytest.param(137, 806, 0.93, 983.0, marks=pytest.mark.study),
    ],
)
def test_draws_with_replacement_are_bounded_by_their_number(size, batch, sigma, epsilon):
    """The bound is the mean over the number of draws of one record, in closed form."""
    drawn, k, way = -math.expm1(batch * math.log1p(-1 / size)), np.arange(1, 40), "replace-one"
    shifted = epsilon - math.log(drawn) + math.log1p((drawn - 1) * math.exp(-epsilon))
    terms = binom.logpmf(k, batch, 1 / size)
    terms += [log_gaussian_delta(shifted, 2 * each / sigma)[0] for each in k]
    exact = float(np.exp(terms).sum())
    event = events.SampledWithReplacementDpEvent(size, batch, events.GaussianDpEvent(sigma))
    found = accountants.delta(event, epsilon=epsilon, neighboring_relation=way)
    assert found.lower <= exact * (1 + 1e-12)
    assert exact * (1 - 1e-6) <= found.upper <= exact * (1 + 1e-6) + 1e-18
    back = accountants.epsilon(event, delta=exact, neighboring_relation=way)
    assert back.lower <= epsilon * (1 + 1e-12)
    assert epsilon * (1 - 1e-9) <= back.upper < epsilon * 1.03


def tail(k, trials, q):
    """The chance of more than k of so many trials."""
    with mpmath.workdps(60):
        q = mpmath.mpf(q)
        terms = (mpmath.binomial(trials, i) * q**i * (1 - q) ** (trials - i) for i in range(k + 1))
        return float(1 - mpmath.fsum(terms))


@pytest.mark.parametrize(
    ("size", "q", "batch"), [(20, 0.5, 15), (20, 0.1, 2), (100, 0.9, 60), (10**12, 1e-12, 2)]
)
def test_truncation_lies_between_ends_that_round_both_ways(size, q, batch):
    """The mean over full and other batches of a blanked record's deltas, in closed form."""
    sigma, epsilon = 2.0, 0.05
    full, expected = tail(batch - 1, size - 1, q), 0.0
    share = tail(batch, size, q) * batch / (full * size)
    for chance, drawn, gap in ((1 - full, q, 1), (full, share, 2)):
        shifted = math.log1p(math.expm1(epsilon) / drawn)
        expected += chance * drawn * math.exp(log_gaussian_delta(shifted, gap / sigma)[0])
    event = events.TruncatedSubsampledGaussianDpEvent(size, q, batch, sigma)
    found = accountants.delta(event, epsilon=epsilon, neighboring_relation="replace-special")
    assert expected * (1 - 1e-7) <= found.lower <= expected <= found.upper <= expected * (1 + 1e-7)


# -- transforms


def _weight(mixture, sigma, x):
    scale = arb(sigma) ** 2
    return sum((w * ((a * x - arb(a) ** 2 / 2) / scale).exp() for a, w in mixture), acb(0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss",
    [
        replaced_record(sampling_probability=0.01, noise_multiplier=1.0),
        replaced_record(sampling_probability=0.3, noise_multiplier=0.5),
        *mixture_of_gaussians([0.0, 1.0, 2.0], [0.9, 0.08, 0.02], standard_deviation=0.8),
        *mixture_of_gaussians([1.0, 3.0], [0.6, 0.4], standard_deviation=1.5),
    ],
)
def test_transform_agrees_with_integrals(loss):
    sigma = loss.noise_multiplier
    for z in (1.5, -0.4, 1 + 4j):

        def integrand(x, analytic, z=z):
            p, q = _weight(loss.numerator, sigma, x), _weight(loss.denominator, sigma, x)
            return density(x, sigma) * power(p, acb(z) + 1, analytic) * power(q, -acb(z), analytic)

        gap = abs(transform(loss, z) - complex(integral(integrand, [-22, 0, 22])))
        assert gap < 1e-13 * abs(transform(loss, complex(z).real))
    for c in (0.5, 2.0, 10.0, 60.0):
        assert loss.cumulants([c])[0, 0] <= loss.log_mgf_bound(c) * (1 + 1e-12)


# -- dp-accounting


@pytest.mark.slow
@pytest.mark.parametrize("relation", THEIRS)
@pytest.mark.parametrize("batch", [95, 160])
def test_truncation_is_no_dearer_than_loss_distributions_say(relation, batch):
    """Theirs has distance 4, ours 2, between the sums when a record displaces another one."""
    run, more = (10_000, 0.01, batch, 1.5), {"neighboring_relation": THEIRS[relation]}
    theirs = builders.from_truncated_subsampled_gaussian_mechanism(
        *run, value_discretization_interval=1e-3, **more
    ).self_compose(100)
    event = events.SelfComposedDpEvent(events.TruncatedSubsampledGaussianDpEvent(*run), 100)
    ours = accountants.epsilon(event, delta=1e-6, neighboring_relation=relation)
    assert ours <= theirs.get_epsilon_for_delta(1e-6)
    free = accountants.epsilon(poisson(0.01, 1.5, 100), delta=1e-6, neighboring_relation=relation)
    assert ours > free
    if batch == 160:
        assert ours == pytest.approx(free, rel=0.05)


# -- conventions and limits


def test_truncation_that_never_or_always_happens():
    for relation in RELATIONS:
        never = events.TruncatedSubsampledGaussianDpEvent(100, 0.1, 100, 1.5)
        assert decompose(never, relation) == decompose(poisson(0.1, 1.5), relation)
        always = events.TruncatedSubsampledGaussianDpEvent(100, 1.0, 10, 1.5)
        gaussian = events.GaussianDpEvent(1.5)
        fixed = events.SampledWithoutReplacementDpEvent(100, 10, gaussian)
        assert decompose(always, relation) == decompose(fixed, relation)


@pytest.mark.slow
@pytest.mark.parametrize(("event", "q", "delta", "relation"), WRITTEN["rare_uses"])
def test_one_use_with_rare_sampling_and_much_noise(event, q, delta, relation):
    event = made(event)
    found = accountants.epsilon(event, delta=delta, neighboring_relation=relation)
    assert 0 < found.upper - found.lower < 1e-2 * found.upper
    # One use costs at most the Gaussian's epsilon at delta / q, times about q, twice for each way.
    alone = accountants.epsilon(events.GaussianDpEvent(1500.0), delta=delta / q)
    assert found.upper <= math.log1p(q * math.expm1(alone)) * 2.01
    at_both_ends = [
        accountants.delta(event, epsilon=end, neighboring_relation=relation)
        for end in (found.lower, found.upper)
    ]
    assert at_both_ends[1].upper <= delta * (1 + 1e-9)
    assert at_both_ends[0].upper >= delta * (1 - 1e-9)
