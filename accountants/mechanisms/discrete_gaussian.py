"""Discrete Gaussian noise on a sum of whole numbers (Canonne, Kamath and Steinke 2020).

>>> from dpcal.accountants import epsilon
>>> print(f"{epsilon(events.DiscreteGaussianDpEvent(4.0), delta=1e-6):.4f}")
1.0634
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.accountants.inversion.amplification import between
from dpcal.accountants.inversion.finite_laws import FiniteLaw, gathered, law_of
from dpcal.accountants.limits import BYTES_OF_NOISE, hold
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.mechanisms.row import Row, distance, times
from dpcal.errors import UnsupportedEvent

# Largest shift: fourth moments of a loss must stay doubles.
_LARGEST_SHIFT = 1e18
_LARGEST_RATIO = 1e12
# Standard deviations beyond which losses count as infinite, and the least probability of that.
_REACH, _LEAST_OUTSIDE = 37.0, 1e-300
# Largest sigma of noise on batches, which has 2^22 whole numbers within twice its reach.
_LARGEST_SIGMA = 28339.0


@law_of.register
def _law(loss: DiscreteGaussian, q: float = 1.0) -> FiniteLaw:
    """Return the law of noise that is moved, or that a sampled record moves either way.

    Raises
    ------
    UnsupportedEvent
        If there are too many whole numbers within its reach.
    """
    sigma, s, variance = loss.sigma, loss.sensitivity, loss.sigma**2
    far = math.ceil(_REACH * sigma)
    if sigma > _LARGEST_SIGMA:
        raise UnsupportedEvent(
            f"Discrete Gaussian noise is priced on batches up to sigma = {_LARGEST_SIGMA:g}, got "
            f"sigma = {sigma!r}."
        )
    hold(2 * (far + s), f"sensitivity={s!r}", BYTES_OF_NOISE)
    log_norm = math.log(np.exp(-0.5 * (np.arange(-far, far + 1.0) / sigma) ** 2).sum())
    first = -0.5 * ((far + 1) / sigma) ** 2 - log_norm
    beyond = math.exp(max(first, -720.0)) / -math.expm1(-(far + 1) / variance)
    x = np.arange(-far - (s if q < 1 else 0), far + s + 1.0)
    noise, up = -(x**2) / (2 * variance) - log_norm, s * (2 * x - s) / (2 * variance)
    law = FiniteLaw(*(between(noise, up, up[::-1], q) if q < 1 else (up, noise)))
    return gathered(replace(law, outside=max(2 * beyond, _LEAST_OUTSIDE), below=law))


@Row(
    events.DiscreteGaussianDpEvent(1.0, 1),
    "sums, whose decay theta functions bound (Canonne, Kamath and Steinke 2020)",
    record="sum",
    group=times("sensitivity"),
    replaced=lambda event, q: _law(DiscreteGaussian(event.sigma, event.sensitivity), q),
)
def _discrete_gaussian(event: events.DiscreteGaussianDpEvent, relation: str) -> DiscreteGaussian:
    shift = distance(relation) * validate.count(sensitivity=event.sensitivity)
    sigma = validate.noise(sigma=event.sigma)
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
