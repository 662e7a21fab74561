"""Events with numbers that no mechanism has are refused in sentences that name the number."""

import math

import pytest

import dpcal
from dpcal.accountants import events
from dpcal.accountants.losses.gaussian_mixtures import GaussianMixtures
from dpcal.accountants.losses.random_choice import RandomChoice
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

GAUSSIAN = events.GaussianDpEvent(1.0)
SPARSE, LAST = events.GaussianAboveThresholdDpEvent, events.LastIterateDpEvent
MIXTURE = events.MixtureOfGaussiansDpEvent
OUT_OF_RANGE = [(0.0, 1), (-1.0, 1), (math.inf, 1), (math.nan, 1), (1e308, 10), (1e11, 11)]
EVENTS = [
    *((events.DiscreteLaplaceDpEvent(*each), "must be .*, got") for each in OUT_OF_RANGE),
    (events.DiscreteLaplaceDpEvent(1.0, 0), "must be .*, got"),
    (SPARSE(0.0, 1.0, 2), "threshold_noise"),
    (SPARSE(1.0, -1.0, 2), "query_n"),
    (SPARSE(1.0, 1.0, 0), "queries"),
    (LAST(1.0, 5, 1.01), "contraction must be a number in"),
    (LAST(1.0, 0), "steps must be a whole number >= 1"),
    (LAST(1.0, 5, 1.0, 0.0), "diameter must be a number > 0"),
    (LAST(0.0, 5), "noise_multiplier must be"),
    (events.AllocatedDpEvent(events.LaplaceDpEvent(1.0), 0), "batches"),
    (events.RepeatAndSelectDpEvent(GAUSSIAN, 100.0, -0.999), "further from -1"),
    (MIXTURE(1.0, [0.0, 1.0], [0.5, 0.4]), "must sum to 1"),
    (MIXTURE(1.0, [0.0, 0.0], [0.5, 0.5]), "positive number of positive probability"),
    (MIXTURE(1.0, [0.0, -1.0], [0.5, 0.5]), "sensitivities"),
    # What double precision cannot square.
    (events.GaussianDpEvent(1e-7), r"noise_multiplier must be a number in \[1e-06, 1e\+12\]"),
    (events.GaussianDpEvent(1e160), r"noise_multiplier must be a number in \[1e-06, 1e\+12\]"),
    (events.GaussianDpEvent(-1.0), "noise_multiplier must be"),
    (
        events.SelfComposedDpEvent(events.SelfComposedDpEvent(GAUSSIAN, 10**200), 10**200),
        "count must add up to at most 1e100 uses .* about 1e400",
    ),
]


def test_numbers_out_of_range_are_refused_alone_on_samples_and_beside_others():
    for event, sentence in EVENTS:
        for whole in (event, events.ComposedDpEvent([GAUSSIAN, event])):
            with pytest.raises(ValueError, match=sentence):
                dpcal.epsilon(whole, delta=1e-6)
        if isinstance(event, events.DiscreteLaplaceDpEvent | events.GaussianDpEvent):
            with pytest.raises(ValueError, match=sentence):
                dpcal.epsilon(events.PoissonSampledDpEvent(0.5, event), delta=1e-6)
    with pytest.raises(ValueError, match=r"sampling_probability must be .*\[1e-50, 1\]"):
        dpcal.epsilon(events.PoissonSampledDpEvent(1e-200, GAUSSIAN), delta=1e-6)


def test_pairs_that_are_no_laws_are_refused():
    with pytest.raises(ValueError, match="Every mean of numerator"):
        GaussianMixtures(((0.0, 1.0),), ((-1.0, 0.5), (1.0, 0.5)), 1.0)
    with pytest.raises(ValueError, match="sum to 1"):
        RandomChoice(((0.5, SampledGaussian(0.1, 1.0, "remove")),))
