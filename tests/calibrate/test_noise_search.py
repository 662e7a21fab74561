"""The search for noise works in any unit, asks near what it asked, and ends in true sentences."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, norm

import dpcal
from dpcal import accountants, calibrate, events
from dpcal.errors import TargetUnreachable

TARGET = {"epsilon": 1.0, "delta": 1e-6}


class Asked:
    """An event by its noise multiplier, which counts and notes what it is asked."""

    def __init__(self, event):
        self.event, self.noises = event, []

    def __call__(self, noise_multiplier):
        self.noises.append(noise_multiplier)
        return self.event(noise_multiplier)

    @property
    def farthest(self):
        """The largest factor by which a question lay outside of all before it."""
        low = high = self.noises[0]
        factor = 1.0
        for noise in self.noises:
            factor = max(factor, noise / high, low / noise)
            low, high = min(low, noise), max(high, noise)
        return factor


def dpsgd(sigma):
    return events.dpsgd(sampling_probability=0.01, noise_multiplier=sigma, steps=1000)


def table(coins):
    """Noise of fair coins in a count, as a table that grows with it."""
    assert coins < 10_000, "a table that takes the memory"
    p, q = (binom.pmf(np.arange(-1, coins + 2) - shift, coins, 0.5) for shift in (1, 0))
    return accountants.from_pmf(p / p.sum(), q / q.sum())


KINDS = {
    "gaussian": events.GaussianDpEvent,
    "laplace": events.LaplaceDpEvent,
    "discrete": events.DiscreteGaussianDpEvent,
    "dpsgd": dpsgd,
    "two": lambda s: events.ComposedDpEvent([events.LaplaceDpEvent(s), events.GaussianDpEvent(s)]),
    "beside": lambda s: events.ComposedDpEvent([events.GaussianDpEvent(60.0), dpsgd(s)]),
    "fixed": lambda s: events.SampledWithoutReplacementDpEvent(1000, 20, events.GaussianDpEvent(s)),
    "drawn": lambda s: events.RandomAllocationDpEvent(s, 20),
    "selection": lambda s: events.RepeatAndSelectDpEvent(events.GaussianDpEvent(s), 3.0, 0.0),
    "threshold": lambda s: events.AboveThresholdDpEvent(s, s),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "unit"), [*zip(KINDS, itertools.cycle((1e-9, 1e12)), strict=False)]
)
def test_noise_in_any_unit(name, unit):
    target = {**TARGET, "neighboring_relation": "replace-special"}
    plain = calibrate.noise_multiplier(KINDS[name], **target)
    asked = Asked(lambda s: KINDS[name](s / unit))
    # Each is within 1e-6 of the smallest; Renyi bounds far from 1 are a little looser.
    found = calibrate.noise_multiplier(asked, **target)
    assert found == pytest.approx(plain * unit, rel=3e-6)
    assert len(asked.noises) < 40


@pytest.mark.parametrize(("epsilon", "delta"), [(5e-5, 5e-9), (1e-6, 1e-12), (1.0, 1e-6)])
@pytest.mark.parametrize("sensitivity", [1e-9, 1.0, 34_000.0, 1e9])
def test_a_gaussian_answer_by_its_closed_form(epsilon, delta, sensitivity):
    sigma = calibrate.noise_multiplier(
        lambda s: events.GaussianDpEvent(s / sensitivity), epsilon=epsilon, delta=delta
    )

    def delta_of(scale):
        # Balle and Wang 2018, Theorem 8; the difference loses digits where sigma is large.
        one, other = 0.5 / scale - epsilon * scale, -0.5 / scale - epsilon * scale
        return norm.cdf(one) - math.exp(epsilon) * norm.cdf(other)

    assert delta_of(sigma / sensitivity) <= delta * (1 + 1e-3)
    assert delta_of(0.999 * sigma / sensitivity) > delta * (1 - 1e-3)


ROUNDED = [
    round,
    lambda s: max(0.1, round(s, 1)),
    lambda s: max(2.0, s),
    lambda s: min(100.0, s),
    lambda s: max(2.0, 1 + round(s)),
    lambda s: 8.0 ** round(math.log(s, 8)),
]


@pytest.mark.parametrize("rounding", ROUNDED)
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_no_question_is_far_from_those_before(rounding, epsilon):
    asked = Asked(lambda s: events.GaussianDpEvent(rounding(s)))
    sigma = calibrate.noise_multiplier(asked, epsilon=epsilon, delta=1e-6)
    assert asked.farthest <= 8 * (1 + 1e-9)
    assert len(asked.noises) < 50
    assert accountants.epsilon(asked(sigma), delta=1e-6) <= epsilon
    assert accountants.epsilon(asked(sigma * (1 - 1e-6)), delta=1e-6) > epsilon


def test_a_table_that_grows_with_its_noise_is_asked_near_the_answer():
    asked = Asked(lambda s: table(max(1, round(s))))
    coins = round(calibrate.noise_multiplier(asked, **TARGET))
    assert asked.farthest <= 8
    # Sums of the tables themselves say which number of coins is the first.
    k = np.arange(200)
    deltas = [
        max(
            np.maximum(binom.pmf(k - a, n, 0.5) - math.e * binom.pmf(k - b, n, 0.5), 0).sum()
            for a, b in ((0, 1), (1, 0))
        )
        for n in (coins - 1, coins)
    ]
    assert deltas[1] <= 1e-6 < deltas[0]


@pytest.mark.parametrize("name", ["gaussian", "laplace", "dpsgd", "two", "discrete"])
def test_common_searches_ask_little(name):
    for epsilon, relation in itertools.product((0.1, 50.0), ("add-or-remove-one", "replace-one")):
        asked = Asked(KINDS[name])
        target = {"epsilon": epsilon, "delta": 1e-6, "neighboring_relation": relation}
        calibrate.noise_multiplier(asked, **target)
        assert asked.farthest <= 8 * (1 + 1e-9)
        assert len(asked.noises) <= (16 if name == "discrete" else 9)


def beside(s):
    return events.ComposedDpEvent([events.GaussianDpEvent(0.5), dpsgd(s)])


def sampled(s):
    return events.dpsgd(sampling_probability=1e-9, noise_multiplier=s, steps=10)


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        (lambda s: events.GaussianDpEvent(3.0), "up to 1e.18 .*the event is the same from 1 to"),
        (lambda s: events.GaussianDpEvent(300.0), "smallest that is tried, already.*is the same"),
        (lambda s: events.GaussianDpEvent(max(5.0, s)), "already gives.*the event is the same"),
        (lambda s: events.GaussianDpEvent(min(2.0, s)), "the event is the same from"),
        (lambda s: events.GaussianDpEvent(1 / s), "beyond it, the event's noise_multiplier must"),
        (beside, "what the event holds beside this noise already costs more"),
        (sampled, "sampling alone meets the target"),
        (lambda s: events.NonPrivateDpEvent(), "non-private"),
    ],
)
def test_why_nothing_meets_a_target(event, sentence):
    asked = Asked(event)
    with pytest.raises(TargetUnreachable, match=sentence):
        calibrate.noise_multiplier(asked, **TARGET)
    assert asked.farthest <= 8 * (1 + 1e-9)
    # A remainder that costs too much is found soon.
    assert len(asked.noises) < (15 if event is beside else 50)


def test_an_epsilon_that_the_least_noise_meets_is_refused():
    with pytest.raises(TargetUnreachable, match=r"smallest that is tried, already.*\[1e-06, "):
        calibrate.noise_multiplier(events.GaussianDpEvent, epsilon=1e13, delta=1e-3)


def test_a_table_with_a_small_largest_delta_is_not_met_by_sampling_alone():
    # Far below the target's delta where the noise is large, and far above where it is small.
    def event(s):
        noise = events.GaussianDpEvent(s * 1e9)
        return events.SampledWithoutReplacementDpEvent(1000, 20, noise)

    found = calibrate.noise_multiplier(event, **TARGET, neighboring_relation="replace-one")
    assert 1e-10 < found < 1e-8


def test_an_impossible_number_of_steps_is_found_soon_and_told_as_it_was_asked():
    counts = []

    def event(steps):
        counts.append(steps)
        return events.dpsgd(sampling_probability=0.01, noise_multiplier=0.3, steps=steps)

    with pytest.raises(TargetUnreachable, match=r"steps=1 misses epsilon=0\.1 at delta=1e-06\."):
        dpcal.steps(event, epsilon=0.1, delta=1e-6)
    assert len(counts) <= 6


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_a_risk_in_any_unit(unit):
    def needed(scale):
        return calibrate.noise_multiplier_for_risk(
            lambda s: events.GaussianDpEvent(s / scale), accountants.advantage, at_most=0.1
        )

    # Between two normal laws whose means are 1 / sigma apart, 2 Phi(1 / (2 sigma)) - 1.
    sigma = needed(unit) / unit
    assert 2 * norm.cdf(0.5 / sigma) - 1 == pytest.approx(0.1, rel=1e-5)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_other_accountants_compare_in_any_unit(unit):
    asked = {**TARGET, "accountants": ("characteristic", "renyi", "prv")}
    table = calibrate.compare(lambda s: events.GaussianDpEvent(s / unit), **asked)
    one, other, third = (row.noise_multiplier for row in table.rows)
    assert one <= other < 1.2 * one
    assert third == pytest.approx(one, rel=0.05)


def test_a_backend_that_has_no_price_says_so():
    for row in calibrate.compare(KINDS["drawn"], **TARGET, accountants=("pld", "prv")).rows:
        assert row.noise_multiplier is None
        assert row.note.endswith(".")
