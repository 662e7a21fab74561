"""No upper law loses mass, no lower law gains any: random laws, and events with huge losses."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import logsumexp
from scipy.stats import binom

from dpcal.accountants import delta, epsilon, events
from dpcal.accountants.inversion import finite_laws
from dpcal.accountants.inversion.amplification import loss_of, sampled
from dpcal.accountants.inversion.finite_laws import FiniteLaw, cut, gathered, joined, summed
from dpcal.accountants.losses.base import NO_LOSS
from dpcal.errors import BrokenLaw

GAUSSIANS = events.SelfComposedDpEvent(events.GaussianDpEvent(0.05), 8)
BOTH = events.ComposedDpEvent([GAUSSIANS, events.LaplaceDpEvent(1.0)])
MANY = events.SelfComposedDpEvent(events.DiscreteLaplaceDpEvent(1.3, 1), 2000)


@st.composite
def laws(draw, most=24):
    """Draw a law whose P and Q have mass 1, with losses of up to 1e5 nats or of a few."""
    scale = draw(st.sampled_from([1e-3, 1.0, 30.0, 1e3, 1e5]))
    part = st.floats(-1.0, 1.0).map(lambda x: round(x, 6) * scale)
    values = np.array(sorted(draw(st.lists(part, min_size=2, max_size=most, unique=True))))
    depths = st.lists(st.floats(0.0, 1.0), min_size=len(values), max_size=len(values))
    logs = -draw(st.sampled_from([1.0, 100.0, 1e5])) * np.array(draw(depths))
    logs -= logsumexp(logs)
    return FiniteLaw(values - logsumexp(logs + values), logs)


def log_delta_of(law, at):
    """Return log of the sum of P_j - exp(at) Q_j over losses above ``at``."""
    above = law.values > at
    gaps = law.values[above] - at
    terms = law.log_reference[above] + law.values[above] + np.log(-np.expm1(-gaps))
    return logsumexp(terms) if len(terms) else -math.inf


def holds(law, exact):
    """Return whether a law and the one below it keep their masses and bound the profile of one."""
    size = 1e-12 * (100 + np.abs(exact.values).max() + np.abs(exact.log_reference).max())
    for each in (law, law.down):
        for power in (0, 1):
            assert abs(logsumexp(each.log_reference + power * each.values)) < size
    ends = exact.values[[0, -1]]
    for at in np.concatenate([np.linspace(*ends, 7)[1:-1], [0.0, 1.0], exact.values[:-1:5]]):
        # Rounding moves a loss, and the logarithm of a mass, by less than this.
        assert log_delta_of(law, at - size) >= log_delta_of(exact, at) - size
        assert log_delta_of(law.down, at + size) <= log_delta_of(exact, at) + size
    return True


def gathering(law, most):
    assert holds(gathered(law, most), law)


def sums(one, other):
    exact = joined(one, other, np.add.outer(one.values, other.values))
    assert holds(summed([(one, 1), (other, 1)], few=4), exact)
    assert holds(gathered(exact, 9), exact)


def many_uses(law, times):
    exact = law
    for _ in range(times - 1):
        exact = joined(exact, law, np.add.outer(exact.values, law.values))
    assert holds(summed([(law, times)], few=5), exact)


def samples(law, q):
    mixed = np.logaddexp(math.log1p(-q), math.log(q) + law.values)
    removed = FiniteLaw(mixed, law.log_reference)
    added = FiniteLaw(-mixed[::-1], (law.log_reference + mixed)[::-1])
    size = 1e-12 * (100 + np.abs(law.values).max() + np.abs(law.log_reference).max())
    pairs = sampled(gathered(law, 6), q, "a law")
    for loss, exact in zip(pairs, (removed, added), strict=True):
        for at in (0.0, 0.1, 1.0, 10.0, 1e3):
            truth = log_delta_of(exact, at)
            above, below = (
                each.log_delta(at + shift)[0] if each is not NO_LOSS else -math.inf
                for each, shift in ((loss, -size), (loss.below or loss, size))
            )
            # Losses of rounding's size, and what no double holds, are none.
            assert above >= truth - 1e-9 or truth < -700 or loss is NO_LOSS
            assert below <= truth + 1e-9


KEEP = [
    (gathering, laws(), st.integers(3, 12)),
    (sums, laws(8), laws(8)),
    (many_uses, laws(6), st.integers(2, 5)),
    (samples, laws(), st.floats(1e-9, 1 - 1e-9)),
]


@pytest.mark.slow
@pytest.mark.parametrize("examples", [50, pytest.param(2_000, marks=pytest.mark.study)])
@pytest.mark.parametrize(("check", "one", "other"), KEEP, ids=[each.__name__ for each, *_ in KEEP])
def test_all_masses_are_kept(check, one, other, examples):
    settings(max_examples=examples, deadline=None)(given(one, other)(check))()


@pytest.mark.slow
def test_a_law_that_loses_mass_is_refused(monkeypatch):
    law = FiniteLaw(np.array([-800.0, 0.0, 800.0]), np.log([0.5, 0.5, 1e-300]) - [0, 0, 120.0])
    with pytest.raises(BrokenLaw, match="lost"):
        loss_of(law, "a law")
    more = FiniteLaw(np.zeros(1), np.zeros(1), below=FiniteLaw(np.ones(1), np.zeros(1)))
    with pytest.raises(BrokenLaw, match="gained"):
        loss_of(more, "a law")
    with pytest.raises(BrokenLaw, match="cutting"):
        cut(np.array([0.0, 1.0]), np.zeros(1), np.array([1.5]))
    moved = finite_laws._moved

    def without_the_last(law, ends):
        found = moved(law, ends)
        return FiniteLaw(found.values[:-1], found.log_reference[:-1])

    monkeypatch.setattr(finite_laws, "_moved", without_the_last)
    event = events.PoissonSampledDpEvent(0.1, events.SelfComposedDpEvent(BOTH, 2))
    with pytest.raises(BrokenLaw, match="fault of dpcal"):
        epsilon(event, delta=1e-5)


def delta_of_sampled_signs(q, a, n, at):
    """Return delta when a record is removed from a sample with n answers whose losses are +-a."""
    p, k = 1 / (1 + math.exp(-a)), np.arange(n + 1)
    logs, losses = binom.logpmf(k, n, p), a * (2.0 * k - n)
    mixed = np.logaddexp(math.log1p(-q), math.log(q) + losses)
    above = mixed > at
    terms = (logs - losses + mixed)[above] + np.log(-np.expm1(at - mixed[above]))
    return math.exp(logsumexp(terms))


@pytest.mark.slow
@pytest.mark.parametrize("q", [1e-3, pytest.param(1.0, marks=pytest.mark.study)])
def test_an_answer_beside_others_costs_no_less(q):
    found = epsilon(events.PoissonSampledDpEvent(q, BOTH), delta=1e-4)
    alone = epsilon(events.PoissonSampledDpEvent(q, GAUSSIANS), delta=1e-4)
    assert alone.lower > 1600
    assert alone.lower <= found.upper < 1.02 * alone.upper
    assert found.lower <= found.upper < 1.02 * found.lower


@pytest.mark.slow
def test_many_answers_on_a_sample():
    event = events.PoissonSampledDpEvent(1e-3, MANY)
    truth = delta_of_sampled_signs(1e-3, 1.3, 2000, 1.0)
    assert truth == pytest.approx(1e-3)
    found = delta(event, epsilon=1.0)
    assert found.lower <= truth * (1 + 1e-9)
    assert truth <= found.upper * (1 + 1e-9)
    for accountant in ("characteristic", "renyi"):
        at = epsilon(event, delta=6e-4, accountant=accountant)
        assert delta_of_sampled_signs(1e-3, 1.3, 2000, at.upper) <= 6e-4
        assert delta_of_sampled_signs(1e-3, 1.3, 2000, at.lower) >= 6e-4 * (1 - 1e-9)


@pytest.mark.slow
def test_tiny_deltas_at_large_epsilons():
    """More than a thousand nats, and a delta of 1e-74."""
    inner = events.SelfComposedDpEvent(events.DiscreteLaplaceDpEvent(0.5, 1), 6000)
    found = delta(events.PoissonSampledDpEvent(0.5, inner), epsilon=1400.0)
    truth = delta_of_sampled_signs(0.5, 0.5, 6000, 1400.0)
    assert found.lower <= truth <= found.upper < 10 * truth


@pytest.mark.study
def test_a_million_answers_on_a_sample():
    """Losses of 5e5 nats, of which no exponential is a double."""
    inner = events.SelfComposedDpEvent(events.DiscreteLaplaceDpEvent(0.5, 1), 10**6)
    found = delta(events.PoissonSampledDpEvent(0.01, inner), epsilon=1.0)
    assert found.lower <= 0.01 <= found.upper < 0.0101


@pytest.mark.slow
def test_batches_of_fixed_size_and_epochs():
    inner = events.ComposedDpEvent([events.GaussianDpEvent(0.0366), events.LaplaceDpEvent(2.0)])
    batch = events.SampledWithoutReplacementDpEvent(1000, 1, inner)
    found = delta(batch, epsilon=1.0, neighboring_relation="replace-one")
    # A replaced record is told apart for certain if it is in the batch, with probability 1e-3.
    assert found.lower <= 1e-3 <= found.upper < 1.001e-3
    epoch = delta(events.AllocatedDpEvent(BOTH, 4), epsilon=1.0)
    alone = delta(events.AllocatedDpEvent(GAUSSIANS, 4), epsilon=1.0)
    assert epoch.upper >= alone.lower > 0.2
    assert epoch.upper >= 1 - 1e-9
