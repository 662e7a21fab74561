"""Random allocation of any mechanism: all outcomes of small epochs, and Gaussians by transforms."""

import itertools
import math

import numpy as np
import pytest

from dpcal.accountants import delta, epsilon, events
from dpcal.accountants.inversion.finite_laws import FiniteLaw, law_of
from dpcal.accountants.losses.discrete import discrete_laplace
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.mechanisms import allocated as module
from dpcal.accountants.mechanisms.allocated import allocated


def masses(loss):
    """Return the masses of P and Q of a loss with finitely many values."""
    q = np.exp(np.array(loss.log_reference))
    return q * np.exp(loss.values), q


def by_every_outcome(p, q, batches, targets):
    """Return the deltas of an epoch in both directions, over all outcomes of all batches."""
    places = np.array(list(itertools.product(range(len(p)), repeat=batches)))
    none = q[places].prod(axis=1)
    drawn = np.mean([none * (p / q)[places[:, j]] for j in range(batches)], axis=0)
    return [
        max(np.maximum(a - np.exp(e) * b, 0).sum() for a, b in ((drawn, none), (none, drawn)))
        for e in targets
    ]


@pytest.mark.parametrize("batches", [1, 2, 3, 5])
@pytest.mark.parametrize(
    "event", [events.DiscreteLaplaceDpEvent(0.4, 3), events.AboveThresholdDpEvent(4.0, 8.0)]
)
def test_epochs_of_few_outcomes_against_all_of_them(event, batches):
    if isinstance(event, events.AboveThresholdDpEvent):
        # A claim (epsilon, 0) is randomized response of two values.
        p = np.array([math.exp(0.5), 1.0]) / (1 + math.exp(0.5))
        q = p[::-1]
    else:
        p, q = masses(discrete_laplace(noise_parameter=0.4, sensitivity=3))
    targets = [0.0, 0.1, 0.3, 0.45]
    exact = by_every_outcome(p, q, batches, targets)
    for target, wanted in zip(targets, exact, strict=True):
        found = delta(events.AllocatedDpEvent(event, batches), epsilon=target)
        assert found.lower - 1e-13 <= wanted <= found.upper + 1e-13
        assert found.upper - found.lower < 1e-9


def test_two_epochs_against_all_outcomes_of_both():
    p, q = masses(discrete_laplace(noise_parameter=0.7, sensitivity=1))
    places = np.array(list(itertools.product(range(len(p)), repeat=2)))
    none = q[places].prod(axis=1)
    drawn = none * (p / q)[places].mean(axis=1)
    both = [np.outer(law, law) for law in (drawn, none)]
    run = events.SelfComposedDpEvent(
        events.AllocatedDpEvent(events.DiscreteLaplaceDpEvent(0.7, 1), 2), 2
    )
    for target in (0.1, 0.5, 1.0):
        wanted = max(np.maximum(a - math.exp(target) * b, 0).sum() for a, b in (both, both[::-1]))
        assert float(delta(run, epsilon=target)) == pytest.approx(wanted, rel=1e-9)


# sigma, batches, and epsilons at delta 1e-5 of a removed and an added record, by 50 digits.
GAUSSIANS = [(1.0, 2, 3.6973852125, 3.0797325885), (1.0, 100, 0.6209396716, 0.4219534733)]


@pytest.mark.slow
@pytest.mark.parametrize(("fails", "batches", "epochs"), [(0.1, 4, 1), (0.3, 2, 2), (1e-3, 5, 1)])
@pytest.mark.parametrize("target", [0.0, 0.1, 0.4])
def test_claims_that_fail_against_all_outcomes(fails, batches, epochs, target):
    """A claim fails under P alone, or under Q alone, and is randomized response otherwise."""
    odds = math.exp(0.8)
    more, less = (1 - fails) * odds / (1 + odds), (1 - fails) / (1 + odds)
    p, q = np.array([fails, 0.0, more, less]), np.array([0.0, fails, less, more])
    places = np.array(list(itertools.product(range(4), repeat=batches)))
    none = q[places].prod(axis=1)
    drawn = np.zeros(len(places))
    for j in range(batches):
        drawn += p[places[:, j]] * np.delete(q[places], j, axis=1).prod(axis=1) / batches
    laws = [drawn, none] if epochs == 1 else [np.outer(law, law) for law in (drawn, none)]
    wanted = max(np.maximum(a - np.exp(target) * b, 0).sum() for a, b in (laws, laws[::-1]))
    epoch = events.AllocatedDpEvent(events.EpsilonDeltaDpEvent(0.8, fails), batches)
    found = delta(events.SelfComposedDpEvent(epoch, epochs), epsilon=target)
    assert found.lower <= wanted * (1 + 1e-12)
    assert wanted * (1 - 1e-12) <= found.upper <= found.lower + 1e-9


@pytest.mark.parametrize(("sigma", "batches", "removed", "added"), GAUSSIANS)
def test_gathered_laws_hold_what_transforms_say_of_gaussians(sigma, batches, removed, added):
    law = law_of(Gaussian(sigma))
    for loss, target in zip(allocated(law, batches, "noise"), (removed, added), strict=True):
        upper, lower = loss.given, loss.below
        p, q = masses(upper)
        assert np.maximum(p - np.exp(target) * q, 0).sum() > 1e-5
        assert np.maximum(p - np.exp(target) * q, 0).sum() < 1.05e-5
        p, q = masses(getattr(lower, "given", lower))
        assert 0.98e-5 < np.maximum(p - np.exp(target) * q, 0).sum() < 1e-5


def test_gaussians_are_their_own_epochs():
    both = events.ComposedDpEvent([events.GaussianDpEvent(2.0), events.GaussianDpEvent(2.0)])
    one = epsilon(events.AllocatedDpEvent(both, 50), delta=1e-6)
    assert one == pytest.approx(
        epsilon(events.RandomAllocationDpEvent(math.sqrt(2.0), 50), delta=1e-6), rel=1e-9
    )


def test_more_batches_cost_less_and_fewer_values_are_still_around_the_truth(monkeypatch):
    noise = events.DiscreteLaplaceDpEvent(0.5, 2)
    prices = [epsilon(events.AllocatedDpEvent(noise, m), delta=1e-6) for m in (1, 2, 7, 40, 300)]
    assert all(few > many for few, many in itertools.pairwise(prices))
    law = law_of(discrete_laplace(noise_parameter=0.5, sensitivity=2))
    exact = masses(allocated(law, 9, "fine")[0])
    monkeypatch.setattr(module, "_MOST", 4)
    coarse, _ = allocated(law, 9, "coarse")
    for target in (0.05, 0.2, 0.5):
        wanted, above, below = (
            np.maximum(p - math.exp(target) * q, 0).sum()
            for p, q in (exact, masses(coarse), masses(coarse.below))
        )
        assert below - 1e-13 <= wanted <= above + 1e-13
        assert above > 1.001 * below


def test_the_law_has_its_mass_and_each_direction_is_the_other_reversed():
    law = FiniteLaw(np.array([-1.0, 0.2, 1.5]), np.log([0.5, 0.4, 0.1]))
    law = FiniteLaw(law.values, law.log_reference - np.log(np.exp(law.log_reference).sum()))
    shift = np.log((np.exp(law.log_reference + law.values)).sum())
    remove, add = allocated(FiniteLaw(law.values - shift, law.log_reference), 6, "any")
    for (p, q), (back, there) in ((masses(remove), masses(add)),):
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert q.sum() == pytest.approx(1, abs=1e-12)
        assert p == pytest.approx(there[::-1], rel=1e-12)
        assert q == pytest.approx(back[::-1], rel=1e-12)
