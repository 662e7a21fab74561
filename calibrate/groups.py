"""What does an answer reveal about a person with several rows? The sum of their sampled rows.

>>> event = rows_of_one_person(noise_multiplier=4.0, group_size=2, sampling_probability=0.5)
>>> event.sensitivities, [round(share, 6) for share in event.sampling_probs]
((0.0, 1.0, 2.0), [0.25, 0.5, 0.25])
>>> print(f"{rows_of_one_person(noise_multiplier=4.0, group_size=2).noise_multiplier:.9f}")
2.000000000
"""

from __future__ import annotations

import math

from dpcal import _validate
from dpcal.accountants import events

__all__ = ["rows_of_one_person"]


def rows_of_one_person(
    *, noise_multiplier: float, group_size: int, sampling_probability: float = 1.0
) -> events.DpEvent:
    """Return the event of one noisy sum, for a person with up to so many rows.

    Each row is clipped to norm 1 and sampled on its own, so that j of k rows are sampled with
    binomial probability, and then move the sum by up to j. A mixture of Gaussians with these
    sensitivities dominates the answer (Ganesh 2024, arXiv:2401.10294, Tight group-level DP
    guarantees for DP-SGD with sampling via mixture of Gaussians mechanisms, the theorem on Poisson
    sampling). Fewer rows cost no more than k.

    Parameters
    ----------
    noise_multiplier
        Standard deviation > 0 of the noise, in units of the bound on one row.
    group_size
        Largest number of rows of a person, k >= 1.
    sampling_probability
        Of each row, in (0, 1].
    """
    sigma = _validate.positive(noise_multiplier=noise_multiplier)
    k = _validate.count(group_size=group_size)
    q = _validate.within(0.0, 1.0, sampling_probability=sampling_probability)
    if q == 1:
        return events.GaussianDpEvent(sigma if k == 1 else math.nextafter(sigma / k, 0.0))
    if k == 1:
        return events.PoissonSampledDpEvent(q, events.GaussianDpEvent(sigma))
    sensitivities = tuple(float(j) for j in range(k + 1))
    return events.MixtureOfGaussiansDpEvent(sigma, sensitivities, _shares(k, q))


def _shares(k: int, q: float) -> tuple[float, ...]:
    """Return binomial probabilities that add up to one, rounded towards more sampled rows."""
    above = [math.comb(k, j) * q**j * (1 - q) ** (k - j) * (1 + 1e-14) for j in range(1, k + 1)]
    return (max(0.0, 1 - math.fsum(above)), *above)
