"""Random allocation of any mechanism: all outcomes of small epochs, and Gaussians by transforms."""

import itertools
import math

import numpy as np
import pytest
from _integrals import divergence, holds, masses, product, response, worse

from dpcal.accountants import delta, epsilon, events
from dpcal.accountants.inversion import amplification
from dpcal.accountants.inversion.amplification import allocated
from dpcal.accountants.inversion.finite_laws import FiniteLaw, law_of
from dpcal.accountants.losses.discrete import discrete_laplace
from dpcal.accountants.losses.gaussian import Gaussian


def drawn_once(p, q, batches):
    """Return the laws of all outcomes of an epoch, with the record in one batch and in none."""
    places = np.array(list(itertools.product(range(len(p)), repeat=batches)))
    chances = q[places]
    drawn = sum(
        p[places[:, j]] * np.delete(chances, j, axis=1).prod(axis=1) / batches
        for j in range(batches)
    )
    return drawn, chances.prod(axis=1)


# A claim (epsilon, 0) is randomized response of two values.
SPARSE, HALF = events.AboveThresholdDpEvent(4.0, 8.0), [law[1:3] for law in response(0.5)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("event", "pair", "batches", "epochs"),
    [
        *((SPARSE, HALF, batches, 1) for batches in (1, 2, 3, 5)),
        (SPARSE, HALF, 2, 2),
        # A claim fails under P alone, or under Q alone, and is randomized response otherwise.
        *(
            (events.EpsilonDeltaDpEvent(0.8, fails), response(0.8, fails), batches, epochs)
            for fails, batches, epochs in ((0.1, 4, 1), (0.3, 2, 2), (1e-3, 5, 1))
        ),
    ],
)
@pytest.mark.parametrize("target", [0.0, 0.1, 0.3, 0.45])
def test_claims_and_those_that_fail_against_all_outcomes(event, pair, batches, epochs, target):
    """The corpus has discrete Laplace noise in one and in several epochs."""
    laws = product(*[drawn_once(*pair, batches)] * epochs)
    run = events.SelfComposedDpEvent(events.AllocatedDpEvent(event, batches), epochs)
    found = delta(run, epsilon=target)
    assert holds(found, worse(*laws, target), 1e-12)
    assert found.upper <= found.lower + 1e-9


# sigma, batches, and epsilons at delta 1e-5 of a removed and an added record, by 50 digits.
GAUSSIANS = [(1.0, 2, 3.6973852125, 3.0797325885), (1.0, 100, 0.6209396716, 0.4219534733)]


@pytest.mark.parametrize(("sigma", "batches", "removed", "added"), GAUSSIANS)
def test_gathered_laws_hold_what_transforms_say_of_gaussians(sigma, batches, removed, added):
    law = law_of(Gaussian(sigma))
    for loss, target in zip(allocated(law, batches, "noise"), (removed, added), strict=True):
        upper, lower = loss.given, loss.below
        assert 1e-5 < divergence(*masses(upper), target) < 1.05e-5
        assert 0.98e-5 < divergence(*masses(getattr(lower, "given", lower)), target) < 1e-5


def test_gaussians_are_their_own_epochs():
    both = events.SelfComposedDpEvent(events.GaussianDpEvent(2.0), 2)
    one = events.RandomAllocationDpEvent(math.sqrt(2.0), 50)
    found, truth = (epsilon(e, delta=1e-6) for e in (events.AllocatedDpEvent(both, 50), one))
    assert found == pytest.approx(truth, rel=1e-9)


def test_more_batches_cost_less_and_fewer_values_are_still_around_the_truth(monkeypatch):
    noise = events.DiscreteLaplaceDpEvent(0.5, 2)
    prices = [epsilon(events.AllocatedDpEvent(noise, m), delta=1e-6) for m in (1, 2, 7, 40, 300)]
    assert all(few > many for few, many in itertools.pairwise(prices))
    law = law_of(discrete_laplace(noise_parameter=0.5, sensitivity=2))
    exact = masses(allocated(law, 9, "fine")[0])
    monkeypatch.setattr(amplification, "_MOST_OF_MEAN", 4)
    coarse, _ = allocated(law, 9, "coarse")
    for target in (0.05, 0.2, 0.5):
        laws = exact, masses(coarse), masses(coarse.below)
        wanted, above, below = (divergence(*law, target) for law in laws)
        assert below - 1e-13 <= wanted <= above + 1e-13
        assert above > 1.001 * below


def test_the_law_has_its_mass_and_each_direction_is_the_other_reversed():
    law = FiniteLaw(np.array([-1.0, 0.2, 1.5]), np.log([0.5, 0.4, 0.1]))
    law = FiniteLaw(law.values, law.log_reference - np.log(np.exp(law.log_reference).sum()))
    shift = np.log((np.exp(law.log_reference + law.values)).sum())
    remove, add = allocated(FiniteLaw(law.values - shift, law.log_reference), 6, "any")
    for law, reversed_law in zip(masses(remove), masses(add)[::-1], strict=True):
        assert law.sum() == pytest.approx(1, abs=1e-12)
        assert law == pytest.approx(reversed_law[::-1], rel=1e-12)
