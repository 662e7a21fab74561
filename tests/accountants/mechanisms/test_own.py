"""Mechanisms of a caller's own, against sums over outcomes, closed forms and other packages."""

import math
from fractions import Fraction

import numpy as np
import pytest
from _integrals import holds, product, worse
from dp_accounting.pld import privacy_loss_distribution as builders
from hypothesis import example, given, settings, strategies as st

from dpcal import accountants
from dpcal.accountants import events, from_pld, from_pmf, from_profile

SQUARE = events.SelfComposedDpEvent
POISSON = events.PoissonSampledDpEvent
# Outcomes of both laws, and of one of them alone, in either proportion.
PAIRS = [
    ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
    ([0.5, 0.3, 0.2, 0.0], [0.2, 0.3, 0.1, 0.4]),
    ([0.5, 0.1, 0.3, 0.1], [0.6, 0.2, 0.0, 0.2]),
    ([0.2, 0.5, 0.3, 0.0], [0.5, 0.3, 0.0, 0.2]),
    ([1.0, 0.0], [0.0, 1.0]),
]


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5, 40.0])
@pytest.mark.parametrize("pair", PAIRS)
def test_probabilities_are_summed_over_outcomes(pair, epsilon):
    p, q = map(np.array, pair)
    event = from_pmf(p, q)
    once = accountants.delta(event, epsilon=epsilon)
    assert holds(once, worse(p, q, epsilon))
    assert once.upper == pytest.approx(worse(p, q, epsilon), abs=1e-12)
    twice = accountants.delta(SQUARE(event, 2), epsilon=epsilon)
    assert holds(twice, worse(*product((p, q), (p, q)), epsilon))
    sampled = accountants.delta(POISSON(0.3, event), epsilon=epsilon)
    assert holds(sampled, worse(0.7 * q + 0.3 * p, q, epsilon), 1e-12)
    assert sampled.upper <= sampled.lower + 1e-12


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.7])
@pytest.mark.parametrize("pair", [PAIRS[0], ([0.4, 0.2, 0.4, 0.0], [0.0, 0.2, 0.4, 0.4])])
def test_batches_and_epochs_are_summed_over_outcomes(pair, epsilon):
    p, q = map(np.array, pair)
    event = from_pmf(p, q, neighboring_relation="replace-one")
    batch = events.SampledWithoutReplacementDpEvent(10, 3, event)
    inner = math.log1p(math.expm1(epsilon) / 0.3)
    truths = {"replace-one": 0.3 * worse(p, q, inner)}
    truths["add-or-remove-one"] = worse(0.7 * q + 0.3 * p, q, epsilon)
    for relation, truth in truths.items():
        found = accountants.delta(batch, epsilon=epsilon, neighboring_relation=relation)
        assert holds(found, truth)
        assert found.upper <= found.lower + 1e-12
    epoch = accountants.delta(events.AllocatedDpEvent(from_pmf(p, q), 2), epsilon=epsilon)
    drawn = (np.multiply.outer(p, q) + np.multiply.outer(q, p)) / 2
    assert holds(epoch, worse(drawn, np.multiply.outer(q, q), epsilon), 1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_samples_of_epochs_and_of_samples_are_summed_over_outcomes(seed):
    rng, (share, r) = np.random.default_rng(seed), (0.3, 0.6)
    p, q = rng.dirichlet([0.7] * 4), rng.dirichlet([0.7] * 4)
    p[seed % 4] = q[seed % 3] = 0.0
    p, q = p / p.sum(), q / q.sum()
    event, both = from_pmf(p, q), np.multiply.outer(q, q)
    thinned = share * p + (1 - share) * q
    for inner, law in (
        (
            events.AllocatedDpEvent(event, 2),
            (np.multiply.outer(p, q) + np.multiply.outer(q, p)) / 2,
        ),
        (SQUARE(POISSON(share, event), 2), np.multiply.outer(thinned, thinned)),
    ):
        for epsilon in (0.0, 0.4):
            found = accountants.delta(POISSON(r, inner), epsilon=epsilon)
            assert holds(found, worse(r * law + (1 - r) * both, both, epsilon), 1e-12)
            assert found.upper <= found.lower + 1e-11


def test_claims_have_no_lower_end_wherever_they_are_sampled():
    claim = from_profile([0.0, 1.0], [0.4, 0.1])
    for event in (claim, POISSON(0.5, claim), events.AllocatedDpEvent(claim, 2)):
        for accountant in ("auto", "renyi"):
            found = accountants.delta(event, epsilon=0.1, accountant=accountant)
            assert found.lower == 0 < 0.04 < found.upper
            assert accountants.epsilon(event, delta=1e-3, accountant=accountant).lower == 0


@settings(max_examples=20)
@given(
    weights=st.lists(
        st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)), min_size=2, max_size=6
    ).filter(lambda rows: all(sum(row) > 0.01 for row in zip(*rows, strict=True))),
    epsilon=st.floats(0.0, 3.0),
)
@example(weights=[(0.0, 1.0), (1.0, 1.0), (5e-324, 1.0)], epsilon=0.0)
def test_any_pair_of_laws_is_bounded(weights, epsilon):
    p, q = np.array(weights).T / np.sum(weights, axis=0)[:, None]
    found = accountants.delta(from_pmf(p, q), epsilon=epsilon)
    assert holds(found, worse(p, q, epsilon))


@pytest.mark.parametrize("rare", [3e-5, 1.22492745e-8, 1e-12])
def test_a_rare_outcome_is_bounded_in_exact_arithmetic(rare):
    """Two uses show with probability 2 a - a^2 that the record is not there."""
    share = Fraction(rare) / (Fraction(rare) + Fraction(1 - rare))
    found = accountants.delta(SQUARE(from_pmf([0.0, 1.0], [rare, 1 - rare]), 2), epsilon=0.0)
    assert Fraction(found.lower) <= 2 * share - share**2 <= Fraction(found.upper)
    assert found.upper - found.lower <= 1e-11 * found.upper


@pytest.mark.parametrize(
    ("build", "truth", "noise", "interval"),
    [
        (builders.from_laplace_mechanism, events.LaplaceDpEvent, 1.5, 1e-2),
        # Its masses add up to 1 and 2.6e-10 under P, and to 1 and 6e-4 under Q.
        (builders.from_gaussian_mechanism, events.GaussianDpEvent, 0.63, 1e-3),
    ],
)
def test_a_distribution_of_dp_accounting_bounds_its_mechanism(build, truth, noise, interval):
    pld, count, epsilon = build(noise, value_discretization_interval=interval), 8, 3 / noise**0.5
    composed = accountants.delta(SQUARE(from_pld(pld), count), epsilon=epsilon)
    exact = accountants.delta(SQUARE(truth(noise), count), epsilon=epsilon)
    assert composed.lower == 0
    assert exact.lower <= composed.upper <= exact.upper * 1.01
    theirs = pld.self_compose(count).get_delta_for_epsilon(epsilon)
    assert composed.upper <= theirs * (1 + 1e-6)


@pytest.mark.parametrize("count", [2, 30])
def test_the_chords_of_a_profile_bound_it(count):
    """A Laplace mechanism of scale 1 has delta(epsilon) = 1 - exp((epsilon - 1) / 2)."""
    at = np.linspace(0.0, 1.0, count)
    event = from_profile(at, -np.expm1((at - 1) / 2))
    for epsilon in (at[count // 3], 0.37):
        found = accountants.delta(event, epsilon=epsilon)
        truth = max(-math.expm1((epsilon - 1) / 2), 0.0)
        assert truth <= found.upper * (1 + 1e-9) + 1e-15
        if epsilon in at:
            assert found.upper == pytest.approx(truth, abs=1e-12)
    composed = accountants.delta(SQUARE(event, 5), epsilon=1.0).upper
    truth = accountants.delta(SQUARE(events.LaplaceDpEvent(1.0), 5), epsilon=1.0)
    assert truth.lower <= composed <= truth.upper * (1.3 if count == 2 else 1.001)


def test_laws_that_are_equal_or_disjoint():
    same, other = from_pmf([0.5, 0.5], [0.5, 0.5]), from_pmf([1.0, 0.0], [0.0, 1.0])
    assert accountants.delta(same, epsilon=0.0) == 0
    assert accountants.delta(other, epsilon=5.0) == pytest.approx(1.0)
