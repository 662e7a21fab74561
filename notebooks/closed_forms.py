"""What do closed forms say about correlated noise? Bounds to hold beside the accountants' answers.

>>> sigma = lambda_cgd(steps=500, decay=0.5, sampling_probability=0.1, epsilon=1.0, delta=1e-5)
>>> print(f"{sigma:.1f}")
96.1

An accountant that bounds the same thing without closed forms needs less:

>>> from dpcal.accountants import correlated
>>> from dpcal.accountants.matrix import LambdaCGD
>>> mechanism = correlated.Mechanism.of(LambdaCGD(500, 0.5), noise_multiplier=0.7 * sigma)
>>> correlated.revealed(mechanism, correlated.Poisson(0.1)).delta(1.0) <= 1e-5
True
"""

from __future__ import annotations

import math

from dpcal._internal import validate
from dpcal.errors import UnsupportedEvent

__all__ = ["lambda_cgd"]

RELATIONS = ("replace-special", "replace-one")


def lambda_cgd(
    *,
    steps: int,
    decay: float,
    sampling_probability: float,
    epsilon: float,
    delta: float,
    neighboring_relation: str = "replace-special",
) -> float:
    """Return a noise multiplier that suffices for noise z_t - decay z_{t-1} on random batches.

    It holds for Poisson samples and for batches of a fixed size: only how often one record takes
    part is used, and that no more than tau = r T + sqrt(3 r T log(2 / delta)) times but with
    probability delta / 2. There is no other amplification in it.

    Parameters
    ----------
    steps
        Number of steps T >= 1.
    decay
        In [0, 1).
    sampling_probability
        Chance r in (0, 1] that a record takes part in a step, or batch size over n.
    epsilon
        In (0, 1].
    delta
        In (0, 1), with r T >= 3 log(2 / delta).
    neighboring_relation
        ``"replace-special"`` (a record's contributions become zero) or ``"replace-one"``.

    Returns
    -------
    float
        Standard deviation of z in clipping norms.

    Raises
    ------
    UnsupportedEvent
        Outside of the conditions, which the theorem's short form leaves out.

    References
    ----------
    Wang et al. 2026, Theorem F.12, whose constant 8 is needed for replaced records only; for
    zeroed ones 2 suffices. Gaussian calibration: Dwork and Roth 2014, Theorem A.1.
    """
    T, r = validate.count(steps=steps), validate.rate(sampling_probability=sampling_probability)
    rate = validate.non_negative(decay=decay)
    if rate >= 1:
        raise ValueError(f"decay must be a number in [0, 1), got {decay!r}.")
    target = validate.positive(epsilon=epsilon)
    limit = validate.probability(delta=delta)
    validate.choice(RELATIONS, neighboring_relation=neighboring_relation)
    expected, log_half = r * T, math.log(2 / limit)
    if target > 1 or expected < 3 * log_half:
        raise UnsupportedEvent(
            "The closed form needs epsilon <= 1 and steps * sampling_probability >= 3 log(2 / "
            f"delta) = {3 * log_half:.3g}, got epsilon={target:g} and {expected:.3g}."
        )
    moved = 2.0 if neighboring_relation == "replace-one" else 1.0
    growth = (1 - rate**T) / (1 - rate)
    often = expected + math.sqrt(3 * expected * log_half)
    root = math.sqrt(2 * often * math.log(2.5 / limit))
    return moved * growth * root / target * (1 + 2.0**-40)
