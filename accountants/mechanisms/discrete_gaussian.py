"""Discrete Gaussian noise on a sum of whole numbers (Canonne, Kamath and Steinke 2020).

>>> from dpcal.accountants import epsilon
>>> print(f"{epsilon(events.DiscreteGaussianDpEvent(4.0), delta=1e-6):.4f}")
1.0634
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpcal import _validate
from dpcal.accountants import events
from dpcal.accountants.inversion.amplification import between
from dpcal.accountants.inversion.finite_laws import BYTES_OF_NOISE, FiniteLaw, gathered, noise_reach
from dpcal.accountants.limits import hold
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.mechanisms.row import Row, distance, times

__all__: list[str] = []

# Largest shift: fourth moments of a loss must stay doubles, too.
_LARGEST_SHIFT = 1e18
# Largest shift over sigma, for the same reason.
_LARGEST_RATIO = 1e12


def _replaced(event: events.DiscreteGaussianDpEvent, q: float) -> FiniteLaw:
    s, variance = event.sensitivity, event.sigma**2
    far, log_norm, outside = noise_reach(event.sigma)
    hold(2 * (far + s), f"sensitivity={s!r}", BYTES_OF_NOISE)
    x = np.arange(-far - s, far + s + 1.0)
    above, below = (s * (sign * 2 * x - s) / (2 * variance) for sign in (1, -1))
    exact = FiniteLaw(*between(-(x**2) / (2 * variance) - log_norm, above, below, q))
    return gathered(replace(exact, outside=outside, below=exact))


@Row(
    events.DiscreteGaussianDpEvent(1.0, 1),
    "sums, whose decay theta functions bound (Canonne, Kamath and Steinke 2020)",
    record="sum",
    group=times("sensitivity"),
    replaced=_replaced,
)
def _discrete_gaussian(event: events.DiscreteGaussianDpEvent, relation: str) -> DiscreteGaussian:
    shift = distance(relation) * _validate.count(sensitivity=event.sensitivity)
    sigma = _validate.noise(sigma=event.sigma)
    if shift > _LARGEST_SHIFT:
        raise ValueError(
            f"sensitivity must be at most {_LARGEST_SHIFT / distance(relation):g}, got "
            f"{event.sensitivity!r}."
        )
    if shift > _LARGEST_RATIO * sigma:
        raise ValueError(
            f"sensitivity must be at most {_LARGEST_RATIO:g} times sigma, got "
            f"{event.sensitivity!r} with sigma={event.sigma!r}."
        )
    return DiscreteGaussian(sigma, shift)
