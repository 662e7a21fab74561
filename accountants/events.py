"""The vocabulary of mechanisms: dp-accounting's ``DpEvent`` classes, and shorthands.

>>> dpsgd(sampling_probability=0.01, noise_multiplier=1.1, steps=100)
... # doctest: +NORMALIZE_WHITESPACE
SelfComposedDpEvent(event=PoissonSampledDpEvent(sampling_probability=0.01,
event=GaussianDpEvent(noise_multiplier=1.1)), count=100)
"""

from dp_accounting.dp_event import (
    ComposedDpEvent,
    DiscreteLaplaceDpEvent,
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    MixtureOfGaussiansDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    RepeatAndSelectDpEvent,
    SampledWithoutReplacementDpEvent,
    SampledWithReplacementDpEvent,
    SelfComposedDpEvent,
    SingleEpochTreeAggregationDpEvent,
    TruncatedSubsampledGaussianDpEvent,
    UnsupportedDpEvent,
    ZCDpEvent,
)

from dpcal import _validate

__all__ = [
    "ComposedDpEvent",
    "DiscreteLaplaceDpEvent",
    "DpEvent",
    "GaussianDpEvent",
    "LaplaceDpEvent",
    "MixtureOfGaussiansDpEvent",
    "NoOpDpEvent",
    "NonPrivateDpEvent",
    "PoissonSampledDpEvent",
    "RandomizedResponseDpEvent",
    "RepeatAndSelectDpEvent",
    "SampledWithReplacementDpEvent",
    "SampledWithoutReplacementDpEvent",
    "SelfComposedDpEvent",
    "SingleEpochTreeAggregationDpEvent",
    "TruncatedSubsampledGaussianDpEvent",
    "UnsupportedDpEvent",
    "ZCDpEvent",
    "dpsgd",
]


def dpsgd(*, sampling_probability: float, noise_multiplier: float, steps: int) -> DpEvent:
    """Return the event of DP-SGD with Poisson sampling.

    Parameters
    ----------
    sampling_probability
        Probability in (0, 1] that a record joins a step's batch.
    noise_multiplier
        Standard deviation > 0 of the noise on the sum of clipped gradients, in units of the
        clipping norm.
    steps
        Number of steps, a whole number >= 1.
    """
    q = _validate.rate(sampling_probability=sampling_probability)
    sigma = _validate.positive(noise_multiplier=noise_multiplier)
    gaussian = GaussianDpEvent(sigma)
    step = gaussian if q == 1 else PoissonSampledDpEvent(q, gaussian)
    return SelfComposedDpEvent(step, _validate.count(steps=steps))
