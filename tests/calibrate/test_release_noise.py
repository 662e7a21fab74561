"""The noise of several releases, against closed forms, another accountant, and each other."""

import math

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.common import DifferentialPrivacyParameters

from dpcal.accountants import epsilon, events
from dpcal.calibrate import Release, noise_multiplier, releases
from dpcal.errors import TargetUnreachable

TARGET = {"epsilon": 1.0, "delta": 1e-6}


def test_equal_gaussian_releases_are_one_with_more_noise():
    """k answers with noise s cost as much as one with s / sqrt(k)."""
    found = releases([Release(str(i), sensitivity=3.0) for i in range(9)], **TARGET)
    alone = noise_multiplier(events.GaussianDpEvent, **TARGET)
    assert [noise.scale for noise in found.noises] == pytest.approx([9 * alone] * 9, rel=2e-6)
    again = releases([Release("all", sensitivity=3.0, count=9)], **TARGET)
    assert again.noises[0].scale == pytest.approx(found.noises[0].scale, rel=2e-6)


def test_weights_and_kinds_fix_the_ratios_of_deviations():
    asked = [
        Release("gaussian", weight=2.0),
        Release("laplace", mechanism="laplace", sensitivity=5.0),
        Release("whole", mechanism="discrete-gaussian", sensitivity=4, weight=2.0),
    ]
    gaussian, laplace, whole = releases(asked, **TARGET).noises
    assert laplace.scale * math.sqrt(2) / 5 == pytest.approx(2 * gaussian.scale)
    assert whole.scale / 4 == pytest.approx(gaussian.scale)


@pytest.mark.parametrize("relation", ["add-or-remove-one", "replace-one"])
def test_the_target_is_met_and_just_met(relation):
    asked = [
        Release("mean", sensitivity=2.0),
        Release("bins", mechanism="discrete-laplace", sensitivity=2, weight=0.5),
        Release("tree", mechanism="any", delta=1e-8, weight=0.3),
    ]
    found = releases(asked, **TARGET, neighboring_relation=relation)
    assert 1 - 1e-5 < found.epsilon.lower <= found.epsilon.upper <= 1
    # Priced anew from the numbers that a user would draw noise by.
    mean, bins, tree = (noise.scale for noise in found.noises)
    event = events.ComposedDpEvent(
        [
            events.GaussianDpEvent(mean / 2.0),
            events.DiscreteLaplaceDpEvent(1 / bins, 2),
            events.EpsilonDeltaDpEvent(1 / tree, 1e-8),
        ]
    )
    assert epsilon(event, delta=1e-6, neighboring_relation=relation).upper <= 1 + 1e-14
    if relation == "add-or-remove-one":
        claim = DifferentialPrivacyParameters(1 / tree, 1e-8)
        fine = {"value_discretization_interval": 1e-3}
        peer = pld.from_gaussian_mechanism(mean / 2.0, **fine)
        peer = peer.compose(pld.from_discrete_laplace_mechanism(1 / bins, 2, **fine))
        peer = peer.compose(pld.from_privacy_parameters(claim, **fine))
        assert peer.get_epsilon_for_delta(1e-6) == pytest.approx(1.0, rel=5e-3)


def test_deltas_of_their_own_may_take_the_whole_target():
    with pytest.raises(TargetUnreachable):
        releases([Release("all", mechanism="any", delta=2e-6)], **TARGET)
