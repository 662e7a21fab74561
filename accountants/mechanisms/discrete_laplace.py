"""Discrete Laplace noise on a sum of whole numbers.

>>> from dpcal.accountants import epsilon
>>> f"{epsilon(events.DiscreteLaplaceDpEvent(0.5, 2), delta=0)}"
'1.0'
"""

from __future__ import annotations

import math

import numpy as np

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.accountants.inversion.amplification import between
from dpcal.accountants.inversion.finite_laws import FiniteLaw
from dpcal.accountants.limits import hold
from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.losses.discrete import discrete_laplace
from dpcal.accountants.mechanisms.row import Row, distance, normal

# Bytes for each value of a discrete Laplace loss: a million values take 170 MB and six seconds.
_BYTES_OF_VALUE = 700
# Largest loss, in nats: its fourth power stays far below the range of a double.
_LARGEST_LOSS = 1e12


def _replaced(event: events.DiscreteLaplaceDpEvent, q: float) -> FiniteLaw:
    a, s = event.noise_parameter, event.sensitivity
    x = np.arange(-s, s + 1.0)
    log_noise = math.log(math.tanh(a / 2)) - a * np.abs(x)
    # Outputs further out have the losses of s and -s.
    log_noise[[0, -1]] = -a * s - math.log1p(math.exp(-a))
    above, below = (a * (np.abs(x) - np.abs(x - shift)) for shift in (s, -s))
    return FiniteLaw(*between(log_noise, above, below, q))


@Row(events.DiscreteLaplaceDpEvent(0.5, 1), "finite sums", record="sum", replaced=_replaced)
def _discrete_laplace(event: events.DiscreteLaplaceDpEvent, relation: str) -> PrivacyLoss:
    shift = distance(relation) * validate.count(sensitivity=event.sensitivity)
    hold(shift, f"sensitivity={event.sensitivity!r}", _BYTES_OF_VALUE)
    a = normal(noise_parameter=validate.positive(noise_parameter=event.noise_parameter))
    if a * shift > _LARGEST_LOSS:
        raise ValueError(
            f"noise_parameter must be at most {_LARGEST_LOSS:g} over the distance {shift} of two "
            f"neighbors, got {event.noise_parameter!r}."
        )
    return discrete_laplace(noise_parameter=a, sensitivity=shift)
